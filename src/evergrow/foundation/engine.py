"""Where work runs: in this process, or on the workers of a cluster.

Estimators cut long work into parts and hand them to the engine in use, if there is one. They know
nothing of what is behind it; :func:`evergrow.cluster` brings one that has workers elsewhere.
What a part gives is a dictionary of arrays: it crosses the borders of processes without a copy, and
can be kept in a file from which nothing but arrays is ever read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from evergrow.foundation.progress import progress_bar

__all__ = [
    "Arrays",
    "Change",
    "Check",
    "Engine",
    "InProcess",
    "Join",
    "Load",
    "Shared",
    "Step",
    "Task",
    "engine_in_use",
    "in_order",
    "using",
]

Arrays = dict[str, npt.NDArray[Any]]
# A function of a module, so that workers find it by its name: task(part, *shared values).
Task = Callable[..., Arrays]
# Puts the results of two neighbouring parts together, the first one first.
Join = Callable[[Arrays, Arrays], Arrays]
# Looks at the result of a part, by its place; an error says that it cannot be used.
Check = Callable[[int, Arrays], None]
# Makes a changed value of one that stays with a worker: change(value, part, *shared values) gives
# it, and what is to be known of it here.
Change = Callable[..., tuple[Any, Arrays]]
# What makes the value of a place, a function of a module, and what it is given.
Load = Callable[[int], tuple[Callable[..., Any], Sequence[Any]]]


@dataclass(frozen=True)
class Step:
    """From one version of values that stay with workers to the next, by their names.

    ``load`` says what makes those before it, for a worker that has none or is lost.
    """

    before: str
    after: str
    load: Load


class Shared(Protocol):
    """A value that every task may read and none may change."""


class Engine(Protocol):
    """Runs the parts of a piece of work, again where a worker fails, and gathers what they give."""

    @property
    def n_workers(self) -> int:
        """How many parts run at the same time."""

    @property
    def is_remote(self) -> bool:
        """Whether parts run in other processes, so that what they need has to travel."""

    @property
    def keeps_results(self) -> bool:
        """Whether work should have a name, which may take long to find for large data."""

    @property
    def threads_per_worker(self) -> int:
        """Threads that one part may use."""

    @property
    def updates(self) -> str:
        """Where forests are updated: "here", "workers", or "auto"."""

    def share(self, value: Any) -> Shared:
        """Make a value available to tasks; arrays are not copied again for each."""

    def on_every_node(self, task: Task, part: Any) -> None:
        """Do something small on every machine that parts may have run on, if it can be reached."""

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """What ``make`` gives, or gave under this name to a run that is resumed.

        For what is drawn by chance: work that goes on must go on with the same numbers.
        """

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
        """Give (place of the part, result) in the order in which they finish.

        ``what`` is said by the progress bar. ``name`` names the work by all that its results depend
        on, such as hashes of data and parameters: an engine that keeps results may then give those
        of an earlier run. Work without a name is never kept. ``check`` is asked before a result of
        an earlier run is given; one that it refuses is computed again.
        """

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
        """The results of all parts joined into one, two neighbours at a time.

        Which are joined when depends on the number of parts alone, so rounding is the same for any
        number of workers.
        """

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
        """Change values that stay with workers, one for each part; results as from ``run``.

        The version before stays too, so that a change that fails can be made again, until
        :meth:`let_go` is told its name.
        """

    def let_go(self, name: str) -> None:
        """Drop a version of values, if there is one, at any time and from any thread."""


class InProcess:
    """The engine that is a plain loop: one part after the other, in this thread."""

    updates = "here"
    n_workers = 1
    threads_per_worker = 1
    is_remote = False
    keeps_results = False

    def __init__(self) -> None:
        self._values: dict[str, dict[int, Any]] = {}

    def share(self, value: Any) -> Shared:
        """Give the value itself."""
        shared: Shared = value
        return shared

    def on_every_node(self, task: Task, part: Any) -> None:
        """Do it here."""
        task(part)

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:  # noqa: ARG002
        """What ``make`` gives."""
        return make()

    def run(
        self,
        task: Task,
        parts: Sequence[Any],
        shared: Sequence[Shared] = (),
        *,
        what: str,
        verbose: int = 0,
        name: str | None = None,  # noqa: ARG002
        check: Check | None = None,  # noqa: ARG002
    ) -> Iterator[tuple[int, Arrays]]:
        """Give (place of the part, result) in order."""
        with progress_bar(what, len(parts), verbose) as progress:
            for place, part in enumerate(parts):
                yield place, task(part, *shared)
                if progress is not None:
                    progress(place + 1)

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
        """The results of all parts joined into one, two neighbours at a time."""
        waiting: list[tuple[int, Arrays]] = []
        for _, result in self.run(task, parts, shared, what=what, verbose=verbose, name=name):
            waiting.append((0, result))
            # Of a finished pair nothing is held: there are never more than log2(parts) results.
            while len(waiting) > 1 and waiting[-2][0] == waiting[-1][0]:
                (height, first), (_, second) = waiting[-2:]
                waiting[-2:] = [(height + 1, join(first, second))]
        while len(waiting) > 1:
            (height, first), (_, second) = waiting[-2:]
            waiting[-2:] = [(height + 1, join(first, second))]
        return waiting[0][1]

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
        """Change values that are kept here."""
        before = self._values.setdefault(step.before, {})
        after: dict[int, Any] = {}
        with progress_bar(what, len(parts), verbose) as progress:
            for place, part in enumerate(parts):
                if place not in before:
                    make, values = step.load(place)
                    before[place] = make(*values)
                after[place], result = change(before[place], part, *shared)
                yield place, result
                if progress is not None:
                    progress(place + 1)
        self._values[step.after] = after

    def let_go(self, name: str) -> None:
        """Drop a version of values."""
        self._values.pop(name, None)


def in_order(results: Iterator[tuple[int, Arrays]]) -> Iterator[tuple[int, Arrays]]:
    """What :meth:`Engine.run` gives in the order of the parts, each as soon as it can be.

    >>> list(in_order(iter([(1, {}), (0, {}), (2, {})])))
    [(0, {}), (1, {}), (2, {})]
    """
    waiting: dict[int, Arrays] = {}
    place = 0
    for finished, result in results:
        waiting[finished] = result
        while place in waiting:
            yield place, waiting.pop(place)
            place += 1


_in_use: ContextVar[Engine | None] = ContextVar("engine", default=None)


def engine_in_use() -> Engine | None:
    """The engine that long work is handed to; None where it is done as if there were no engines."""
    return _in_use.get()


@contextmanager
def using(engine: Engine | None) -> Iterator[None]:
    """Hand long work to an engine while the block runs, in this thread."""
    before = _in_use.set(engine)
    try:
        yield
    finally:
        _in_use.reset(before)
