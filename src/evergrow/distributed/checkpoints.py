"""Checkpoints: finished results in a folder, so that an interrupted run can be resumed."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergrow.foundation.engine import (
    Arrays,
    Capacity,
    Check,
    Engine,
    Job,
    Join,
    LocalEngine,
)
from evergrow.foundation.errors import CacheWarning, InvalidInputError, ModelFileError, warn_user
from evergrow.storage.models.format import read_model, write_model

_KIND = "result"
_UNUSABLE = "a checkpoint cannot be used and is computed again"


class CheckpointStore:
    """A folder with one file per finished part.

    A file names its job and its part. A file that is damaged, or that belongs to another job or
    part, is ignored.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"resume must name a folder, {str(folder)!r} is a file")
        self.folder.mkdir(parents=True, exist_ok=True)

    def path_of(self, name: str, index: int) -> Path:
        """Return the file of a part."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        return self.folder / f"{digest[:32]}-{index:06d}.evergrow"

    def read(self, name: str, index: int, check: Check | None = None) -> Arrays | None:
        """Return the result of a part, or None if there is no valid one that ``check`` accepts."""
        path = self.path_of(name, index)
        if not path.exists():
            return None
        try:
            header, arrays = read_model(path)
        except (ModelFileError, OSError) as error:
            warn_user(f"{_UNUSABLE}: {error}", CacheWarning)
            return None
        if (header.get("kind"), header.get("work"), header.get("part")) != (_KIND, name, index):
            text = f"{str(path)!r} holds another result than its name says; it is ignored"
            warn_user(text, CacheWarning)
            return None
        try:
            if check is not None:
                check(index, arrays)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # An intact file with the right name whose content is not a result of this job.
            warn_user(f"{_UNUSABLE}: {str(path)!r}: {error}", CacheWarning)
            return None
        return arrays

    def write(self, name: str, index: int, result: Arrays) -> None:
        """Store the result of a part; warn if that fails."""
        header = {"kind": _KIND, "work": name, "part": index}
        try:
            write_model(self.path_of(name, index), header, result)
        except OSError as error:
            warn_user(f"a checkpoint cannot be written: {error}", CacheWarning)


class CheckpointedEngine(Engine):
    """An engine that stores the results of its parts and skips parts that have a checkpoint.

    The inner engine runs the parts without a checkpoint, and jobs without a name.
    """

    has_checkpoints = True

    def __init__(self, engine: Engine, store: CheckpointStore) -> None:
        self._engine = engine
        self._store = store
        self._n_calls: Counter[str] = Counter()

    @property
    def capacity(self) -> Capacity:
        """The capacity of the inner engine."""
        return self._engine.capacity

    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        """Yield (index of the part, result), those with a checkpoint first."""
        if job.name is None:
            yield from self._engine.run(job)
            return
        missing = []
        for index in range(len(job.parts)):
            result = self._store.read(job.name, index, job.check)
            if result is None:
                missing.append(index)
            else:
                yield index, result
        if not missing:
            return
        rest = replace(job, parts=[job.parts[index] for index in missing])
        for place, result in self._engine.run(rest):
            self._store.write(job.name, missing[place], result)
            yield missing[place], result

    def reduce(self, job: Job, join: Join) -> Arrays:
        """Join the results of all parts into one.

        With a name every result is fetched, stored as a checkpoint, and joined here.
        """
        if job.name is None:
            return self._engine.reduce(job, join)
        name = job.name
        # A result that is in a file need not be in memory too.
        held = {
            i: result for i, result in self.run(job) if not self._store.path_of(name, i).exists()
        }

        def take(index: int) -> Arrays:
            result = held.pop(index) if index in held else self._store.read(name, index)
            if result is None:
                raise OSError(f"checkpoint {index} vanished from {str(self._store.folder)!r}")
            return result

        return LocalEngine().reduce(Job(take, range(len(job.parts))), join)

    def share(self, value: Any) -> Any:
        """Return a handle of the inner engine."""
        return self._engine.share(value)

    def run_on_every_node(self, task: Callable[[Any], Any], part: Any) -> None:
        """Run a short task on every machine of the inner engine."""
        self._engine.run_on_every_node(task, part)

    def restore_or_make(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return what was made at this point of the earlier run, or else make and store it."""
        # Calls are matched by order: the n-th call resumes the n-th call of the earlier run.
        index = self._n_calls[name]
        self._n_calls[name] += 1
        made = make()

        def check(_: int, stored: Arrays) -> None:
            forms = [{k: (v.dtype, v.shape) for k, v in a.items()} for a in (stored, made)]
            if forms[0] != forms[1]:
                raise InvalidInputError("it has other arrays than those made now")

        stored = self._store.read(name, index, check)
        if stored is None:
            self._store.write(name, index, made)
        return made if stored is None else stored
