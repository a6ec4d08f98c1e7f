"""From an estimator's parameters to what the core is told to grow."""

from __future__ import annotations

import math

import numpy as np

from evergrow.params import Choice, Flag, Fraction, Integer, Nothing, Number, RandomState, Rule

__all__ = ["FOREST_RULES", "centroids_per_node", "rows_per_tree"]

# A centroid's place in its node is a 16-bit number.
_MAX_CENTROIDS = 65535
_MAX_JOBS = 2**15

FOREST_RULES: dict[str, list[Rule]] = {
    "n_estimators": [Integer(1, 2**16)],
    "n_centroids": [Choice(("sqrt", "log2")), Fraction(), Integer(2, _MAX_CENTROIDS)],
    "n_assignments": [Integer(1, 2**20)],
    "min_samples_leaf": [Integer(1, 2**28)],
    "min_gain": [Number(0.0)],
    "max_samples": [Nothing(), Fraction(), Integer(1, 2**28)],
    "bootstrap": [Flag()],
    "standardize": [Flag()],
    "n_jobs": [Nothing(), Integer(-_MAX_JOBS, -1), Integer(1, _MAX_JOBS)],
    "random_state": [Nothing(), RandomState()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}

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
