"""Where long work runs: in this process, or on the workers of a cluster.

An estimator cuts long work into independent parts, a :class:`Job`, and gives it to the current
engine if there is one. It knows nothing else of the engine; :func:`evergrow.cluster` sets one that
runs parts on a Ray cluster. The result of a part is a dictionary of arrays: it crosses process
boundaries without a copy, and a checkpoint can store it in a file that holds nothing but arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import numpy.typing as npt

from evergrow.foundation.progress import progress_bar

Arrays = dict[str, npt.NDArray[Any]]
# A module-level function, so that workers can import it by name: task(part, *shared values).
Task = Callable[..., Arrays]
# Combines the results of two adjacent parts, the first one first.
Join = Callable[[Arrays, Arrays], Arrays]
# Raises an error if the checkpointed result of a part, given by index, cannot be used.
Check = Callable[[int, Arrays], None]


@dataclass(frozen=True, eq=False)
class Job:
    """Work cut into parts that can run in any order and anywhere.

    Attributes
    ----------
    task : Task
        Called as ``task(part, *shared)`` for every part.
    parts : sequence
        What distinguishes one call from another.
    shared : sequence
        Values that every call reads and none may change, or handles from :meth:`Engine.share`.
    description : str
        Names the work in progress bars and error messages.
    verbose : int
        Whether to show a progress bar.
    name : str or None
        Identifies the results by everything they depend on, such as hashes of data and parameters,
        so that an engine with checkpoints can reuse them. Results without a name are not stored.
    check : Check or None
        Called before a checkpointed result is used; one that it rejects is computed again.
    """

    task: Callable[..., Any]
    parts: Sequence[Any]
    shared: Sequence[Any] = ()
    description: str = "working"
    verbose: int = 0
    name: str | None = None
    check: Check | None = None


@dataclass(frozen=True)
class Capacity:
    """How many parts an engine runs at the same time, and how."""

    n_workers: int = 1
    # Threads that one part may use.
    threads_per_worker: int = 1
    # Whether parts run in other processes, so that their input has to be sent.
    is_remote: bool = False


class Engine(ABC):
    """Runs the parts of a job, retries where a worker fails, and gathers the results."""

    # Whether jobs should have a name, which can be slow to compute for large data.
    has_checkpoints: bool = False

    @property
    def capacity(self) -> Capacity:
        """What can run at the same time; it may change while a cluster grows."""
        return Capacity()

    @abstractmethod
    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        """Yield (index of the part, result) as parts finish."""

    def reduce(self, job: Job, join: Join) -> Arrays:
        """Join the results of all parts into one, two neighbours at a time.

        The order of joins depends on the number of parts alone, so rounding is the same for any
        number of workers.
        """
        pending = PendingJoins(len(job.parts))
        for index, result in self.run(job):
            pair = pending.add(index, result)
            while pair is not None:
                number, first, second = pair
                pair = pending.add(number, join(first, second))
        return cast("Arrays", pending.last)

    def share(self, value: Any) -> Any:
        """Return a handle to a value for several jobs, so that it is sent only once."""
        return value

    def run_on_every_node(self, task: Callable[[Any], Any], part: Any) -> None:
        """Run a short task on every machine that parts may have used, if it can be reached."""
        task(part)

    def restore_or_make(self, name: str, make: Callable[[], Arrays]) -> Arrays:  # noqa: ARG002
        """Return what ``make`` returned in the run that is resumed, or else call it.

        For random draws: a resumed run must go on with the same numbers.
        """
        return make()


class LocalEngine(Engine):
    """Runs one part after the other, in this thread."""

    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        """Yield (index of the part, result) in order."""
        with progress_bar(job.description, len(job.parts), job.verbose) as progress:
            for index, part in enumerate(job.parts):
                yield index, job.task(part, *job.shared)
                if progress is not None:
                    progress(index + 1)


def in_order(results: Iterator[tuple[int, Arrays]]) -> Iterator[tuple[int, Arrays]]:
    """Yield the results of :meth:`Engine.run` in the order of the parts, as early as possible.

    >>> list(in_order(iter([(1, {}), (0, {}), (2, {})])))
    [(0, {}), (1, {}), (2, {})]
    """
    waiting: dict[int, Arrays] = {}
    next_index = 0
    for index, result in results:
        waiting[index] = result
        while next_index in waiting:
            yield next_index, waiting.pop(next_index)
            next_index += 1


def join_order(n_parts: int) -> list[tuple[int, int]]:
    """Return the pairs of results to join, in order; the result of a pair gets the next number.

    The order depends on the number of parts alone, so that sums are rounded the same way by every
    engine.

    >>> join_order(4)
    [(0, 1), (2, 3), (4, 5)]
    >>> join_order(3)
    [(0, 1), (3, 2)]
    """
    pairs: list[tuple[int, int]] = []

    def join(first: int, last: int) -> int:
        if last - first == 1:
            return first
        # The largest power of two that leaves something to join with.
        middle = first + (1 << (last - first - 1).bit_length() - 1)
        pairs.append((join(first, middle), join(middle, last)))
        return n_parts + len(pairs) - 1

    if n_parts > 1:
        join(0, n_parts)
    return pairs


class PendingJoins:
    """Results that wait for the one they are joined with."""

    def __init__(self, n_parts: int) -> None:
        self._pair_of: dict[int, tuple[int, int, int]] = {}
        for number, (first, second) in enumerate(join_order(n_parts)):
            self._pair_of[first] = self._pair_of[second] = (n_parts + number, first, second)
        self._waiting: dict[int, Any] = {}

    def add(self, number: int, result: Any) -> tuple[int, Any, Any] | None:
        """Add a result; return (number, first, second) of the pair it completes, if any."""
        self._waiting[number] = result
        pair = self._pair_of.get(number)
        if pair is None or pair[1] not in self._waiting or pair[2] not in self._waiting:
            return None
        number, first, second = pair
        return number, self._waiting.pop(first), self._waiting.pop(second)

    @property
    def last(self) -> Any:
        """The only result left."""
        (result,) = self._waiting.values()
        return result


_current: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current_engine() -> Engine | None:
    """Return the engine that runs long work, or None if work is not cut into parts."""
    return _current.get()


@contextmanager
def use_engine(engine: Engine | None) -> Iterator[None]:
    """Run the long work of this thread on an engine for the duration of the block."""
    token = _current.set(engine)
    try:
        yield
    finally:
        _current.reset(token)
