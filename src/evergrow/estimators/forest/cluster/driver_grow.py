"""The driver's side of growing a forest in groups of trees, each a task of the engine in use."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergrow import _core
from evergrow.estimators.forest.cluster.node_files import (
    NodeFile,
    open_node_samples,
    remove_node_file,
)
from evergrow.estimators.forest.cluster.worker_grow import (
    Group,
    GrowthPlan,
    forest_from_arrays,
    grow_over,
    grow_over_rows,
    grow_over_shards,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.budget import MemoryBudget
from evergrow.estimators.forest.storage.placement import budget_to_grow, store_first
from evergrow.estimators.forest.storage.scratch_file import standardize_all
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import Arrays, Engine, Job, Task, current_engine
from evergrow.foundation.errors import ClusterWarning, InvalidInputError, warn_user
from evergrow.foundation.extras import __version__
from evergrow.foundation.labels import ClassList
from evergrow.foundation.rows import float_blocks
from evergrow.storage.shards import Shards

# Feature values that the trees of a group read: about a seventh of a second of work. A task costs
# up to a hundredth of a second, here and on its worker. A worker holds the arrays of the trees of
# its group, so groups must not be much larger.
_GROUP_VALUES = 1 << 25
# With fewer groups some workers would finish long before others.
_FEWEST_GROUPS = 8


def tree_groups(n_trees: int, values_per_tree: int, n_threads: int) -> list[Group]:
    """(First tree, number of trees) of every group.

    The groups do not depend on the number of workers, so that a run can be resumed with others.

    >>> tree_groups(10, values_per_tree=1 << 26, n_threads=4)
    [(0, 4), (4, 4), (8, 2)]
    """
    size = _GROUP_VALUES // max(1, values_per_tree)
    size = max(1, min(size, n_trees // _FEWEST_GROUPS))
    # The threads of a worker share the trees of a group.
    size = -(-size // n_threads) * n_threads
    return [(first, min(size, n_trees - first)) for first in range(0, n_trees, size)]


def can_grow_in_groups(
    engine: Engine, X: Any, request: ForestRequest, budget: MemoryBudget
) -> bool:
    """Whether the tasks of an engine can read the rows; warns if they cannot.

    Rows in a named file or a scratch file are on a disk of this machine. Other machines can read
    rows beyond the memory limit only from shards.
    """
    if not engine.capacity.is_remote:
        return True
    why = None
    if request.memory is not None:
        why = "memory= stores the samples in a file of this machine: leave it out"
    elif budget.in_file and not isinstance(X, Shards):
        why = (
            "memory_limit= stores the samples of an array on a disk of this machine: write them to "
            "shards with evergrow.write_shards, or leave the limit out"
        )
    if why is not None:
        warn_user(f"the forest is grown here and not on the cluster, because {why}", ClusterWarning)
    return why is None


def grow_in_groups(
    engine: Engine,
    batch: ForestBatch,
    standardization: Standardization,
    growth: GrowthPlan,
    request: ForestRequest,
    budget: MemoryBudget,
) -> _core.Forest:
    """Grow the same forest as ``growth`` would grow here."""
    work = _GroupedGrowth(engine, batch, growth, request)
    X, codes, ids, weights = batch.X, batch.codes, batch.ids, batch.weights
    if not engine.capacity.is_remote:
        samples, _ = store_first(batch, standardization, request, budget)
        return work.run(grow_over, [samples], samples, request.n_threads, budget)
    n_threads = engine.capacity.threads_per_worker
    if not budget.in_file:
        rows = standardize_all(
            X, standardization, half=request.half_samples, n_threads=request.n_threads
        )
        n_features = X.shape[1]
        samples = _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)
        values = [rows, codes, ids, weights, n_features]
        return work.run(grow_over_rows, values, samples, n_threads, budget)
    # Each worker observes the memory limit with its own number of threads.
    budget = budget_to_grow(replace(request, n_threads=n_threads), X.shape, growth["n_classes"])
    file = NodeFile(X, standardization, half=request.half_samples, chunk_bytes=budget.chunk_bytes)
    try:
        samples = open_node_samples(file, codes, ids, weights)
        return work.run(grow_over_shards, [file, codes, ids, weights], samples, n_threads, budget)
    finally:
        engine.run_on_every_node(remove_node_file, file.name)
        remove_node_file(file.name)


@dataclass(frozen=True)
class _GroupedGrowth:
    """Growth of one forest, independent of how workers read the rows."""

    engine: Engine
    batch: ForestBatch
    growth: GrowthPlan
    request: ForestRequest

    def run(
        self,
        task: Task,
        values: list[Any],
        samples: _core.Samples,
        n_threads: int,
        budget: MemoryBudget,
    ) -> _core.Forest:
        """Run the task for every group; it gets ``values`` and the growth plan."""
        engine, request = self.engine, self.request
        n_values = self.growth["rows_per_tree"] * samples.n_features
        groups = tree_groups(request.n_estimators, n_values, n_threads)
        growth: GrowthPlan = {
            **self.growth,
            "n_threads": n_threads,
            "row_budget": budget.row_budget,
        }
        found: list[Any] = [None] * len(groups)

        def take(place: int, arrays: Arrays) -> None:
            proposer = growth["rules"].proposer
            forest = forest_from_arrays(arrays, samples, proposer, growth["n_classes"])
            if len(forest) != groups[place][1]:
                raise InvalidInputError(f"expected {groups[place][1]} trees, got {len(forest)}")
            found[place] = forest

        job = Job(
            task,
            groups,
            [*values, growth],
            "growing groups of trees",
            request.verbose,
            name=self._name(groups) if engine.has_checkpoints else None,
            check=take,
        )
        for place, arrays in engine.run(job):
            if found[place] is None:
                take(place, arrays)
        return _core.Forest.joined(samples, found)

    def _name(self, groups: list[Group]) -> str:
        # Rows of a named file are never used as centroids, so the trees differ.
        growth, request, named = self.growth, self.request, self.request.memory is not None
        about = {
            "n_classes": growth["n_classes"],
            "seed": growth["seed"],
            "rows_per_tree": growth["rows_per_tree"],
            "bootstrap": growth["bootstrap"],
            "rules": growth["rules"].as_dict(),
            "half": request.half_samples,
            "standardize": request.standardize,
            "named": named,
            "class_weights": growth["class_weights"],
        }
        return _checkpoint_name(self.batch, about, groups)


def resumed_seed(drawn: int, batch: ForestBatch, request: ForestRequest, labels: ClassList) -> int:
    """Seed of a forest without ``random_state``: that of the run being resumed, else ``drawn``."""
    engine = current_engine()
    if engine is None or not engine.has_checkpoints:
        return drawn
    about = {
        "n_estimators": request.n_estimators,
        "max_samples": request.max_samples,
        "bootstrap": request.bootstrap,
        "standardize": request.standardize,
        "half": request.half_samples,
        "rules": request.splits.rules(len(labels), batch.X.shape[1]).as_dict(),
        "class_weight": repr(request.class_weight),
    }
    name = _checkpoint_name(batch, about, ["seed"])
    stored = engine.restore_or_make(name, lambda: {"seed": np.array([drawn], dtype=np.int64)})
    return int(stored["seed"][0])


def _checkpoint_name(batch: ForestBatch, about: dict[str, Any], cut: Any) -> str:
    """A hash over everything that the grown trees depend on."""
    X, weights = batch.X, batch.weights
    digest = hashlib.sha256()
    # Other kernels round differently; other versions may grow differently.
    about = {"version": __version__, "kernels": _core.chosen_kernel(), "cut": cut, **about}
    digest.update(json.dumps(about, sort_keys=True, default=float).encode())
    digest.update(np.ascontiguousarray(batch.codes).data)
    if weights is not None:
        digest.update(np.ascontiguousarray(weights).data)
    if isinstance(X, Shards):
        digest.update(X.digest.encode())
    else:
        digest.update(f"{X.shape}{X.dtype.str}".encode())
        for _, block in float_blocks(X):
            digest.update(block.data)
    return f"forest:{digest.hexdigest()}"
