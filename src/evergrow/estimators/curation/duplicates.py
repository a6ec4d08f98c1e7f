"""Examples that are nearly the same: copies, crops, and pictures of one scene.

Examples are compared by the cosine of their features about the mean. All pairs of many examples
would take too long, so random-projection trees split them at medians into leaves of a few hundred,
and only pairs within a leaf are compared. Pairs as close as duplicates are rarely split, and
several trees find nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from evergrow.estimators.linear.ridge import blocks_of, centred

# Examples in a leaf: up to this many, all pairs are compared and none is missed.
_LEAF = 256
_N_TREES = 6
# Random projections of the features in which leaves are compared, and how much lower the cosine of
# duplicates may be there: about three standard deviations at the default similarity.
_SKETCH, _SLACK = 128, 0.04
# Pairs whose features are compared at once.
_PAIRS = 4096

Pairs = npt.NDArray[np.int64]


def near_duplicates(X: npt.NDArray[Any], similarity: float, seed: int = 0) -> list[list[int]]:
    """Return groups of rows whose cosine about the mean is at least ``similarity``.

    Rows are in the same group if a chain of such pairs connects them. Groups are sorted by their
    first row.
    """
    n = len(X)
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    rng = np.random.default_rng(seed)
    sketch = _sketch(X, mean, rng)
    pairs = np.unique(np.concatenate([*_candidates(sketch, similarity - _SLACK, rng)]), axis=0)
    pairs = pairs[_cosines(X, mean, pairs) >= similarity]
    links = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, group = connected_components(links, directed=False)
    members = np.flatnonzero(np.bincount(group)[group] > 1)
    members = members[np.argsort(group[members], kind="stable")]
    starts = np.flatnonzero(np.diff(group[members]))
    return sorted(one.tolist() for one in np.split(members, starts + 1) if len(one))


def _sketch(
    X: npt.NDArray[Any], mean: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Random projections of all rows, scaled to length one; rows at the mean stay zero."""
    directions = rng.standard_normal((X.shape[1], _SKETCH), dtype=np.float32)
    found = np.empty((len(X), _SKETCH), dtype=np.float32)
    for part in blocks_of(X):
        found[part] = centred(X[part], mean) @ directions
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    np.divide(found, lengths, out=found, where=lengths > 0)
    return found


def _candidates(
    sketch: npt.NDArray[np.float32], least: float, rng: np.random.Generator
) -> Iterator[Pairs]:
    """Yield pairs of rows that are close in the sketch."""
    yield np.zeros((0, 2), dtype=np.int64)
    for _ in range(_N_TREES if len(sketch) > _LEAF else 1):
        for leaf in _leaves(np.arange(len(sketch)), sketch, rng):
            rows = sketch[leaf]
            products = rows @ rows.T
            # Rows without a direction are equal to each other only.
            empty = np.flatnonzero(~rows.any(axis=1))
            products[empty[:, None], empty] = 1.0
            first, second = np.divmod(np.flatnonzero(products >= least), len(leaf))
            before = first < second
            if before.any():
                pairs = np.column_stack([leaf[first[before]], leaf[second[before]]])
                yield np.sort(pairs, axis=1)


def _leaves(
    rows: npt.NDArray[np.int64], sketch: npt.NDArray[np.float32], rng: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Split rows at the median of a random projection until leaves are small."""
    if len(rows) <= _LEAF:
        yield rows
        return
    order = np.argpartition(sketch[rows, rng.integers(sketch.shape[1])], len(rows) // 2)
    yield from _leaves(rows[order[: len(rows) // 2]], sketch, rng)
    yield from _leaves(rows[order[len(rows) // 2 :]], sketch, rng)


def _cosines(
    X: npt.NDArray[Any], mean: npt.NDArray[np.float64], pairs: Pairs
) -> npt.NDArray[np.float32]:
    """Cosine of each pair about the mean, of all features."""
    found = np.empty(len(pairs), dtype=np.float32)
    for first in range(0, len(pairs), _PAIRS):
        some = slice(first, first + _PAIRS)
        one, other = (centred(X[pairs[some, side]], mean) for side in (0, 1))
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        products = np.einsum("ij,ij->i", one, other)
        same = (one == other).all(axis=1)
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        found[some] = np.where(same, 1.0, cosines)
    return found
