"""NCMML of Mensink, Verbeek, Perronnin and Csurka (2013) as its formulas read.

``p(c|x)`` is the softmax of ``-|W(x - mu_c)|^2 / 2``; the likelihood and its gradient are sums over
examples and classes, one term at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def class_probabilities(W: Floats, x: Floats, means: Floats) -> Floats:
    """``p(c|x)`` for every class."""
    likely = np.array([np.exp(-0.5 * np.sum((W @ (x - mu)) ** 2)) for mu in means])
    shares: Floats = likely / likely.sum()
    return shares


def log_likelihood(W: Floats, means: Floats, X: Floats, y: Ints, weights: Floats) -> float:
    """Weighted mean of ``ln p(y|x)``."""
    total = 0.0
    for x, label, w in zip(X, y, weights, strict=True):
        total += w * np.log(class_probabilities(W, x, means)[label])
    return total / float(weights.sum())


def gradient(W: Floats, means: Floats, X: Floats, y: Ints, weights: Floats) -> Floats:
    """Of the weighted sum of ``ln p(y|x)``: ``sum_ic w_i (p(c|x_i) - [y_i = c]) W z z'``.

    Here ``z = x_i - mu_c``.
    """
    total = np.zeros_like(W)
    for x, label, w in zip(X, y, weights, strict=True):
        for c, p in enumerate(class_probabilities(W, x, means)):
            z = x - means[c]
            total += w * (p - (1.0 if label == c else 0.0)) * np.outer(W @ z, z)
    return total
