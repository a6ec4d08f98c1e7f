"""Variance and covariance of examples within classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.moments import ROUNDING, Moments
from evergrow.foundation.device import to_host

Floats = npt.NDArray[np.float64]

# Rounding error that forgotten examples leave in squares, relative to the largest sums ever.
_RESIDUE = 1e-15


def spread(moments: Moments) -> float:
    """Return the variance within classes, as the mean over all features.

    With one example per class it is not known. Then the variance of the class means is returned, or
    1 if that is zero too.
    """
    within = moments.squares - _squares_of_means(moments)
    if within <= ROUNDING * moments.squares:
        present = moments.means[moments.class_examples > 0]
        centred = present - present.mean(axis=0)
        among = float((centred**2).sum()) / len(present)
        enough = among > ROUNDING * float((present**2).mean(axis=0).sum())
        return among / moments.n_features if enough else 1.0
    return within / (moments.weight * moments.n_features)


def shrunk_covariance(moments: Moments, shrinkage: float) -> Floats:
    """Return the covariance within classes, shrunk towards its diagonal [Hayes2020].

    Shrinking towards the diagonal, unlike towards one common variance, does not depend on the units
    of the features. A feature that is constant within classes gets its variance between classes, or
    1 if it is constant altogether. With one example per class this applies to all features.
    """
    covariance = _within_classes(moments)
    mean_squares = moments.diagonal / moments.weight
    total = mean_squares - (moments.sums.sum(axis=0) / moments.weight) ** 2
    within = np.diagonal(covariance).copy()
    # After forgetting, features that should be zero may hold rounding errors of forgotten examples,
    # so the limit must be relative to the largest sums ever, not to the size of the feature.
    residue = _RESIDUE * moments.peak / moments.weight if moments.has_forgotten else 0.0
    rounding = 10 * ROUNDING * mean_squares + residue
    varies = within > rounding
    variances = np.where(varies, within, np.where(total > rounding, total, 1.0))
    # All other entries are rounding errors.
    covariance *= (1 - shrinkage) * np.outer(varies, varies)
    covariance[np.diag_indices_from(covariance)] = variances
    return covariance


def _within_classes(moments: Moments) -> Floats:
    present = moments.class_examples > 0
    roots = np.sqrt(moments.class_weights[present, None])
    scaled = moments.sums[present] / roots
    # Only the upper triangle of the Gram matrix is valid.
    upper = np.triu(to_host(moments.gram) - scaled.T @ scaled)
    return (upper + np.triu(upper, 1).T) / moments.weight


def _squares_of_means(moments: Moments) -> float:
    """``sum_c |s_c|^2 / w_c`` over the classes with examples."""
    present = moments.class_examples > 0
    squares = np.einsum("ij,ij->i", moments.sums[present], moments.sums[present])
    return float((squares / moments.class_weights[present]).sum())
