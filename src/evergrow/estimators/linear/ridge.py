"""From sums over examples to weights, all at once: Eq. (16) of Camoriano 2017."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from evergrow.estimators.sums.moments import Moments

__all__ = ["Ridge", "factorise", "solve"]

Floats = npt.NDArray[np.float64]

# The constant feature is hardly penalised: an intercept has no reason to be small, least of all in
# the unit of the other features. As much as a thousandth of an example keeps the matrix definite.
_FREE = 1e-3
# A matrix that rounding made indefinite gets this much of its largest entry added to its diagonal,
# and ten times more until it is definite.
_REPAIR = 1e-14


@dataclass(frozen=True)
class Ridge:
    """What least squares is asked for: the penalty, and whether features are standardised."""

    penalty: float
    standardize: bool = False
    # Whether the last feature is the constant 1.
    intercept: bool = True


def factorise(gram: Floats, penalty: float, *, intercept: bool) -> Floats:
    """Upper Cholesky factor ``R`` of ``A = gram + penalty I = R'R``; only the triangle counts.

    With an intercept the last feature is constant and next to free.
    """
    penalties = np.full(len(gram), penalty)
    if intercept:
        penalties[-1] = min(penalty, _FREE)
    extra = 0.0
    while True:
        factor = gram.copy()
        np.einsum("ii->i", factor)[:] += penalties + extra
        # What is upper and by rows here is lower and by columns there.
        _, problem = lapack.dpotrf(factor.T, lower=1, clean=0, overwrite_a=1)
        if not problem:
            break
        extra = _more(extra, gram)
    if extra:
        warnings.warn(
            f"the sums of least squares are not positive definite with regularization {penalty:g}; "
            f"solved with {penalty + extra:.3g} instead",
            RuntimeWarning,
            stacklevel=2,
        )
    return factor


def _more(extra: float, gram: Floats) -> float:
    """The next larger addition to the diagonal that may make a matrix definite."""
    largest = max(float(np.abs(gram).max()), np.finfo(float).tiny)
    # This much more than any row's sum makes every matrix definite (Gershgorin).
    if not extra <= 10 * len(gram) * largest < float("inf"):
        raise ValueError("the sums of the model are damaged: no penalty makes them definite")
    return 10 * extra if extra else _REPAIR * largest


def back_substitute(factor: Floats, right: Floats) -> Floats:
    """Solve ``R'R w = b`` for every row of ``right``."""
    weights = np.array(right)
    lapack.dpotrs(factor.T, weights.T, lower=1, overwrite_b=1)
    return weights


def solve(moments: Moments, ridge: Ridge) -> Floats:
    """Weights of shape (n_classes, n_features): ``(X'X + penalty I)^-1 X'Y``, transposed.

    The constant feature of an intercept is hardly penalised.
    """
    if not ridge.standardize:
        factor = factorise(moments.gram, ridge.penalty, intercept=ridge.intercept)
        return back_substitute(factor, moments.sums)
    return _solve_standardised(moments, ridge)


def _solve_standardised(moments: Moments, ridge: Ridge) -> Floats:
    """Weights of the features as they are, found with standardised ones.

    Mean and deviation are those of all examples so far, so the result does not depend on their
    order. A feature that does not vary is left as it is.
    """
    weight, n_inputs = moments.weight, moments.n_features - ridge.intercept
    sums = moments.sums[:, :n_inputs]
    mean = sums.sum(axis=0) / weight
    gram = moments.gram[:n_inputs, :n_inputs]
    variance = np.diagonal(gram) / weight - mean**2
    # What rounding leaves of a constant feature is not spread.
    varies = variance > 1e-13 * np.diagonal(gram) / weight
    scale = np.ones(n_inputs)
    np.divide(1.0, np.sqrt(variance, where=varies, out=scale.copy()), out=scale, where=varies)
    if not ridge.intercept:
        scaled = gram * scale * scale[:, None]
        return (
            back_substitute(factorise(scaled, ridge.penalty, intercept=False), sums * scale) * scale
        )
    # Centred features are orthogonal to the constant one: two problems instead of one. What is
    # left of a feature that does not vary is rounding and would spoil the others.
    scale = np.where(varies, scale, 0.0)
    centred = (gram - weight * np.outer(mean, mean)) * scale * scale[:, None]
    right = (sums - moments.class_weights[:, None] * mean) * scale
    slopes = back_substitute(factorise(centred, ridge.penalty, intercept=False), right) * scale
    free = min(ridge.penalty, _FREE)
    intercepts = moments.class_weights / (weight + free) - slopes @ mean
    return np.column_stack([slopes, intercepts])
