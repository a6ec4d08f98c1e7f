"""Forests grown and updated by groups of trees, each group a task of the engine in use."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.engine import Arrays, Engine, engine_in_use
from evergrow.forest.recipe import Recipe
from evergrow.forest.standardize import Standardization
from evergrow.forest.storing import Batch
from evergrow.forest.tree_groups import forest_of, grow_group
from evergrow.shards import Shards
from evergrow.version import __version__

__all__ = ["groups_of", "grow_by_groups", "seed_of_work"]

# Features of all rows of a group: a fraction of a second of work, some hundred times what it costs
# to hand it out.
_GROUP_VALUES = 1 << 24
# With fewer groups some workers would end long before others.
_FEWEST_GROUPS = 8

Codes = npt.NDArray[np.int32]


def groups_of(n_trees: int, values_per_tree: int, n_threads: int) -> list[tuple[int, int]]:
    """(First tree, number of trees) of every group.

    It does not depend on the workers: what a run has finished serves one with other workers.

    >>> groups_of(10, values_per_tree=1 << 24, n_threads=4)
    [(0, 4), (4, 4), (8, 2)]
    """
    size = -(-_GROUP_VALUES // max(1, values_per_tree))
    size = max(1, min(size, n_trees // _FEWEST_GROUPS))
    # Threads share the trees of their group.
    size = -(-size // n_threads) * n_threads
    return [(first, min(size, n_trees - first)) for first in range(0, n_trees, size)]


def grow_by_groups(
    engine: Engine,
    batch: Batch,
    standardization: Standardization,
    growth: dict[str, Any],
    recipe: Recipe,
) -> _core.Forest:
    """The forest that the core would grow here; ``growth`` is what it is told besides samples."""
    X, codes, ids = batch.X, batch.codes, batch.ids
    rows = _standardised(X, standardization, half=recipe.half_samples)
    samples = _core.Samples.over(rows, codes, ids, n_features=X.shape[1])
    n_threads = engine.threads_per_worker if engine.is_remote else recipe.n_threads
    groups = groups_of(recipe.n_estimators, growth["rows_per_tree"] * X.shape[1], n_threads)
    name = None
    if engine.keeps_results:
        told = {**growth, "half": recipe.half_samples, "standardize": recipe.standardize}
        name = _name(X, codes, told, groups)
    told = {**growth, "n_features": X.shape[1], "n_threads": n_threads}
    shared = [engine.share(value) for value in (rows, codes, ids, told)]
    found: list[Any] = [None] * len(groups)
    what = "growing groups of trees"
    for place, arrays in engine.run(
        grow_group, groups, shared, what=what, verbose=recipe.verbose, name=name
    ):
        found[place] = _checked(arrays, samples, growth)
    return _core.Forest.joined(samples, found)


def seed_of_work(drawn: int, X: Any, codes: Codes, recipe: Recipe, n_classes: int) -> int:
    """The seed of a forest whose user gave none: that of the run that is resumed, if there is one.

    ``drawn`` is the seed if this run is the first.
    """
    engine = engine_in_use()
    if engine is None or not engine.keeps_results:
        return drawn
    told = {
        "n_estimators": recipe.n_estimators,
        "max_samples": recipe.max_samples,
        "bootstrap": recipe.bootstrap,
        "standardize": recipe.standardize,
        "half": recipe.half_samples,
        "rules": recipe.split_rules(n_classes, X.shape[1]),
    }
    name = _name(X, codes, told, ["seed"])
    kept = engine.remember(name, lambda: {"seed": np.array([drawn], dtype=np.int64)})
    return int(kept["seed"][0])


def _checked(arrays: Arrays, samples: _core.Samples, growth: dict[str, Any]) -> _core.Forest:
    return forest_of(arrays, samples, growth["rules"]["proposer"], growth["n_classes"])


def _standardised(X: Any, standardization: Standardization, *, half: bool) -> npt.NDArray[Any]:
    """All rows as the core keeps them, in one array that tasks read where it lies."""
    shape = (X.shape[0], _core.padded_width(X.shape[1]))
    rows = _aligned(shape, np.dtype(np.uint16 if half else np.float32))
    for part, block in float_blocks(X):
        _core.standardize_rows(block, standardization.core, rows[part])
    rows.setflags(write=False)
    return rows


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array at a multiple of 64 bytes, as the core reads rows."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + n_bytes].view(dtype).reshape(shape)


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
