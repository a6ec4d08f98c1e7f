"""Votes of virtual samples: what :mod:`evergrow.estimators.forest.value.virtual_votes` counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.reference.random import GOLDEN, MASK, Stream, mix

Array = Any
PER_MISSING = 4


def virtual_samples(X: Array, y: Array, balance: float, seed: int) -> tuple[Array, Array]:
    """Virtual samples of all small classes; ``X`` is in the order of the ids."""
    sizes = {c: int((y == c).sum()) for c in np.unique(y).tolist()}
    means = {c: X[y == c].sum(axis=0) / n for c, n in sizes.items()}
    median = float(np.median(list(sizes.values())))
    rows, classes = [], []
    for c, n in sizes.items():
        others = np.flatnonzero(y != c)
        stream = Stream(mix((seed + GOLDEN * (c + 1)) & MASK))
        for _ in range(round(PER_MISSING * balance * max(0.0, median - n))):
            lender = others[stream.below(len(others))]
            rows.append(means[c] + (X[lender] - means[int(y[lender])]))
            classes.append(c)
    return np.array(rows, dtype=np.float32).reshape(-1, X.shape[1]), np.array(classes, dtype=int)


def probabilities(
    counts: list[Array], leaves: Array, virtual_leaves: Array, virtual_classes: Array
) -> Array:
    """Mean over trees of the share of each class in real and virtual samples of the leaf.

    ``counts`` has a matrix of nodes and classes for each tree; the others are nodes by tree.
    """
    votes = 0.0
    for tree, real in enumerate(counts):
        both = real.astype(float)
        np.add.at(both, (virtual_leaves[:, tree], virtual_classes), 1)
        found = both[leaves[:, tree]]
        votes = votes + found / found.sum(axis=1, keepdims=True)
    return votes / len(counts)
