"""The Fisher vector of Perronnin, Sanchez and Mensink (2010) as its formulas read.

For descriptors ``x_t`` and Gaussians of weight ``w_i``, mean ``mu_i`` and deviation ``sigma_i``,
with ``gamma_t(i)`` the share of Gaussian ``i`` in ``x_t``, one term at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def shares(x: Floats, weights: Floats, means: Floats, deviations: Floats) -> Floats:
    """``gamma(i)`` of one descriptor."""
    likelihoods = np.array(
        [
            w * np.prod(np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma))
            for w, mu, sigma in zip(weights, means, deviations, strict=True)
        ]
    )
    gamma: Floats = likelihoods / likelihoods.sum()
    return gamma


def fisher_vector(X: Floats, weights: Floats, means: Floats, deviations: Floats) -> Floats:
    """Gradients for weights, means and deviations, each over the root of its information."""
    T = len(X)
    for_weights = np.zeros_like(weights)
    for_means = np.zeros_like(means)
    for_deviations = np.zeros_like(means)
    for x in X:
        gamma = shares(x, weights, means, deviations)
        for i, w in enumerate(weights):
            z = (x - means[i]) / deviations[i]
            for_weights[i] += (gamma[i] - w) / np.sqrt(w) / T
            for_means[i] += gamma[i] * z / np.sqrt(w) / T
            for_deviations[i] += gamma[i] * (z**2 - 1) / np.sqrt(2 * w) / T
    return np.concatenate([for_weights, for_means.ravel(), for_deviations.ravel()])


def improved(vector: Floats) -> Floats:
    """Signed square roots, then unit length."""
    roots = np.sign(vector) * np.sqrt(np.abs(vector))
    unit: Floats = roots / np.sqrt(np.sum(roots**2))
    return unit
