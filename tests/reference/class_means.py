"""Nearest class means in plain NumPy, example by example.

Class means are those of [Ristin2014 Eq. 1]; an example belongs to the nearest one
[Ristin2014 Eq. 2]. The Mahalanobis distance takes the covariance of what class means leave.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def class_mean(X: Floats, y: Ints, weights: Floats, c: int) -> Floats:
    """Weighted mean of the examples of one class."""
    total, weight = np.zeros(X.shape[1]), 0.0
    for x, label, w in zip(X, y, weights, strict=True):
        if label == c:
            total, weight = total + w * x, weight + w
    mean: Floats = total / weight
    return mean


def class_means(X: Floats, y: Ints, weights: Floats) -> Floats:
    """Means of the classes 0, 1, ... in order."""
    return np.array([class_mean(X, y, weights, c) for c in range(int(y.max()) + 1)])


def covariance(X: Floats, y: Ints, weights: Floats) -> Floats:
    """Weighted mean of ``(x - mu_y)(x - mu_y)'``."""
    means = class_means(X, y, weights)
    total = np.zeros((X.shape[1], X.shape[1]))
    for x, label, w in zip(X, y, weights, strict=True):
        total += w * np.outer(x - means[label], x - means[label])
    mean: Floats = total / weights.sum()
    return mean


def precision(metric: str, shrinkage: float, X: Floats, y: Ints, weights: Floats) -> Floats:
    """The matrix P of the squared distance ``(x - mu)' P (x - mu)``."""
    within = covariance(X, y, weights)
    n_features = len(within)
    independent = np.diag(np.diagonal(within))
    shrunk = {
        "euclidean": np.trace(within) / n_features * np.eye(n_features),
        "mahalanobis": (1 - shrinkage) * within + shrinkage * independent,
    }
    inverse: Floats = np.linalg.inv(shrunk[metric])
    return inverse


def squared_distances(X: Floats, means: Floats, P: Floats) -> Floats:
    """``(x - mu)' P (x - mu)`` of every example and class."""
    return np.array([[(x - mu) @ P @ (x - mu) for mu in means] for x in X])


def probabilities(X: Floats, means: Floats, P: Floats) -> Floats:
    """Softmax of minus half the squared distances."""
    rows = []
    for distances in squared_distances(X, means, P):
        likely = np.exp(-0.5 * (distances - distances.min()))
        rows.append(likely / likely.sum())
    return np.array(rows)
