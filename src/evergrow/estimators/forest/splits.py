"""From an estimator's parameters to what the core is told to grow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evergrow.estimators.forest.strategies import STRATEGIES
from evergrow.foundation.params import (
    Choice,
    FilePath,
    Flag,
    Fraction,
    Integer,
    MemorySize,
    Nothing,
    Number,
    RandomState,
    Rule,
)

# A centroid's place in its node is a 16-bit number.
_MAX_CENTROIDS = 65535
_MAX_JOBS = 2**15
_MAX_CANDIDATES = 2**20
# A node counts samples for all its subsets at the same time.
_MAX_SUBSETS = 2**14
# With few features their square root is too small a choice to find a split worth making.
_FEW_CANDIDATES = 10


@dataclass(frozen=True)
class StrategyValue:
    """An update strategy as a value."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, tuple(STRATEGIES.values()))

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a value such as RTST(share=0.5)"


# What every forest takes.
FOREST_RULES: dict[str, list[Rule]] = {
    "n_estimators": [Integer(1, 2**16)],
    "min_samples_leaf": [Integer(1, 2**28)],
    "min_gain": [Number(0.0)],
    "max_samples": [Nothing(), Fraction(), Integer(1, 2**28)],
    "bootstrap": [Flag()],
    "standardize": [Flag()],
    "update": [Choice(tuple(STRATEGIES)), StrategyValue()],
    "update_fraction": [Number(0.0, 1.0)],
    "node_sampling": [Choice(("size", "uniform", "quality"))],
    "refresh": [Number(0.0, 1.0)],
    "sample_dtype": [Choice(("float32", "float16"))],
    "memory": [Nothing(), FilePath()],
    "memory_limit": [Nothing(), MemorySize()],
    "keep_per_class": [Nothing(), Integer(1, 2**28)],
    "n_jobs": [Nothing(), Integer(-_MAX_JOBS, -1), Integer(1, _MAX_JOBS)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}

# What a forest of class means takes besides.
NCM_RULES: dict[str, list[Rule]] = {
    "n_centroids": [Choice(("sqrt", "log2")), Fraction(), Integer(2, _MAX_CENTROIDS)],
    "n_assignments": [Choice(("auto",)), Integer(1, _MAX_CANDIDATES)],
    "n_subsets": [Integer(1, _MAX_SUBSETS)],
    "subset_scale": [Number(0.0, open_low=True)],
    "cost_weight": [Number(0.0)],
    "max_scoring_samples": [Choice(("auto",)), Nothing(), Integer(1, 2**28)],
}

# What a forest of random thresholds takes besides.
CANDIDATE_RULES: dict[str, list[Rule]] = {
    "n_candidates": [Choice(("sqrt", "log2")), Fraction(), Integer(1, _MAX_CANDIDATES)],
}

# What a forest of support vector machines takes besides.
SVM_RULES: dict[str, list[Rule]] = {
    "n_candidates": [Integer(1, _MAX_CANDIDATES)],
    "regularization": [Number(0.0, open_low=True)],
}

# Assignments that are tried of one subset of the classes, and of each of many.
_ASSIGNMENTS_OF_ONE, _ASSIGNMENTS_OF_EACH = 1024, 50

# How many subsets there must be for each that a node tries.
_POSSIBLE_PER_SUBSET = 100

# Fewer samples of each class would say little about how a subset separates them. With so many a
# forest is as accurate as with all (docs/benchmarks.md).
_SCORED_PER_CLASS = 3
_FEWEST_SCORED = 256

_SIZES = {"sqrt": math.sqrt, "log2": math.log2}


def centroids_per_node(n_centroids: str | float | int, n_classes: int) -> int:
    """Number of class means a node compares with: at least 2, at most all.

    >>> centroids_per_node("sqrt", 100), centroids_per_node(0.25, 100), centroids_per_node(7, 3)
    (10, 25, 3)
    """
    if isinstance(n_centroids, str):
        wanted = math.ceil(_SIZES[n_centroids](n_classes))
    elif isinstance(n_centroids, (float, np.floating)):
        wanted = math.ceil(n_centroids * n_classes)
    else:
        wanted = int(n_centroids)
    return max(2, min(wanted, n_classes, _MAX_CENTROIDS))


def assignments_per_subset(n_assignments: str | int, n_subsets: int) -> int:
    """Number of ways of sending the means of a subset of the classes left and right.

    >>> assignments_per_subset("auto", 1), assignments_per_subset("auto", 100)
    (1024, 50)
    """
    if isinstance(n_assignments, str):
        return _ASSIGNMENTS_OF_ONE if n_subsets == 1 else _ASSIGNMENTS_OF_EACH
    return int(n_assignments)


def subsets_per_node(n_subsets: int, largest: int, n_classes: int) -> int:
    """Number of subsets a node tries: no more than a hundredth of all there are.

    With few classes every tree would otherwise try all subsets, and all trees would be the same.

    >>> subsets_per_node(100, 10, 100), subsets_per_node(100, 4, 12), subsets_per_node(100, 2, 4)
    (100, 7, 1)
    """
    possible = 0
    for size in range(2, largest + 1):
        possible += math.comb(n_classes, size)
        if possible >= _POSSIBLE_PER_SUBSET * n_subsets:
            return n_subsets
    return max(1, possible // _POSSIBLE_PER_SUBSET)


def scoring_samples(max_scoring_samples: str | int | None, n_classes: int) -> int:
    """Number of samples of a node that subsets are compared on; 0 for all.

    >>> scoring_samples("auto", 10), scoring_samples("auto", 1000), scoring_samples(None, 10)
    (256, 3000, 0)
    """
    if isinstance(max_scoring_samples, str):
        return max(_FEWEST_SCORED, _SCORED_PER_CLASS * n_classes)
    return int(max_scoring_samples or 0)


def largest_subset(n_centroids: str | float | int, subset_scale: float, n_classes: int) -> int:
    """Number of classes in the largest subset that a node tries: at least 2, at most all.

    >>> largest_subset("sqrt", 1.0, 100), largest_subset("sqrt", 3.0, 100)
    (10, 30)
    """
    wanted = subset_scale * centroids_per_node(n_centroids, n_classes)
    return max(2, min(math.ceil(min(wanted, n_classes)), _MAX_CENTROIDS))


def candidates_per_node(n_candidates: str | float | int, n_features: int) -> int:
    """Number of random splits a node tries; a size given by name is at least ten.

    >>> candidates_per_node("sqrt", 400), candidates_per_node("sqrt", 4)
    (20, 10)
    >>> candidates_per_node(0.5, 400), candidates_per_node(7, 400)
    (200, 7)
    """
    if isinstance(n_candidates, str):
        return max(_FEW_CANDIDATES, math.ceil(_SIZES[n_candidates](n_features)))
    if isinstance(n_candidates, (float, np.floating)):
        return min(math.ceil(n_candidates * n_features), _MAX_CANDIDATES)
    return int(n_candidates)


def rows_per_tree(max_samples: float | int | None, n_rows: int) -> int:
    """Number of training rows that each tree sees.

    >>> rows_per_tree(None, 40), rows_per_tree(0.5, 40), rows_per_tree(7, 40)
    (40, 20, 7)
    """
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, (float, np.floating)):
        return max(1, round(max_samples * n_rows))
    if max_samples > n_rows:
        raise ValueError(
            f"max_samples must be at most the number of samples, {n_rows}, got {max_samples}"
        )
    return int(max_samples)
