"""Updates of a forest: trees that are sent as objects, that stay with actors, or that stay here.

Whatever does the update, the estimator must have all trees afterwards. So both ways end with trees
on their way back; what differs is whether they, and the samples, have to be sent first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import evergrow
from benchmarks.data import mixture
from benchmarks.measure import THREADS, Figure, report
from evergrow import _core
from evergrow.forest.by_groups import _standardised
from evergrow.forest.standardize import Standardization
from evergrow.forest.storing import Batch, room_to_change, store_more
from evergrow.forest.teach import core_plan, extend
from evergrow.forest.tree_groups import arrays_of, forest_of

__all__ = ["run"]

_STRATEGIES = ("uls", "igt", "rtst", "rust")
_N_TREES, _N_NEW, _N_WORKERS, _REPEATS = 16, 1000, 2, 3

_NONE: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

Arrays = dict[str, npt.NDArray[Any]]


def run(quick: bool) -> None:
    """Time one update by each strategy, in each of three ways."""
    split = mixture(8000, 64, 20, n_test=1) if quick else mixture(50_000, 256, 100, n_test=1)
    figures = []
    with evergrow.cluster("local", n_workers=_N_WORKERS):
        for strategy in _STRATEGIES:
            lesson = _Lesson.of(split.X, split.y, strategy)
            with _actors(lesson) as actors:
                ways: dict[str, Callable[[], _core.Forest]] = {
                    "here": lesson.here,
                    "objects": lesson.by_objects,
                    "actors": lambda lesson=lesson, actors=actors: lesson.by_actors(actors),  # type: ignore[misc]
                }
                expected = _digest(lesson.here())
                for name, way in ways.items():
                    assert _digest(way()) == expected, f"{name} gives another forest"
                    figures.append(Figure(f"{strategy}, {name}, s", _seconds(way)))
    report("cluster", f"{split.name}, {_N_NEW} new", figures, bars=False)


@dataclass(frozen=True)
class _Lesson:
    """A forest, and what it is to learn next."""

    known: Any
    recipe: Any
    labels: Any
    batch: Batch
    samples: _core.Samples
    numbers: npt.NDArray[np.int32]
    plan: dict[str, Any]

    @classmethod
    def of(cls, X: npt.NDArray[Any], y: npt.NDArray[Any], strategy: str) -> _Lesson:
        """All samples but the last ones are known."""
        forest = evergrow.NCMForestClassifier(
            _N_TREES, update=strategy, n_jobs=THREADS, random_state=0
        )
        with evergrow.cluster(None):
            known = forest.fit(X[:-_N_NEW], y[:-_N_NEW])._fitted
        labels, codes = known.labels.extend(y[-_N_NEW:])
        ids = known.history.n_seen + np.arange(_N_NEW, dtype=np.int64)
        batch, recipe = Batch(X[-_N_NEW:], codes, ids), forest._recipe()
        room = room_to_change(recipe, known.forest.samples, len(labels), n_new=_N_NEW)
        samples, numbers = store_more(
            known.forest.samples, batch, known.standardization, recipe, room
        )
        history = replace(known.history, n_updates=known.history.n_updates + 1)
        plan = core_plan(recipe, history, len(labels), known)
        return cls(known, recipe, labels, batch, samples, numbers, plan)

    @property
    def proposer(self) -> str:
        """How nodes are split."""
        return str(self.plan["rules"]["proposer"])

    def here(self) -> _core.Forest:
        """The update as estimators do it."""
        return extend(self.known, self.labels, self.batch, self.recipe)[0].forest

    def by_objects(self) -> _core.Forest:
        """Samples and trees are sent, each group of trees to whoever is free."""
        import ray

        identity = Standardization.identity(self.samples.n_features)
        numbers = np.arange(len(self.samples), dtype=np.int32)
        rows = _standardised(self.samples.take(numbers), identity, half=False)
        shared = [
            ray.put(value) for value in (rows, self.samples.classes, self.samples.ids, self.plan)
        ]
        task: Any = ray.remote(_update_objects)
        results = [
            task.remote(first, arrays_of(self.known.forest.group(first, 2)), self.numbers, *shared)
            for first in range(0, _N_TREES, 2)
        ]
        return self._joined(results)

    def by_actors(self, actors: list[Any]) -> _core.Forest:
        """Only new samples are sent."""
        import ray

        new = ray.put(self.samples.take(self.numbers))
        codes, ids = self.batch.codes, self.batch.ids
        return self._joined([actor.update.remote(new, codes, ids, self.plan) for actor in actors])

    def _joined(self, results: list[Any]) -> _core.Forest:
        import ray

        n_classes = len(self.labels)
        groups = [
            forest_of(ray.get(result), self.samples, self.proposer, n_classes) for result in results
        ]
        return _core.Forest.joined(self.samples, groups)


def _update_objects(
    first_tree: int,
    arrays: Arrays,
    numbers: npt.NDArray[np.int32],
    rows: npt.NDArray[Any],
    classes: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int64],
    plan: dict[str, Any],
) -> Arrays:
    n_features = rows.shape[1]
    samples = _core.Samples.over(rows, classes, ids, n_features=n_features)
    forest = forest_of(arrays, samples, plan["rules"]["proposer"], plan["n_classes"])
    return _updated(forest, samples, numbers, plan, first_tree)


def _updated(
    forest: _core.Forest,
    samples: _core.Samples,
    numbers: npt.NDArray[np.int32],
    plan: dict[str, Any],
    first_tree: int,
) -> Arrays:
    updated, _ = forest.update(
        samples=samples,
        rows=numbers,
        evicted=_NONE,
        plan=plan,
        n_threads=1,
        progress=None,
        first_tree=first_tree,
    )
    return arrays_of(updated)


class _Keeper:
    """Keeps some trees and reads all samples where they lie."""

    def __init__(
        self,
        first_tree: int,
        arrays: Arrays,
        rows: npt.NDArray[Any],
        classes: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int64],
        plan: dict[str, Any],
    ) -> None:
        self.first_tree = first_tree
        self.samples = _core.Samples.over(rows, classes, ids, n_features=rows.shape[1])
        proposer = plan["rules"]["proposer"]
        self.forest = forest_of(arrays, self.samples, proposer, plan["n_classes"])

    def update(
        self,
        rows: npt.NDArray[Any],
        codes: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int64],
        plan: dict[str, Any],
    ) -> Arrays:
        """The trees after an update; they are not kept, so that the next is timed alike."""
        samples = self.samples.copy()
        numbers = samples.add(len(rows))
        samples.write(numbers, rows, codes, ids, Standardization.identity(rows.shape[1]).core)
        return _updated(self.forest, samples, numbers, plan, self.first_tree)


@contextmanager
def _actors(lesson: _Lesson) -> Iterator[list[Any]]:
    import ray

    stored = lesson.known.forest.samples
    identity = Standardization.identity(stored.n_features)
    rows = _standardised(stored.take(np.arange(len(stored), dtype=np.int32)), identity, half=False)
    shared = [ray.put(value) for value in (rows, stored.classes, stored.ids, lesson.plan)]
    keeper: Any = ray.remote(num_cpus=0)(_Keeper)
    n_each = _N_TREES // _N_WORKERS
    actors = [
        keeper.remote(first, arrays_of(lesson.known.forest.group(first, n_each)), *shared)
        for first in range(0, _N_TREES, n_each)
    ]
    try:
        yield actors
    finally:
        for actor in actors:
            ray.kill(actor)


def _digest(forest: _core.Forest) -> int:
    return hash(
        tuple(
            array.tobytes()
            for tree in range(len(forest))
            for array in forest.tree_arrays(tree).values()
        )
    )


def _seconds(way: Callable[[], Any]) -> float:
    """The least of some: what else the machine does only adds."""
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    return min(times)
