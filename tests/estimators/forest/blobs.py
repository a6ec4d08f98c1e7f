"""Small data and lists of forests that the tests of updates share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evergrow import _core
from evergrow.estimators.forest.strategy import Strategy, strategy_of, usable_strategies
from tests.conftest import FORESTS


def strategies_of(kind: Any) -> list[str]:
    """Names of the update strategies that a kind of forest can use."""
    return usable_strategies(has_class_means=kind._kinds[0]._has_class_means)


def strategy(update: str | Strategy = "igt", refresh: Any = 0.0) -> Strategy:
    """A strategy that grows no tree again, unless it is told to."""
    return strategy_of(update).set_params(refresh=refresh)


# Every kind of forest with every strategy it can use.
CASES = [(kind, name) for kind in FORESTS for name in strategies_of(kind)]
N_FEATURES = 6

Array = np.ndarray[Any, Any]

_CENTRES = np.random.default_rng(99).normal(size=(64, N_FEATURES)) * 5


def blobs(n: int, classes: Sequence[int], seed: int = 0) -> tuple[Array, Array]:
    """Samples of the classes, at least one of each, around a place of each class."""
    random = np.random.default_rng(seed)
    y = np.concatenate([classes, random.choice(classes, n - len(classes))])
    return _CENTRES[y] + random.normal(size=(n, N_FEATURES)), y


def leaf_counts(forest: Any, tree: int) -> Array:
    """Samples per class that the leaves of a tree count."""
    return counts_of_leaves(forest._fitted.forest, tree)


def counts_of_leaves(forest: _core.Forest, tree: int) -> Array:
    """The same for a forest of the core."""
    arrays = forest.tree_arrays(tree)
    total = np.zeros(forest.n_classes, dtype=np.int64)
    for leaf in np.flatnonzero(arrays["left"] == -1):
        begin = arrays["count_begin"][leaf]
        own = slice(begin, begin + arrays["count_size"][leaf])
        np.add.at(total, arrays["count_class"][own], arrays["count"][own])
    return total


def stored_ids(forest: Any) -> Array:
    """Ids of the stored samples of a forest, sorted."""
    samples = forest._fitted.forest.samples
    return np.sort(samples.ids[samples.classes >= 0])


def stored_per_class(forest: Any) -> list[int]:
    """Stored samples of a forest by class; checks rows and sums that the core keeps of classes."""
    samples, n_classes = forest._fitted.forest.samples, len(forest.classes_)
    sizes: list[int] = samples.class_sizes(n_classes).tolist()
    sums = samples.class_sums(np.arange(n_classes, dtype=np.int32))
    for c, size in enumerate(sizes):
        own = np.flatnonzero(samples.classes == c).astype(np.int32)
        own = own[np.argsort(samples.ids[own])]
        kept = samples.rows_at(np.full(size, c, dtype=np.int32), np.arange(size))
        np.testing.assert_array_equal(kept, own)
        rows = samples.take(own)
        rows = rows.view(np.float16) if rows.dtype == np.uint16 else rows
        np.testing.assert_allclose(sums[c], rows.astype(np.float64).sum(axis=0), atol=1e-9)
    return sizes
