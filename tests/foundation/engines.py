"""Engines for tests: whatever an engine may do to the parts of a piece of work, these do."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from evergrow.foundation.engine import (
    Arrays,
    Capacity,
    Engine,
    Job,
    Join,
    use_engine,
)


class Shuffled(Engine):
    """Parts run and finish in any order, and all that comes or goes is pickled.

    Attributes
    ----------
    sizes : list of int
        Bytes of the arrays that each part returned.
    jobs : list of Job
        The jobs that were run.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        has_checkpoints: bool = False,
        n_workers: int = 3,
        repeats: bool = False,
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._capacity = Capacity(n_workers, is_remote=True)
        self.has_checkpoints = has_checkpoints
        # Whether every other part runs twice, as after the loss of a worker.
        self._repeats = repeats
        self.sizes: list[int] = []
        self.jobs: list[Job] = []

    @property
    def capacity(self) -> Capacity:
        return self._capacity

    def share(self, value: Any) -> Any:
        """Return bytes."""
        return pickle.dumps(value)

    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        """Yield results in any order."""
        self.jobs.append(job)
        for index in self._random.permutation(len(job.parts)).tolist():
            task, part = pickle.loads(pickle.dumps((job.task, job.parts[index])))
            # A worker has no engine.
            with use_engine(None):
                for _ in range(1 + (self._repeats and index % 2)):
                    result = task(part, *map(_received, job.shared))
            self.sizes.append(sum(array.nbytes for array in result.values()))
            yield index, _read_only(pickle.loads(pickle.dumps(result)))

    def reduce(self, job: Job, join: Join) -> Arrays:
        return _read_only(pickle.loads(pickle.dumps(super().reduce(job, join))))


def _received(value: Any) -> Any:
    """A shared value or handle as a worker receives it."""
    return _closed(pickle.loads(value if isinstance(value, bytes) else pickle.dumps(value)))


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
