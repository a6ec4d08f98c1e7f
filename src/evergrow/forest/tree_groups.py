"""What a worker does with a group of the trees of a forest; imports nothing that is not needed.

A tree is a function of the seed, its number and the samples. So groups of trees can be grown
anywhere, in any order, and more than once; joined in order they are the forest that would have
been grown in one piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.engine import Arrays

__all__ = ["arrays_of", "forest_of", "grow_group"]

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


def grow_group(
    group: tuple[int, int],
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    growth: dict[str, Any],
) -> Arrays:
    """Grow some trees, ``group`` being (first tree, number of trees), over rows where they lie."""
    first_tree, n_trees = group
    told = dict(growth)
    samples = _core.Samples.over(rows, codes, ids, n_features=told.pop("n_features"))
    forest = _core.Forest.grow(
        samples=samples, n_trees=n_trees, first_tree=first_tree, progress=None, **told
    )
    return arrays_of(forest)


def arrays_of(forest: _core.Forest) -> Arrays:
    """The trees of a forest as arrays."""
    arrays: Arrays = {"n_comparisons": np.array(forest.n_comparisons, dtype=np.int64)}
    for tree in range(len(forest)):
        for name, array in forest.tree_arrays(tree).items():
            arrays[f"{tree}.{name}"] = array
    return arrays


def forest_of(
    arrays: Arrays, samples: _core.Samples, proposer: str, n_classes: int
) -> _core.Forest:
    """The forest of :func:`arrays_of`, over the samples that it was grown from."""
    n_comparisons = arrays["n_comparisons"].tolist()
    trees: list[Arrays] = [{} for _ in n_comparisons]
    for key, array in arrays.items():
        tree, _, name = key.partition(".")
        if name:
            trees[int(tree)][name] = array
    return _core.Forest.from_arrays(
        samples=samples,
        trees=trees,
        n_comparisons=n_comparisons,
        proposer=proposer,
        n_classes=n_classes,
    )
