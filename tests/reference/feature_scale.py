"""How features are whitened, and how the transform of a forest is chosen, in plain NumPy.

Every sample is really left out: from its class mean, and from the covariance within classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def class_means(X: Floats, y: Ints) -> Floats:
    """Mean of every class."""
    return np.array([X[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])


def covariance_within(X: Floats, y: Ints) -> Floats:
    """Pooled covariance of the samples about their class means."""
    means = class_means(X, y)
    total = np.zeros((X.shape[1], X.shape[1]))
    for x, c in zip(X, y, strict=True):
        total += np.outer(x - means[c], x - means[c])
    pooled: Floats = total / (len(X) - len(means))
    return pooled


def shrunk(covariance: Floats, diagonal: Floats, shrinkage: float) -> Floats:
    """The covariance, moved towards a diagonal matrix."""
    moved: Floats = (1 - shrinkage) * covariance + shrinkage * np.diag(diagonal)
    return moved


def squared_distance(x: Floats, y: Floats, covariance: Floats) -> float:
    """Squared Mahalanobis distance."""
    return float((x - y) @ np.linalg.solve(covariance, x - y))


def equal_lengths(X: Floats) -> Floats:
    """Samples whose lengths, in units of the root of the number of features, are tenth roots."""
    lengths = np.sqrt((X**2).sum(axis=1, keepdims=True) / X.shape[1])
    directions = X / np.where(lengths > 0, lengths, 1.0)
    equal: Floats = directions * lengths**0.1
    return equal


def whitened_equal_accuracy(X: Floats, y: Ints, shrinkage: float) -> float:
    """Share of samples that are nearest to their class mean, all of nearly equal length.

    Lengths are those in the metric of all samples; distances are without the sample.
    """
    everything = covariance_within(X, y)
    n_free = len(X) - int(y.max()) - 1
    root = np.linalg.cholesky(shrunk(everything, np.diagonal(everything), shrinkage))
    Z = equal_lengths(np.linalg.solve(root, X.T).T)
    right = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        means = class_means(Z[others], y[others]) @ root.T
        without = covariance_within(X[others], y[others]) * (n_free - 1) / n_free
        metric = shrunk(without, np.diagonal(everything), shrinkage)
        distances = [squared_distance(root @ Z[i], mean, metric) for mean in means]
        right.append(int(np.argmin(distances)) == y[i])
    return float(np.mean(right))


def whitened_mean_accuracy(X: Floats, y: Ints, shrinkage: float) -> float:
    """Share of samples that are nearest to their class mean in the whitened space.

    The divisor of the covariance and the diagonal that it is shrunk towards are those of all
    samples.
    """
    everything = covariance_within(X, y)
    n_free = len(X) - int(y.max()) - 1
    right = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        means = class_means(X[others], y[others])
        without = covariance_within(X[others], y[others]) * (n_free - 1) / n_free
        metric = shrunk(without, np.diagonal(everything), shrinkage)
        distances = [squared_distance(X[i], mean, metric) for mean in means]
        right.append(int(np.argmin(distances)) == y[i])
    return float(np.mean(right))


def mean_accuracy(X: Floats, y: Ints) -> float:
    """Share of samples that are nearest to their class mean."""
    right = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        distances = ((class_means(X[others], y[others]) - X[i]) ** 2).sum(axis=1)
        right.append(int(np.argmin(distances)) == y[i])
    return float(np.mean(right))


def neighbour_accuracy(X: Floats, y: Ints) -> float:
    """Share of samples whose nearest neighbour has their class."""
    right = []
    for i in range(len(X)):
        distances = ((X - X[i]) ** 2).sum(axis=1)
        distances[i] = np.inf
        right.append(y[int(np.argmin(distances))] == y[i])
    return float(np.mean(right))
