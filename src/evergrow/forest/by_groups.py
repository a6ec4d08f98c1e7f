"""Forests grown and updated by groups of trees, each group a task of the engine in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.engine import Arrays, Engine
from evergrow.forest.recipe import Recipe
from evergrow.forest.standardize import Standardization
from evergrow.forest.tree_groups import forest_of, grow_group



# Features of all rows of a group: a fraction of a second of work, some hundred times what it costs
# to hand it out.
_GROUP_VALUES = 1 << 24
# With fewer groups some workers would end long before others.
_FEWEST_GROUPS = 16

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


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


def rows_for_sharing(
    X: npt.NDArray[Any], standardization: Standardization, *, half: bool
) -> npt.NDArray[Any]:
    """All rows as the core keeps them, in one array that tasks can read where it lies."""
    shape = (X.shape[0], _core.padded_width(X.shape[1]))
    rows = _aligned(shape, np.dtype(np.uint16 if half else np.float32))
    for part, block in float_blocks(X):
        _core.standardize_rows(block, standardization.core, rows[part])
    rows.setflags(write=False)
    return rows


def grow_by_groups(
    engine: Engine,
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    growth: dict[str, Any],
    recipe: Recipe,
    *,
    name: str | None = None,
) -> _core.Forest:
    """The forest of ``recipe.n_estimators`` trees.

    ``growth`` is what the core is told besides samples and trees; ``name`` names data and growth
    where finished groups are kept.
    """
    n_features = growth["n_features"]
    samples = _core.Samples.over(rows, codes, ids, n_features=n_features)
    n_threads = engine.threads_per_worker if engine.is_remote else recipe.n_threads
    values = growth["rows_per_tree"] * n_features
    groups = groups_of(recipe.n_estimators, values, n_threads)
    told = {**growth, "n_threads": n_threads}
    shared = [engine.share(value) for value in (rows, codes, ids, told)]
    results = engine.run(
        grow_group,
        groups,
        shared,
        what="growing groups of trees",
        verbose=recipe.verbose,
        name=None if name is None else f"{name}:{groups}",
    )
    return _joined(samples, results, len(groups), growth)


def _joined(
    samples: _core.Samples,
    results: Iterator[tuple[int, Arrays]],
    n_groups: int,
    growth: dict[str, Any],
) -> _core.Forest:
    proposer, n_classes = growth["rules"]["proposer"], growth["n_classes"]
    groups: list[Any] = [None] * n_groups
    for place, arrays in results:
        groups[place] = forest_of(arrays, samples, proposer, n_classes)
    return _core.Forest.joined(samples, groups)


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array at a multiple of 64 bytes, as the core reads rows."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + n_bytes].view(dtype).reshape(shape)
