"""Incremental regularised least squares in NumPy, to read like Camoriano et al. 2017.

Examples are rows; ``codes`` are the columns of their classes. The rows of X, Y and W are examples,
coded labels and features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.random import Stream, derive, mix

Array = npt.NDArray[Any]


def one_hot(codes: Array, n_classes: int) -> Array:
    """Rows e_y of [Camoriano2017 Eq. 13]."""
    return np.eye(n_classes)[codes]


def penalties(n_features: int, penalty: float, intercept: bool) -> Array:
    """The penalty of each feature; an intercept, the last one, is hardly penalised."""
    free = [min(penalty, 1e-3)] if intercept else []
    return np.array([penalty] * (n_features - len(free)) + free)


def weights(
    X: Array,
    codes: Array,
    n_classes: int,
    penalty: float,
    sample_weight: Array | None = None,
    *,
    intercept: bool = True,
) -> Array:
    """W = (X'X + penalty I)^-1 X'Y [Camoriano2017 Eq. 16]; weight w counts an example w times."""
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    A = (X * s[:, None]).T @ X + np.diag(penalties(X.shape[1], penalty, intercept))
    return np.linalg.solve(A, (X * s[:, None]).T @ one_hot(codes, n_classes))


def recoding_matrix(counts: Array, alpha: float) -> Array:
    """Gamma^alpha [Camoriano2017 Sec. V-B]: total / count of each class, to the power of alpha."""
    return np.diag((counts.sum() / counts) ** alpha)


def rebalanced_weights(X: Array, codes: Array, n_classes: int, penalty: float) -> Array:
    """W = (X' Sigma X + penalty I)^-1 X' Sigma Y [Camoriano2017 Eq. 22]."""
    counts = np.bincount(codes, minlength=n_classes)
    return weights(X, codes, n_classes, penalty, len(X) / counts[codes])


def cholesky_update(R: Array, x: Array, sign: int = 1) -> Array:
    """R_new with R_new'R_new = R'R + sign x x', one plane rotation per row."""
    R, x = R.copy(), x.copy()
    for j in range(len(x)):
        root = math.sqrt(R[j, j] ** 2 + sign * x[j] ** 2)
        c, s = root / R[j, j], x[j] / R[j, j]
        R[j, j] = root
        for i in range(j + 1, len(x)):
            R[j, i] = (R[j, i] + sign * s * x[i]) / c
            x[i] = c * x[i] - s * R[j, i]
    return R


class IncrementalRLS:
    """Algorithm 1: Cholesky factor R, b and class counts, one example at a time."""

    def __init__(self, n_features: int, penalty: float, alpha: float) -> None:
        self.R = np.diag(np.sqrt(penalties(n_features, penalty, intercept=True)))
        self.b = np.zeros((n_features, 0))
        self.gamma = np.zeros(0)
        self.alpha = alpha

    def learn(self, x: Array, y: int) -> None:
        """Observe one example; a class never seen before must be the next one."""
        if y == self.b.shape[1]:
            self.gamma = np.append(self.gamma, 0.0)
            self.b = np.column_stack([self.b, np.zeros(len(x))])
        self.gamma[y] += 1
        self.b[:, y] += x
        self.R = cholesky_update(self.R, x)

    @property
    def W(self) -> Array:  # noqa: N802
        """R^-1 R^-T b Gamma^alpha."""
        solved = np.linalg.solve(self.R, np.linalg.solve(self.R.T, self.b))
        return solved @ recoding_matrix(self.gamma, self.alpha)


def cosine_scores(
    X: Array,
    codes: Array,
    n_classes: int,
    penalty: float,
    alpha: float,
    *,
    intercept: bool,
    query: Array | None = None,
    sample_weight: Array | None = None,
    by_means: bool = True,
) -> Array:
    """|x| times the cosine of x and each class mean, times the root of the class size and
    Gamma^alpha. Lengths and angles are those of the inverse of: the scatter within classes, plus
    that of the class means, each once or as often as it has examples, plus the penalty."""
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    query = X if query is None else query
    counts = np.bincount(codes, s, n_classes)
    means = np.stack(
        [np.average(X[codes == c], axis=0, weights=s[codes == c]) for c in range(n_classes)]
    )
    residuals = X - means[codes]
    A = (residuals * s[:, None]).T @ residuals + penalty * np.eye(X.shape[1])
    # An intercept moves the origin to the mean of the class means, nearly: it has a small penalty.
    free = min(penalty, 1e-9 if by_means else 1e-3)
    times = np.minimum(counts, 1.0) if by_means else counts
    origin = times @ means / (times.sum() + free) if intercept else np.zeros(X.shape[1])
    A += ((means - origin) * times[:, None]).T @ (means - origin) + free * np.outer(origin, origin)
    inverse = np.linalg.inv(A)
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", means - origin, inverse, means - origin))
    products = (query - origin) @ inverse @ (means - origin).T
    scaled: Array = products / lengths * np.sqrt(counts) @ recoding_matrix(counts, alpha)
    return scaled


def held_out(codes: Array, every: int) -> Array:
    """Which examples are held out: every ``every``-th of each class, in the order they came."""
    seen: dict[int, int] = {}
    held = []
    for code in codes.tolist():
        seen[code] = seen.get(code, 0) + 1
        held.append(seen[code] % every == 0)
    return np.array(held)


def choose_recoding(X: Array, codes: Array, n_classes: int, penalty: float, enough: int) -> float:
    """The largest alpha that costs classes with enough examples little, by leaving out each one."""
    counts = np.bincount(codes, minlength=n_classes)
    votes = [i for i in range(len(X)) if counts[codes[i]] - 1 >= enough]
    left_out = []
    for i in votes:
        others = np.arange(len(X)) != i
        left = np.bincount(codes[others], minlength=n_classes)
        left_out.append((X[i] @ weights(X[others], codes[others], n_classes, penalty), left))

    def accuracy(alpha: float) -> float:
        right = [
            np.argmax(scores @ recoding_matrix(left, alpha)) == codes[i]
            for i, (scores, left) in zip(votes, left_out, strict=True)
        ]
        return float(np.mean(right))

    best = max(accuracy(k / 20) for k in range(21))
    is_any_rare = counts[counts > 0].min() < np.median(counts[counts > 0]) / 4
    error = math.sqrt(best * (1 - best) / len(votes))
    tolerance = max(0.01, error) if is_any_rare else 0.0
    return max(k / 20 for k in range(21) if accuracy(k / 20) >= best - tolerance)


def choose_as_paper(
    X: Array, codes: Array, n_classes: int, penalties: list[float], every: int, enough: int
) -> tuple[float, float]:
    """Penalty and alpha by the rule of the paper: the best penalty of each alpha on held-out
    examples, and the largest alpha whose accuracy is not below that of 0."""
    held = held_out(codes, every)
    counts = np.bincount(codes[~held], minlength=n_classes)
    votes = [i for i in np.flatnonzero(held) if counts[codes[i]] >= enough]

    def accuracy(penalty: float, alpha: float) -> float:
        W = weights(X[~held], codes[~held], n_classes, penalty) @ recoding_matrix(counts, alpha)
        return float(np.mean([np.argmax(X[i] @ W) == codes[i] for i in votes]))

    def best(alpha: float) -> tuple[float, float]:
        return max((accuracy(penalty, alpha), penalty) for penalty in penalties)

    plain, _ = best(0.0)
    alpha = max(k / 10 for k in range(11) if best(k / 10)[0] >= plain)
    return best(alpha)[1], alpha


def random_projection(seed: int, n_rows: int, n_columns: int) -> Array:
    """Directions of random features."""
    rows = []
    for r in range(n_rows):
        stream = Stream(derive(mix(seed), r))
        rows.append([stream.normal() for _ in range(n_columns)])
    return np.array(rows)


def relu_features(X: Array, projection: Array) -> Array:
    """Positive parts of the projections, on the scale of the input."""
    features: Array = np.maximum(X @ projection.T, 0) * math.sqrt(2 / len(projection))
    return features


def fourier_features(X: Array, projection: Array, gamma: float) -> Array:
    """A cosine and a sine per direction: products approach exp(-gamma |x - y|^2)."""
    phases = X @ projection.T * math.sqrt(2 * gamma)
    features: Array = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(len(projection))
    return features
