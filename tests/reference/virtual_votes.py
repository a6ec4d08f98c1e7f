"""Fair votes: what :mod:`evergrow.estimators.forest.value.virtual_votes` finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.reference.random import GOLDEN, MASK, Stream, mix

Array = Any


def ratio(n: int, sizes: list[int]) -> float:
    """How many times larger the median class is than one of ``n`` samples."""
    return float(np.median(sizes)) / n


def weight(r: float, balance: float) -> float:
    """Weight of the votes of a class that the median class is ``r`` times larger than."""
    return float(min(max(1.0, r / 2), 5.0) ** (7 / 3 * balance))


def virtual_samples(X: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Virtual samples of all small classes; ``X`` is in the order of the ids."""
    members = {c: np.flatnonzero(y == c) for c in np.unique(y).tolist()}
    sizes = [len(own) for own in members.values()]
    lends = [own.tolist() for own in members.values() if ratio(len(own), sizes) <= 1]
    lenders = [row for own in lends for row in own]
    rows, classes = [], []
    for c, own in members.items():
        r = ratio(len(own), sizes)
        if r <= 2:
            continue
        stream = Stream(mix((seed + GOLDEN * (c + 1)) & MASK))
        for _ in range(min(math.floor(r), 20)):
            first = lenders[stream.below(len(lenders))]
            family = members[int(y[first])].tolist()
            place = family.index(first) + 1 + stream.below(len(family) - 1)
            apart = X[first] - X[family[place % len(family)]]
            rows.append(X[own].sum(axis=0) / len(own) + apart * np.sqrt(0.5))
            classes.append(c)
    return np.array(rows, dtype=np.float32).reshape(-1, X.shape[1]), np.array(classes, dtype=int)


def probabilities(
    counts: list[Array],
    leaves: Array,
    virtual_leaves: Array,
    virtual_classes: Array,
    weights: list[float],
) -> Array:
    """Mean over trees of the share of each class in real and virtual samples of the leaf, weighted.

    ``counts`` has a matrix of nodes and classes for each tree; the others are nodes by tree.
    """
    votes: Array = 0.0
    for tree, real in enumerate(counts):
        both = real.astype(float)
        np.add.at(both, (virtual_leaves[:, tree], virtual_classes), 1)
        found = both[leaves[:, tree]]
        votes = votes + found / found.sum(axis=1, keepdims=True)
    votes = votes / len(counts) * np.array(weights)
    return votes / votes.sum(axis=1, keepdims=True)
