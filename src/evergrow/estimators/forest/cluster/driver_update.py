"""Updates of forests whose trees stay with the workers of the engine in use.

A forest here is always complete. Workers have copies of groups of its trees; an update sends them
the new samples, and what changed in the trees comes back. So nothing depends on a worker: one that
is lost is given its group again, and an update that fails has changed nothing here.
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
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.cluster.driver_grow import standardize_all
from evergrow.estimators.forest.cluster.worker_update import (
    TreeUpdateTask,
    load_group,
    tree_changes,
    update_counts,
    update_group,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.sample_matrix import SampleMatrix
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import Engine, Job, VersionChange, current_engine

# Strategies that compute much for what they change; with the others a worker would take as long to
# send what it changed as it takes to change it here.
_GROWS_AGAIN = ("rtst", "rust")
# Estimated: sending and taking in what RTST and RUST change takes about as long as half of the
# update on as many processors, so twice the threads gain nothing and four times do.
_FEWEST_TIMES = 4

Codes = npt.NDArray[np.int32]
# First tree, and number of trees.
Group = tuple[int, int]


@dataclass(frozen=True)
class _Version:
    """Who has updated a forest last, and the name of its trees there if they stay with workers."""

    engine: Engine
    name: str | None
    groups: tuple[Group, ...]


# Forests never change, so one that was forgotten from, or renamed, is another and not in here.
_versions: weakref.WeakKeyDictionary[FittedForest, _Version] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class ResidentTrees:
    """A forest whose trees are, or will be, with workers; ``after`` names its next version."""

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
        plan: Any,
    ) -> tuple[_core.Forest, dict[str, Any]]:
        """What ``_core.Forest.update`` gives; ``numbers`` are the new rows of the samples."""
        engine = self.engine
        task = TreeUpdateTask(
            samples.take(numbers),
            samples.classes[numbers],
            samples.ids[numbers],
            numbers,
            evicted,
            plan,
            engine.capacity.threads_per_worker if engine.capacity.is_remote else request.n_threads,
        )
        try:
            return self._changed(samples, task, request.verbose)
        except BaseException:
            engine.release(self.after)
            raise

    def _changed(
        self, samples: _core.Samples, task: TreeUpdateTask, verbose: int
    ) -> tuple[_core.Forest, dict[str, Any]]:
        found: list[Any] = [None] * len(self.groups)
        done: Counter[str] = Counter()
        parts = [None] * len(self.groups)
        job = Job(update_group, parts, [task], "updating groups of trees", verbose)
        versions = VersionChange(self.before, self.after, self._load)
        for place, arrays in self.engine.update(job, versions):
            found[place] = _core.Forest.changed(
                samples=samples,
                changes=tree_changes(arrays),
                n_classes=task.plan["n_classes"],
                before=self.known.forest.group(*self.groups[place]),
            )
            done.update(update_counts(arrays))
        return _core.Forest.joined(samples, found), dict(done)

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
        return [self.engine.share(value) for value in (rows, samples.classes, samples.ids)]


def resident_trees(known: FittedForest, request: ForestRequest) -> ResidentTrees | None:
    """The groups of a forest that workers are to update; None where it is updated here."""
    engine = current_engine()
    if engine is None or not _can_be_kept(known, request):
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


def note_update(fitted: FittedForest, kept: ResidentTrees | None) -> None:
    """Remember who has the trees of a forest that was just updated."""
    engine = current_engine()
    if kept is not None:
        _note(fitted, kept.engine, kept.after, kept.groups)
    elif engine is not None:
        _versions[fitted] = _Version(engine, None, ())


def _note(fitted: FittedForest, engine: Engine, name: str, groups: tuple[Group, ...]) -> _Version:
    version = _versions[fitted] = _Version(engine, name, groups)
    # Who lets go of the forest lets go of its copy.
    weakref.finalize(fitted, engine.release, name).atexit = False
    return version


def _can_be_kept(known: FittedForest, request: ForestRequest) -> bool:
    """Rows of a named file, and those beyond the memory limit, are on a disk of this machine."""
    in_memory = request.memory_limit is None and known.forest.samples.path is None
    return in_memory and known.has_training_rows


def _is_worth_it(engine: Engine, request: ForestRequest) -> bool:
    n_there = engine.capacity.n_workers * engine.capacity.threads_per_worker
    return request.strategy in _GROWS_AGAIN and n_there >= _FEWEST_TIMES * request.n_threads


def _even_groups(n_trees: int, n_workers: int) -> tuple[Group, ...]:
    """As many groups as there are workers to update them, or trees.

    >>> _even_groups(10, 4)
    ((0, 2), (2, 3), (5, 2), (7, 3))
    """
    n_groups = min(n_trees, n_workers)
    ends = [n_trees * group // n_groups for group in range(n_groups + 1)]
    return tuple((first, last - first) for first, last in pairwise(ends))


def _new_name() -> str:
    return uuid.uuid4().hex
