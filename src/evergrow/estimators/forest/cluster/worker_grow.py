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
from evergrow.estimators.forest.cluster.node_files import NodeFile, open_node_samples
from evergrow.foundation.engine import Arrays

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]
# First tree, and number of trees.
Group = tuple[int, int]


def grow_over(group: Group, samples: _core.Samples, growth: dict[str, Any]) -> Arrays:
    """Grow some trees; ``growth`` is what the core is told besides samples and trees."""
    first_tree, n_trees = group
    forest = _core.Forest.grow(
        samples=samples,
        n_trees=n_trees,
        first_tree=first_tree,
        progress=None,
        # They are let go as soon as they are arrays.
        packs_trees=False,
        **growth,
    )
    return trees_to_arrays(forest)


def grow_over_rows(
    group: Group,
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    n_features: int,
    growth: dict[str, Any],
) -> Arrays:
    """The same over rows of a shared matrix, where they lie."""
    return grow_over(group, _core.Samples.over(rows, codes, ids, n_features=n_features), growth)


def grow_over_shards(
    group: Group, rows: NodeFile, codes: Codes, ids: Ids, growth: dict[str, Any]
) -> Arrays:
    """The same over shards, of which each node makes a file in the order that growing reads."""
    return grow_over(group, open_node_samples(rows, codes, ids), growth)


def trees_to_arrays(forest: _core.Forest) -> Arrays:
    """The trees of a forest as arrays."""
    arrays: Arrays = {"n_comparisons": np.array(forest.n_comparisons, dtype=np.int64)}
    for tree in range(len(forest)):
        for name, array in forest.tree_arrays(tree).items():
            arrays[f"{tree}.{name}"] = array
    return arrays


def forest_from_arrays(
    arrays: Arrays, samples: _core.Samples, proposer: str, n_classes: int
) -> _core.Forest:
    """The forest of :func:`trees_to_arrays`, over the samples that it was grown from."""
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
