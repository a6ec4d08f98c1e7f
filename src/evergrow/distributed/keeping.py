"""Finished results in a folder, so that work that was stopped can go on where it was."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evergrow.foundation.engine import (
    Arrays,
    Change,
    Check,
    Engine,
    InProcess,
    Join,
    Shared,
    Step,
    Task,
)
from evergrow.foundation.errors import CacheWarning, ModelFileError, warn_user
from evergrow.storage.files import read_model, write_model

__all__ = ["KeptResults", "Resuming"]

_KIND = "result"
_UNUSABLE = "a finished result cannot be used and is computed again"


class KeptResults:
    """A folder with one file per finished part.

    A file says which work it belongs to and which part of it; one that is damaged, or is not what
    its name promises, is as good as none.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"resume must name a folder, {str(folder)!r} is a file")
        self.folder.mkdir(parents=True, exist_ok=True)

    def path_of(self, name: str, part: int) -> Path:
        """Where the result of a part is kept."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        return self.folder / f"{digest[:32]}-{part:06d}.evergrow"

    def read(self, name: str, part: int, check: Check | None = None) -> Arrays | None:
        """The result of a part, if there is a whole one that ``check`` does not refuse."""
        path = self.path_of(name, part)
        if not path.exists():
            return None
        try:
            header, arrays = read_model(path)
        except (ModelFileError, OSError) as error:
            warn_user(f"{_UNUSABLE}: {error}", CacheWarning)
            return None
        if (header.get("kind"), header.get("work"), header.get("part")) != (_KIND, name, part):
            text = f"{str(path)!r} holds another result than its name says; it is not used"
            warn_user(text, CacheWarning)
            return None
        try:
            if check is not None:
                check(part, arrays)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # Whole, and by its name the right one, but not what such work gives.
            warn_user(f"{_UNUSABLE}: {str(path)!r}: {error}", CacheWarning)
            return None
        return arrays

    def write(self, name: str, part: int, result: Arrays) -> None:
        """Keep the result of a part; a warning if that is not possible."""
        header = {"kind": _KIND, "work": name, "part": part}
        try:
            write_model(self.path_of(name, part), header, result)
        except OSError as error:
            text = f"a finished result cannot be kept for a resumed run: {error}"
            warn_user(text, CacheWarning)


class Resuming:
    """An engine that keeps what its parts give, and does no part again whose result is kept.

    Parameters
    ----------
    engine : Engine
        What does the other parts.
    kept : KeptResults
        Where results are kept. Work without a name is handed on as it is.
    """

    keeps_results = True

    def __init__(self, engine: Engine, kept: KeptResults) -> None:
        self._engine = engine
        self._kept = kept
        self._n_asked: Counter[str] = Counter()

    @property
    def n_workers(self) -> int:
        """How many parts run at the same time."""
        return self._engine.n_workers

    @property
    def threads_per_worker(self) -> int:
        """Processors that a part may use."""
        return self._engine.threads_per_worker

    @property
    def is_remote(self) -> bool:
        """Whether parts run in other processes."""
        return self._engine.is_remote

    @property
    def updates(self) -> str:
        """Where forests are updated."""
        return self._engine.updates

    def share(self, value: Any) -> Shared:
        """Make a value available to tasks."""
        return self._engine.share(value)

    def on_every_node(self, task: Task, part: Any) -> None:
        """Do something small on every machine."""
        self._engine.on_every_node(task, part)

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """What was made the last time, in this place of the program; else what is made now."""
        # The third forest of a program is the third one of the program that resumes it.
        place = self._n_asked[name]
        self._n_asked[name] += 1
        made = make()

        def check(_: int, kept: Arrays) -> None:
            forms = [{k: (v.dtype, v.shape) for k, v in a.items()} for a in (kept, made)]
            if forms[0] != forms[1]:
                raise ValueError("it has other arrays than are made now")

        known = self._kept.read(name, place, check)
        if known is None:
            self._kept.write(name, place, made)
        return made if known is None else known

    def run(
        self,
        task: Task,
        parts: Sequence[Any],
        shared: Sequence[Shared] = (),
        *,
        what: str,
        verbose: int = 0,
        name: str | None = None,
        check: Check | None = None,
    ) -> Iterator[tuple[int, Arrays]]:
        """Give (place of the part, result): those that are kept first."""
        if name is None:
            yield from self._engine.run(task, parts, shared, what=what, verbose=verbose)
            return
        missing = []
        for place in range(len(parts)):
            result = self._kept.read(name, place, check)
            if result is None:
                missing.append(place)
            else:
                yield place, result
        if not missing:
            return
        left = [parts[place] for place in missing]
        for index, result in self._engine.run(task, left, shared, what=what, verbose=verbose):
            self._kept.write(name, missing[index], result)
            yield missing[index], result

    def fold(
        self,
        task: Task,
        parts: Sequence[Any],
        join: Join,
        shared: Sequence[Shared] = (),
        *,
        what: str,
        verbose: int = 0,
        name: str | None = None,
    ) -> Arrays:
        """The results of all parts joined into one.

        With a name every part's result comes here once, to be kept, and they are joined here.
        """
        if name is None:
            return self._engine.fold(task, parts, join, shared, what=what, verbose=verbose)
        results = self.run(task, parts, shared, what=what, verbose=verbose, name=name)
        # What is in a file need not be in memory too.
        held = {p: result for p, result in results if not self._kept.path_of(name, p).exists()}
        return InProcess().fold(
            _take, range(len(parts)), join, (self._kept, name, held), what=what, verbose=0
        )

    def change(
        self,
        change: Change,
        parts: Sequence[Any],
        shared: Sequence[Shared] = (),
        *,
        step: Step,
        what: str,
        verbose: int = 0,
    ) -> Iterator[tuple[int, Arrays]]:
        """Change values that stay with workers; nothing of it is kept in files."""
        return self._engine.change(change, parts, shared, step=step, what=what, verbose=verbose)

    def let_go(self, name: str) -> None:
        """Drop a version of values."""
        self._engine.let_go(name)


def _take(place: int, kept: KeptResults, name: str, held: dict[int, Arrays]) -> Arrays:
    result = held.pop(place) if place in held else kept.read(name, place)
    if result is None:
        raise OSError(f"the result of part {place} vanished from {str(kept.folder)!r}")
    return result
