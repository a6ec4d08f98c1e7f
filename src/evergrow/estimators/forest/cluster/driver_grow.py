"""The driver's side of growing a forest in groups of trees, each a task of the engine in use."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
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
    Group,
    GrowthPlan,
    forest_from_arrays,
    grow_over,
    grow_over_rows,
    grow_over_shards,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage import store_batch
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


def can_grow_in_groups(engine: Engine, X: Any, request: ForestRequest) -> bool:
    """Whether the tasks of an engine can read the rows; warns if they cannot.

    Rows in a temporary file are on a disk of this machine. Other machines can read rows beyond the
    limit only from shards.
    """
    if not engine.capacity.is_remote or isinstance(X, Shards) or _is_in_memory(X, request):
        return True
    warn_user(
        "the forest is grown here and not on the cluster, because Storage.limit stores the samples "
        "of an array on a disk of this machine: write them to shards with evergrow.write_shards, "
        "or leave the limit out",
        ClusterWarning,
    )
    return False


def _is_in_memory(X: Any, request: ForestRequest) -> bool:
    return request.storage._folder(*X.shape) is None


def grow_in_groups(
    engine: Engine,
    batch: ForestBatch,
    standardization: Standardization,
    growth: GrowthPlan,
    request: ForestRequest,
) -> _core.Forest:
    """Grow the same forest as ``growth`` would grow here."""
    work = _GroupedGrowth(engine, batch, growth, request)
    X, codes, ids, weights = batch.X, batch.codes, batch.ids, batch.weights
    if not engine.capacity.is_remote:
        samples = _core.Samples(X.shape[1], half=request.storage._half)
        store_batch(samples, batch, standardization, request.storage, request.n_threads)
        return work.run(grow_over, [samples], samples, request.n_threads)
    n_threads = engine.capacity.threads_per_worker
    if _is_in_memory(X, request):
        rows = standardize_all(
            X, standardization, half=request.storage._half, n_threads=request.n_threads
        )
        n_features = X.shape[1]
        samples = _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)
        values = [rows, codes, ids, weights, n_features]
        return work.run(grow_over_rows, values, samples, n_threads)
    file = NodeFile(X, standardization, half=request.storage._half)
    try:
        samples = open_node_samples(file, codes, ids, weights)
        return work.run(grow_over_shards, [file, codes, ids, weights], samples, n_threads)
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
    ) -> _core.Forest:
        """Run the task for every group; it gets ``values`` and the growth plan."""
        engine, request = self.engine, self.request
        n_values = self.growth["rows_per_tree"] * samples.n_features
        groups = tree_groups(request.n_estimators, n_values, n_threads)
        growth: GrowthPlan = {**self.growth, "n_threads": n_threads}
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
        growth, request = self.growth, self.request
        about = {
            "n_classes": growth["n_classes"],
            "seed": growth["seed"],
            "rows_per_tree": growth["rows_per_tree"],
            "bootstrap": growth["bootstrap"],
            "rules": growth["rules"].as_dict(),
            "half": request.storage._half,
            "standardize": request.standardize,
            "class_weights": growth["class_weights"],
        }
        return _checkpoint_name(self.batch, about, groups)


def standardize_all(
    X: Any, standardization: Standardization, *, half: bool, n_threads: int
) -> npt.NDArray[Any]:
    """All rows as the core stores them, in one read-only array that tasks can share."""
    dtype = np.dtype(np.uint16 if half else np.float32)
    shape = (X.shape[0], _core.padded_width(X.shape[1]))
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    # The core needs rows that are aligned to 64 bytes.
    memory = np.empty(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    rows = memory[first : first + n_bytes].view(dtype).reshape(shape)
    for part, block in float_blocks(X):
        _core.standardize_rows(block, standardization.core, rows[part], n_threads)
    rows.setflags(write=False)
    return rows


def resumed_seed(drawn: int, batch: ForestBatch, request: ForestRequest, labels: ClassList) -> int:
    """Seed of a forest without ``random_state``: that of the run being resumed, else ``drawn``."""
    engine = current_engine()
    if engine is None or not engine.has_checkpoints:
        return drawn
    about = {
        "n_estimators": request.n_estimators,
        "max_samples": repr(request.max_samples),
        "standardize": request.standardize,
        "half": request.storage._half,
        "rules": request.rules(len(labels), batch.X.shape[1]).as_dict(),
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
