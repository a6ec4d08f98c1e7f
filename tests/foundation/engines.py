"""Engines for tests: whatever an engine may do to the parts of a piece of work, these do."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evergrow.foundation.engine import (
    Arrays,
    Change,
    Check,
    InProcess,
    Join,
    Shared,
    Step,
    Task,
    using,
)


class Shuffled:
    """Parts run and finish in any order, and all that comes or goes is pickled.

    Attributes
    ----------
    sizes : list of int
        Bytes of the arrays that each part gave.
    names : list of str or None
        Names of the pieces of work.
    works : list of str
        What was said to be done.
    values : dict
        What stays with workers, by version and place; whatever is taken out is lost.
    loads : list of int
        Places whose value was made.
    """

    n_workers = 3
    threads_per_worker = 1
    is_remote = True

    def __init__(self, seed: int = 0, *, keeps_results: bool = False) -> None:
        self._random = np.random.default_rng(seed)
        self.keeps_results = keeps_results
        self.sizes: list[int] = []
        self.names: list[str | None] = []
        self.works: list[str] = []
        self.updates = "here"
        self.loads: list[int] = []
        self.values: dict[tuple[str, int], Any] = {}
        self.before_change: Callable[[int], None] = lambda place: None

    def share(self, value: Any) -> Shared:
        """Give bytes."""
        return pickle.dumps(value)

    def on_every_node(self, task: Task, part: Any) -> None:
        """Do it here."""
        task(part)

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:
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
        name: str | None = None,
        check: Check | None = None,
    ) -> Iterator[tuple[int, Arrays]]:
        """Give results in any order."""
        self.names.append(name)
        self.works.append(what)
        for place in self._random.permutation(len(parts)).tolist():
            yield place, self._result(task, parts[place], shared)

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
        """Join results as the plain loop does, whenever they came."""
        found = dict(self.run(task, parts, shared, what=what, verbose=verbose, name=name))
        joined = InProcess().fold(_given, [found[i] for i in range(len(parts))], join, what=what)
        return _read_only(pickle.loads(pickle.dumps(joined)))

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
        """Change values in any order."""
        self.works.append(what)
        values = [_closed(pickle.loads(value)) for value in shared]
        for place in self._random.permutation(len(parts)).tolist():
            self.before_change(place)
            before, after = (step.before, place), (step.after, place)
            if before not in self.values:
                self.loads.append(place)
                make, given = step.load(place)
                made = [_closed(pickle.loads(v)) if isinstance(v, bytes) else v for v in given]
                with using(None):
                    self.values[before] = make(*made)
            part = pickle.loads(pickle.dumps(parts[place]))
            with using(None):
                self.values[after], result = change(self.values[before], part, *values)
            self.sizes.append(sum(array.nbytes for array in result.values()))
            yield place, _read_only(pickle.loads(pickle.dumps(result)))

    def let_go(self, name: str) -> None:
        """Drop the values of a version."""
        for key in [key for key in self.values if key[0] == name]:
            del self.values[key]

    def _result(self, task: Task, part: Any, shared: Sequence[Shared]) -> Arrays:
        work = pickle.loads(pickle.dumps((task, part)))
        values = [_closed(pickle.loads(value)) for value in shared]
        # Where tasks run elsewhere no engine is in use.
        with using(None):
            result = work[0](work[1], *values)
        self.sizes.append(sum(array.nbytes for array in result.values()))
        return _read_only(pickle.loads(pickle.dumps(result)))


def _given(part: Arrays) -> Arrays:
    return part


def _closed(value: Any) -> Any:
    """An array as stores of objects give it: read only, at a multiple of 64 bytes."""
    if not isinstance(value, np.ndarray):
        return value
    memory = np.empty(value.nbytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    placed = memory[first : first + value.nbytes].view(value.dtype).reshape(value.shape)
    placed[...] = value
    placed.setflags(write=False)
    return placed


def _read_only(arrays: Arrays) -> Arrays:
    assert isinstance(arrays, dict)
    for name, array in arrays.items():
        assert isinstance(name, str)
        assert isinstance(array, np.ndarray)
        array.setflags(write=False)
    return arrays
