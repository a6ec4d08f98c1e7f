"""The worker's side of growing a forest: tasks that grow a group of its trees.

A tree is a function of the seed, its number and the samples. So groups of trees can be grown
anywhere, in any order and more than once. Joined in order they are the forest that a single
process would grow. This module imports as little as possible, because every worker loads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.cluster.node_files import NodeFile, open_node_samples
from evergrow.estimators.forest.value.fitted import Codes, Ids
from evergrow.estimators.forest.value.weights import Weights
from evergrow.foundation.engine import Arrays
from evergrow.foundation.large_pages import use_large_pages

# First tree, and number of trees.
Group = tuple[int, int]


class GrowthPlan(TypedDict):
    """How the core grows trees: all arguments of ``_core.Forest.grow`` but samples and trees."""

    n_classes: int
    seed: int
    rows_per_tree: int
    bootstrap: bool
    rules: _core.SplitRules
    n_threads: int
    row_budget: int
    class_weights: Sequence[float]


def grow_over(group: Group, samples: _core.Samples, growth: GrowthPlan) -> Arrays:
    """Grow a group of trees."""
    return trees_to_arrays(_grow_in_turn(group, samples, growth))


def _grow_in_turn(
    group: Group, samples: _core.Samples, growth: GrowthPlan
) -> Iterator[_core.Forest]:
    """Grow as many trees at a time as there are threads, so that few are in memory."""
    first_tree, n_trees = group
    end, step = first_tree + n_trees, growth["n_threads"]
    for first in range(first_tree, end, step):
        # The trees are freed as soon as they are arrays, so they need not be packed.
        yield _core.Forest.grow(
            samples=samples,
            n_trees=min(step, end - first),
            first_tree=first,
            progress=None,
            packs_trees=False,
            **growth,
        )


def grow_over_rows(
    group: Group,
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    weights: Weights | None,
    n_features: int,
    growth: GrowthPlan,
) -> Arrays:
    """Grow a group of trees over the rows of a shared matrix, without copying them."""
    use_large_pages(rows)
    samples = _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)
    return grow_over(group, samples, growth)


def grow_over_shards(
    group: Group,
    file: NodeFile,
    codes: Codes,
    ids: Ids,
    weights: Weights | None,
    growth: GrowthPlan,
) -> Arrays:
    """Grow a group of trees over shards; each node writes one file sorted by class."""
    return grow_over(group, open_node_samples(file, codes, ids, weights), growth)


def trees_to_arrays(forests: Iterable[_core.Forest]) -> Arrays:
    """The trees of all forests as arrays; of each forest only its arrays are kept."""
    arrays: Arrays = {}
    n_comparisons: list[int] = []
    for forest in forests:
        for tree in range(len(forest)):
            for name, array in forest.tree_arrays(tree).items():
                arrays[f"{len(n_comparisons) + tree}.{name}"] = array
        n_comparisons += forest.n_comparisons
        del forest
    return {"n_comparisons": np.array(n_comparisons, dtype=np.int64), **arrays}


def forest_from_arrays(
    arrays: Arrays, samples: _core.Samples, proposer: str, n_classes: int
) -> _core.Forest:
    """Rebuild from :func:`trees_to_arrays`, over the samples that the trees were grown from."""
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
