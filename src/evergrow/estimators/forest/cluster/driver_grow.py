"""Forests grown and updated by groups of trees, each group a task of the engine in use."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.cluster.node_files import (
    NodeFile,
    open_node_samples,
    remove_node_file,
)
from evergrow.estimators.forest.cluster.worker_grow import (
    forest_from_arrays,
    grow_over,
    grow_over_rows,
    grow_over_shards,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.budget import MemoryBudget
from evergrow.estimators.forest.storage.placement import ForestBatch, budget_to_grow, store_first
from evergrow.estimators.forest.storage.scratch_file import aligned_rows
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.engine import Arrays, Engine, Job, Task, current_engine
from evergrow.foundation.errors import ClusterWarning, warn_user
from evergrow.foundation.version import __version__
from evergrow.storage.shards import Shards

# Features of all rows of a group: some twentieth of a second of work, many times what it costs to
# hand it out. A worker holds the trees of its group, which may be larger than all it needs besides.
_GROUP_VALUES = 1 << 23
# With fewer groups some workers would end long before others.
_FEWEST_GROUPS = 8

Codes = npt.NDArray[np.int32]


def tree_groups(n_trees: int, values_per_tree: int, n_threads: int) -> list[tuple[int, int]]:
    """(First tree, number of trees) of every group.

    It does not depend on the workers: what a run has finished serves one with other workers.

    >>> tree_groups(10, values_per_tree=1 << 24, n_threads=4)
    [(0, 4), (4, 4), (8, 2)]
    """
    size = _GROUP_VALUES // max(1, values_per_tree)
    size = max(1, min(size, n_trees // _FEWEST_GROUPS))
    # Threads share the trees of their group.
    size = -(-size // n_threads) * n_threads
    return [(first, min(size, n_trees - first)) for first in range(0, n_trees, size)]


def can_grow_in_groups(
    engine: Engine, X: Any, request: ForestRequest, budget: MemoryBudget
) -> bool:
    """Whether tasks of an engine can read the rows; a warning if they cannot.

    Rows of a named file, and those beyond the memory limit, are on a disk of this machine; only
    shards can be read elsewhere too.
    """
    if not engine.capacity.is_remote:
        return True
    why = None
    if request.memory is not None:
        why = "memory= keeps its samples in a file of this machine: leave it out"
    elif budget.in_file and not isinstance(X, Shards):
        why = (
            "memory_limit= keeps the samples of an array on a disk of this machine: put them into "
            "shards with evergrow.write_shards, or leave the limit out"
        )
    if why is not None:
        warn_user(f"the forest is grown here and not on the cluster, because {why}", ClusterWarning)
    return why is None


def grow_in_groups(
    engine: Engine,
    batch: ForestBatch,
    standardization: Standardization,
    growth: dict[str, Any],
    request: ForestRequest,
    budget: MemoryBudget,
) -> _core.Forest:
    """The forest that the core would grow here; ``growth`` is what it is told besides samples."""
    work = _GroupedGrowth(engine, batch, growth, request)
    X, codes, ids = batch.X, batch.codes, batch.ids
    if not engine.capacity.is_remote:
        samples, _ = store_first(batch, standardization, request, budget)
        return work.run(grow_over, [samples], samples, request.n_threads, budget)
    n_threads = engine.capacity.threads_per_worker
    if not budget.in_file:
        rows = standardize_all(X, standardization, half=request.half_samples)
        samples = _core.Samples.over(rows, codes, ids, n_features=X.shape[1])
        return work.run(grow_over_rows, [rows, codes, ids, X.shape[1]], samples, n_threads, budget)
    # Each worker keeps to the limit, with the threads that it has.
    budget = budget_to_grow(replace(request, n_threads=n_threads), X.shape, growth["n_classes"])
    on_node = NodeFile(
        X, standardization, half=request.half_samples, chunk_bytes=budget.chunk_bytes
    )
    try:
        samples = open_node_samples(on_node, codes, ids)
        return work.run(grow_over_shards, [on_node, codes, ids], samples, n_threads, budget)
    finally:
        engine.run_on_every_node(remove_node_file, on_node.name)
        remove_node_file(on_node.name)


@dataclass(frozen=True)
class _GroupedGrowth:
    """Growing one forest, however its rows are read."""

    engine: Engine
    batch: ForestBatch
    growth: dict[str, Any]
    request: ForestRequest

    def run(
        self,
        task: Task,
        values: list[Any],
        samples: _core.Samples,
        n_threads: int,
        budget: MemoryBudget,
    ) -> _core.Forest:
        """Hand out the groups; the task gets the values and what the core is told."""
        engine, request = self.engine, self.request
        n_values = self.growth["rows_per_tree"] * samples.n_features
        groups = tree_groups(request.n_estimators, n_values, n_threads)
        told = {**self.growth, "n_threads": n_threads, "row_budget": budget.row_budget}
        found: list[Any] = [None] * len(groups)

        def take(place: int, arrays: Arrays) -> None:
            proposer = told["rules"]["proposer"]
            forest = forest_from_arrays(arrays, samples, proposer, told["n_classes"])
            if len(forest) != groups[place][1]:
                raise ValueError(f"there are {len(forest)} trees and not {groups[place][1]}")
            found[place] = forest

        job = Job(
            task,
            groups,
            [*values, told],
            "growing groups of trees",
            request.verbose,
            name=self._name(groups) if engine.has_checkpoints else None,
            check=take,
        )
        for place, arrays in engine.run(job):
            if found[place] is None:
                take(place, arrays)
        return _core.Forest.joined(samples, found)

    def _name(self, groups: list[tuple[int, int]]) -> str:
        # Rows of a named file are no centroids, see Samples.
        request, named = self.request, self.request.memory is not None
        about = {"half": request.half_samples, "standardize": request.standardize, "named": named}
        return _name(self.batch.X, self.batch.codes, {**self.growth, **about}, groups)


def resumed_seed(drawn: int, X: Any, codes: Codes, request: ForestRequest, n_classes: int) -> int:
    """The seed of a forest whose user gave none: that of the run that is resumed, if there is one.

    ``drawn`` is the seed if this run is the first.
    """
    engine = current_engine()
    if engine is None or not engine.has_checkpoints:
        return drawn
    told = {
        "n_estimators": request.n_estimators,
        "max_samples": request.max_samples,
        "bootstrap": request.bootstrap,
        "standardize": request.standardize,
        "half": request.half_samples,
        "rules": request.split_rules(n_classes, X.shape[1]),
    }
    name = _name(X, codes, told, ["seed"])
    kept = engine.restore_or_make(name, lambda: {"seed": np.array([drawn], dtype=np.int64)})
    return int(kept["seed"][0])


def standardize_all(X: Any, standardization: Standardization, *, half: bool) -> npt.NDArray[Any]:
    """All rows as the core keeps them, in one array that tasks read where it lies."""
    shape = (X.shape[0], _core.padded_width(X.shape[1]))
    rows = aligned_rows(shape, half=half)
    for part, block in float_blocks(X):
        _core.standardize_rows(block, standardization.core, rows[part])
    rows.setflags(write=False)
    return rows


def _name(X: Any, codes: Codes, told: dict[str, Any], cut: Any) -> str:
    """A hash over all that grown trees depend on."""
    digest = hashlib.sha256()
    # Other kernels round differently; other versions may grow differently.
    about = {"version": __version__, "kernels": _core.chosen_kernel(), "cut": cut, **told}
    digest.update(json.dumps(about, sort_keys=True, default=float).encode())
    digest.update(np.ascontiguousarray(codes).data)
    if isinstance(X, Shards):
        digest.update(X.digest.encode())
    else:
        digest.update(f"{X.shape}{X.dtype.str}".encode())
        for _, block in float_blocks(X):
            digest.update(block.data)
    return f"forest:{digest.hexdigest()}"
