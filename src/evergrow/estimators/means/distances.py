"""The ways to measure how far an example is from a class mean.

Each is a value that makes a form, one symmetric ``P``, of the sums over examples. The score of a
class is then ``mu' P x - mu' P mu / 2``, which is ``-(x - mu)' P (x - mu) / 2`` up to a number that
all classes share, and the softmax of the scores gives probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from evergrow.estimators.sums.moments import Moments

__all__ = [
    "DISTANCES",
    "Distance",
    "Euclidean",
    "Form",
    "Learnt",
    "Mahalanobis",
    "spread",
    "unitless_covariance",
]

Floats = npt.NDArray[np.float64]

# Of differences between sums, what rounding alone may leave, relative to the sums.
_ROUNDING = 1e-14
# Of squares of forgotten examples, what rounding may leave, relative to the largest sums ever.
_RESIDUE = 1e-15


class Form(Protocol):
    """One symmetric ``P``."""

    def directions(self, rows: Floats) -> Floats:
        """``P x`` of every row, shape (n_rows, n_features)."""

    def squared_lengths(self, rows: Floats) -> Floats:
        """``x' P x`` of every row, shape (n_rows,)."""


@dataclass(frozen=True, eq=False)
class _Scaled:
    """``P`` is one over a variance that all features share."""

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
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares


@dataclass(frozen=True)
class Euclidean:
    """Straight lines, in units of the common deviation of all features within the classes."""

    def form(self, moments: Moments) -> Form:
        """``P`` by the sums over the examples."""
        return _Scaled(spread(moments))


@dataclass(frozen=True)
class Mahalanobis:
    """In units of the deviations within the classes, in every direction: linear discriminants."""

    shrinkage: float

    def form(self, moments: Moments) -> Form:
        """``P`` by the sums over the examples."""
        try:
            factor = cho_factor(unitless_covariance(moments, self.shrinkage), overwrite_a=True)
        except LinAlgError as error:
            raise ValueError(
                "the examples vary in too few directions to tell distances in all of them: "
                f"set shrinkage above {self.shrinkage:g}"
            ) from error
        return _Whitened(factor)


@dataclass(frozen=True, eq=False)
class Learnt:
    """After a projection of shape (n_components, n_features)."""

    components: Floats

    def form(self, moments: Moments) -> Form:  # noqa: ARG002
        """``P``, whatever the sums are."""
        return _Projected(self.components)


Distance: TypeAlias = Euclidean | Mahalanobis | Learnt

# Those that a name is enough for; the value tells whether they need the Gram matrix.
DISTANCES: dict[str, bool] = {"euclidean": False, "mahalanobis": True}


def spread(moments: Moments) -> float:
    """Variance within the classes, the mean over all features.

    One example per class says nothing about it. Then the class means' own variance stands for it,
    and 1 where that is nothing either.
    """
    within = moments.squares - _squares_of_means(moments)
    if within <= _ROUNDING * moments.squares:
        present = moments.means[moments.class_examples > 0]
        centred = present - present.mean(axis=0)
        among = float((centred**2).sum()) / len(present)
        enough = among > _ROUNDING * float((present**2).mean(axis=0).sum())
        return among / moments.n_features if enough else 1.0
    return within / (moments.weight * moments.n_features)


def unitless_covariance(moments: Moments, shrinkage: float) -> Floats:
    """Covariance of what class means leave, shrunk towards each feature's own variance.

    Unlike a common variance, that means the same whatever the features' units are. Features that
    never vary within a class, all of them if there is one example per class, are given their
    variance among classes, or 1 if they have none.
    """
    covariance = _left_by_means(moments)
    mean_squares = np.diagonal(moments.gram) / moments.weight
    total = mean_squares - (moments.sums.sum(axis=0) / moments.weight) ** 2
    within = np.diagonal(covariance).copy()
    # Of a feature that is nothing but what forgotten examples left, its own size says nothing.
    # Only what was forgotten leaves anything in features that are zero otherwise.
    has_forgotten = moments.peak > moments.squares * (1 + _ROUNDING)
    residue = _RESIDUE * moments.peak / moments.weight if has_forgotten else 0.0
    rounding = 10 * _ROUNDING * mean_squares + residue
    varies = within > rounding
    variances = np.where(varies, within, np.where(total > rounding, total, 1.0))
    # What is left of the others is rounding.
    covariance *= (1 - shrinkage) * np.outer(varies, varies)
    covariance[np.diag_indices_from(covariance)] = variances
    return covariance


def _left_by_means(moments: Moments) -> Floats:
    present = moments.class_examples > 0
    roots = np.sqrt(moments.class_weights[present, None])
    scaled = moments.sums[present] / roots
    # Only the upper triangle of the Gram matrix is there.
    upper = np.triu(moments.gram - scaled.T @ scaled)
    symmetric: Floats = (upper + np.triu(upper, 1).T) / moments.weight
    return symmetric


def _squares_of_means(moments: Moments) -> float:
    """``sum_c |s_c|^2 / w_c`` over the classes with examples."""
    present = moments.class_examples > 0
    squares = np.einsum("ij,ij->i", moments.sums[present], moments.sums[present])
    return float((squares / moments.class_weights[present]).sum())
