"""Distances of examples from class means.

Each distance computes a quadratic form from the sums over examples: one symmetric matrix ``P``. The
score of a class is then ``mu' P x - mu' P mu / 2``. That is ``-(x - mu)' P (x - mu) / 2`` up to a
number that all classes share. The softmax of the scores gives probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from evergrow.estimators.sums.moments import ROUNDING, Moments
from evergrow.foundation.device import to_host
from evergrow.foundation.errors import InvalidInputError

Floats = npt.NDArray[np.float64]

# Rounding error that forgotten examples leave in squares, relative to the largest sums ever.
_RESIDUE = 1e-15


class Form(Protocol):
    """A quadratic form: one symmetric matrix ``P``."""

    def directions(self, rows: Floats) -> Floats:
        """Return ``P x`` of every row, of shape (n_rows, n_features)."""

    def squared_lengths(self, rows: Floats) -> Floats:
        """Return ``x' P x`` of every row, of shape (n_rows,)."""


@dataclass(frozen=True, eq=False)
class _Scaled:
    """``P`` is the identity divided by a variance that all features share."""

    variance: float

    def directions(self, rows: Floats) -> Floats:
        return rows / self.variance

    def squared_lengths(self, rows: Floats) -> Floats:
        return _squares(rows) / self.variance


@dataclass(frozen=True, eq=False)
class _Whitened:
    """``P`` is the inverse of a covariance, given as its Cholesky factor."""

    factor: tuple[Any, bool]

    def directions(self, rows: Floats) -> Floats:
        return np.ascontiguousarray(cho_solve(self.factor, rows.T).T)

    def squared_lengths(self, rows: Floats) -> Floats:
        root, lower = self.factor
        white = solve_triangular(root, rows.T, trans=0 if lower else 1, lower=lower)
        return _squares(white.T)


@dataclass(frozen=True, eq=False)
class _Projected:
    """``P`` is ``W' W`` for a projection ``W``."""

    components: Floats

    def directions(self, rows: Floats) -> Floats:
        return (rows @ self.components.T) @ self.components

    def squared_lengths(self, rows: Floats) -> Floats:
        return _squares(rows @ self.components.T)


def _squares(rows: Floats) -> Floats:
    return cast("Floats", np.einsum("ij,ij->i", rows, rows))


@dataclass(frozen=True)
class Euclidean:
    """Euclidean distance, in units of the standard deviation within classes."""

    def form(self, moments: Moments) -> Form:
        """Compute ``P`` from the sums over the examples."""
        return _Scaled(spread(moments))


@dataclass(frozen=True)
class Mahalanobis:
    """Mahalanobis distance with the covariance within classes [Hayes2020]."""

    shrinkage: float

    def form(self, moments: Moments) -> Form:
        """Compute ``P`` from the sums over the examples."""
        try:
            factor = cho_factor(shrunk_covariance(moments, self.shrinkage), overwrite_a=True)
        except LinAlgError as error:
            raise InvalidInputError(
                f"the covariance within classes is singular: set shrinkage above {self.shrinkage:g}"
            ) from error
        return _Whitened(factor)


@dataclass(frozen=True, eq=False)
class ProjectedDistance:
    """Euclidean distance after a projection of shape (n_components, n_features)."""

    components: Floats

    def form(self, moments: Moments) -> Form:  # noqa: ARG002
        """Return ``P``, which does not depend on the sums."""
        return _Projected(self.components)


Distance: TypeAlias = Euclidean | Mahalanobis | ProjectedDistance

# Distances by name, and whether they need the Gram matrix.
DISTANCES: dict[str, bool] = {"euclidean": False, "mahalanobis": True}


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
