"""The driver's side of updates: resident trees, which workers hold between updates.

The driver always has the complete forest. Workers hold copies of groups of its trees: an update
sends them the new samples, and they send back what changed in the trees. So nothing depends on a
worker: if one is lost, its group is loaded again elsewhere, and a failed update changes nothing.
"""

from __future__ import annotations

import uuid
import weakref
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from evergrow import _core
from evergrow.estimators.forest.cluster.worker_grow import Group
from evergrow.estimators.forest.cluster.worker_update import (
    TreeUpdateTask,
    load_group,
    tree_changes,
    update_counts,
    update_group,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.scratch_file import standardize_all
from evergrow.estimators.forest.value.fitted import Codes, FittedForest
from evergrow.estimators.forest.value.sample_matrix import SampleMatrix
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import Engine, Job, VersionChange, current_engine

# Estimated: sending and receiving the changes of RTST and RUST takes about half as long as the
# update itself on as many processors, so twice the threads gain nothing and four times do.
_FEWEST_TIMES = 4


@dataclass(frozen=True)
class _Version:
    """The engine that updated a forest last, and the name of its resident trees if it has any."""

    engine: Engine
    name: str | None
    groups: tuple[Group, ...]


# Forests are immutable: after forget or rename a forest is another value, which is not in here.
_versions: weakref.WeakKeyDictionary[FittedForest, _Version] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class ResidentTrees:
    """A forest whose trees are held by workers; ``after`` names its version after the update."""

    engine: Engine
    known: FittedForest
    before: str
    after: str
    groups: tuple[Group, ...]

    def update(
        self,
        samples: _core.Samples,
        numbers: Codes,
        evicted: Codes,
        request: ForestRequest,
        plan: _core.UpdatePlan,
    ) -> tuple[_core.Forest, _core.UpdateReport]:
        """Update the trees as ``_core.Forest.update``; ``numbers`` are the new rows."""
        capacity = self.engine.capacity
        task = TreeUpdateTask(
            samples.take(numbers),
            samples.classes[numbers],
            samples.ids[numbers],
            None if samples.weights is None else samples.weights[numbers],
            numbers,
            evicted,
            plan,
            capacity.threads_per_worker if capacity.is_remote else request.n_threads,
        )
        try:
            return self._run(task, samples, request.verbose)
        except BaseException:
            self.engine.release(self.after)
            raise

    def _run(
        self, task: TreeUpdateTask, samples: _core.Samples, verbose: int
    ) -> tuple[_core.Forest, _core.UpdateReport]:
        found: list[Any] = [None] * len(self.groups)
        counts: Counter[str] = Counter()
        parts = [None] * len(self.groups)
        job = Job(update_group, parts, [task], "updating groups of trees", verbose)
        versions = VersionChange(self.before, self.after, self._load)
        for place, arrays in self.engine.update(job, versions):
            found[place] = _core.Forest.changed(
                samples=samples,
                changes=tree_changes(arrays),
                n_classes=task.plan.n_classes,
                before=self.known.forest.group(*self.groups[place]),
            )
            counts.update(update_counts(arrays))
        return _core.Forest.joined(samples, found), _core.UpdateReport(**counts)

    def _load(self, place: int) -> tuple[Any, list[Any]]:
        first_tree, n_trees = self.groups[place]
        forest = self.known.forest
        changes = forest.group(first_tree, n_trees).changes_since(None)
        about = [first_tree, changes, forest.n_classes, forest.samples.n_features]
        return load_group, [*about, *self._samples]

    @cached_property
    def _samples(self) -> list[Any]:
        samples = self.known.forest.samples
        numbers = np.arange(len(samples), dtype=np.int32)
        plain = Standardization.identity(samples.n_features)
        rows = standardize_all(SampleMatrix(samples, numbers), plain, half=samples.half)
        values = (rows, samples.classes, samples.ids, samples.weights)
        return [None if value is None else self.engine.share(value) for value in values]


def resident_trees(known: FittedForest, request: ForestRequest) -> ResidentTrees | None:
    """The resident trees of a forest that workers update; None if it is updated here."""
    engine = current_engine()
    if engine is None or not _can_be_resident(known, request):
        return None
    version = _versions.get(known)
    if version is not None and version.engine is not engine:
        version = None
    if engine.capacity.updates != "workers" and (
        engine.capacity.updates == "here" or version is None or not _is_worth_it(engine, request)
    ):
        return None
    if version is None or version.name is None:
        groups = _even_groups(len(known.forest), engine.capacity.n_workers)
        version = _note(known, engine, _new_name(), groups)
    return ResidentTrees(engine, known, str(version.name), _new_name(), version.groups)


def note_update(fitted: FittedForest, resident: ResidentTrees | None) -> None:
    """Record the engine and resident trees of a forest that was just updated."""
    engine = current_engine()
    if resident is not None:
        _note(fitted, resident.engine, resident.after, resident.groups)
    elif engine is not None:
        _versions[fitted] = _Version(engine, None, ())


def _note(fitted: FittedForest, engine: Engine, name: str, groups: tuple[Group, ...]) -> _Version:
    version = _versions[fitted] = _Version(engine, name, groups)
    # When the forest is freed, so are the copies that workers hold.
    weakref.finalize(fitted, engine.release, name).atexit = False
    return version


def _can_be_resident(known: FittedForest, request: ForestRequest) -> bool:
    """False if rows are in a named file or a scratch file, which only this machine can read."""
    in_memory = request.memory_limit is None and known.forest.samples.path is None
    return in_memory and known.has_training_rows


def _is_worth_it(engine: Engine, request: ForestRequest) -> bool:
    n_there = engine.capacity.n_workers * engine.capacity.threads_per_worker
    return request.strategy._grows_again and n_there >= _FEWEST_TIMES * request.n_threads


def _even_groups(n_trees: int, n_workers: int) -> tuple[Group, ...]:
    """One group per worker, or per tree if there are fewer trees.

    >>> _even_groups(10, 4)
    ((0, 2), (2, 3), (5, 2), (7, 3))
    """
    n_groups = min(n_trees, n_workers)
    ends = [n_trees * group // n_groups for group in range(n_groups + 1)]
    return tuple((first, last - first) for first, last in pairwise(ends))


def _new_name() -> str:
    return uuid.uuid4().hex
