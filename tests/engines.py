"""Engines for tests: whatever an engine may do to the parts of a piece of work, these do."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evergrow.engine import Arrays, Check, InProcess, Join, Shared, Task, using


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
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    return value


def _read_only(arrays: Arrays) -> Arrays:
    assert isinstance(arrays, dict)
    for name, array in arrays.items():
        assert isinstance(name, str)
        assert isinstance(array, np.ndarray)
        array.setflags(write=False)
    return arrays
