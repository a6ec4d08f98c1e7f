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
from typing import Any, Protocol

import numpy.typing as npt

from evergrow.progress import progress_bar

__all__ = [
    "Arrays",
    "Engine",
    "InProcess",
    "Join",
    "Shared",
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
    ) -> Iterator[tuple[int, Arrays]]:
        """Give (place of the part, result) in the order in which they finish.

        ``what`` is said by the progress bar. ``name`` names the work by all that its results depend
        on, such as hashes of data and parameters: an engine that keeps results may then give those
        of an earlier run. Work without a name is never kept.
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


class InProcess:
    """The engine that is a plain loop: one part after the other, in this thread."""

    n_workers = 1
    threads_per_worker = 1
    is_remote = False
    keeps_results = False

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
