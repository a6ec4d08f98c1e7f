"""From sums over examples to weights: all at once, or following single examples.

The sums are the source of truth [Camoriano2017 Eq. 16]. Factor and weights are cached, because
updating them with a few examples is much cheaper than solving again [Camoriano2017 Alg. 1]. When a
prediction needs weights, the cheaper of the two is done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from evergrow import _core
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError, warn_user

Floats = npt.NDArray[np.float64]

# Largest penalty of the constant feature: an intercept need not be small, least of all in the unit
# of the other features. A thousandth of an example keeps the matrix positive definite.
_FREE = 1e-3
# If rounding made a matrix indefinite, this share of its largest entry is added to the diagonal,
# then ten times as much until the matrix is positive definite.
_REPAIR = 1e-14

# Rows that one pass over the factor processes together.
_TOGETHER = 8

# Measured on one machine. They affect only the speed, not the result.
_BYTES_PER_SECOND = 12e9
_FLOPS_PER_SECOND = 60e9
_PASS_SECONDS = 30e-6
_SOLVE_SECONDS = 150e-6


@dataclass(frozen=True)
class Ridge:
    """The problem to solve: the penalty, and whether features are standardised."""

    penalty: float
    standardize: bool = False
    # Whether the last feature is the constant 1.
    intercept: bool = True


def factorise(gram: Floats, penalty: float, *, intercept: bool) -> Floats:
    """Return the upper Cholesky factor ``R`` of ``A = gram + penalty I = R'R``.

    Values below the diagonal have no meaning. With an intercept the last feature is constant and
    hardly penalised.
    """
    penalties = np.full(len(gram), penalty)
    if intercept:
        penalties[-1] = min(penalty, _FREE)
    extra = 0.0
    while True:
        factor = gram.copy()
        np.einsum("ii->i", factor)[:] += penalties + extra
        # The upper triangle in row order is the lower triangle in LAPACK's column order.
        _, problem = lapack.dpotrf(factor.T, lower=1, clean=0, overwrite_a=1)
        if not problem:
            break
        extra = _more(extra, gram)
    if extra:
        warn_user(
            f"the Gram matrix is not positive definite with regularization={penalty:g}; "
            f"solved with {penalty + extra:.3g} instead",
            RuntimeWarning,
        )
    return factor


def _more(extra: float, gram: Floats) -> float:
    """Return the next larger addition to the diagonal to try."""
    largest = max(float(np.abs(gram).max()), np.finfo(float).tiny)
    # More than the sum of any row makes every matrix positive definite (Gershgorin).
    if not extra <= 10 * len(gram) * largest < float("inf"):
        raise InvalidInputError("the sums of the model are damaged: no penalty makes them definite")
    return 10 * extra if extra else _REPAIR * largest


def back_substitute(factor: Floats, right: Floats) -> Floats:
    """Solve ``R'R w = b`` for every row of ``right``."""
    weights = np.array(right)
    lapack.dpotrs(factor.T, weights.T, lower=1, overwrite_b=1)
    return weights


def solve(moments: Moments, ridge: Ridge) -> Floats:
    """Return ``(X'X + penalty I)^-1 X'Y``, transposed [Camoriano2017 Eq. 16].

    The shape is (n_classes, n_features). The constant feature of an intercept is hardly penalised.
    """
    if not ridge.standardize:
        factor = factorise(moments.gram, ridge.penalty, intercept=ridge.intercept)
        return back_substitute(factor, moments.sums)
    return _solve_standardised(moments, ridge)


def _solve_standardised(moments: Moments, ridge: Ridge) -> Floats:
    """Return weights of the plain features that are solved for on standardised ones.

    Mean and deviation are those of all examples so far, so the result does not depend on their
    order. A constant feature is left as it is.
    """
    weight, n_inputs = moments.weight, moments.n_features - ridge.intercept
    sums = moments.sums[:, :n_inputs]
    mean = sums.sum(axis=0) / weight
    gram = moments.gram[:n_inputs, :n_inputs]
    variance = np.diagonal(gram) / weight - mean**2
    # For a constant feature the variance is only rounding error.
    varies = variance > 1e-13 * np.diagonal(gram) / weight
    scale = np.ones(n_inputs)
    np.divide(1.0, np.sqrt(variance, where=varies, out=scale.copy()), out=scale, where=varies)
    if not ridge.intercept:
        scaled = gram * scale * scale[:, None]
        return (
            back_substitute(factorise(scaled, ridge.penalty, intercept=False), sums * scale) * scale
        )
    # Centred features are orthogonal to the constant one, so there are two separate problems. A
    # constant feature is left out: its rounding error would spoil the others.
    scale = np.where(varies, scale, 0.0)
    centred = (gram - weight * np.outer(mean, mean)) * scale * scale[:, None]
    right = (sums - moments.class_weights[:, None] * mean) * scale
    slopes = back_substitute(factorise(centred, ridge.penalty, intercept=False), right) * scale
    free = min(ridge.penalty, _FREE)
    intercepts = moments.class_weights / (weight + free) - slopes @ mean
    return np.column_stack([slopes, intercepts])


@dataclass
class _Weights:
    """Weights with spare rows for more classes, and the number of current readers."""

    array: Floats
    n_readers: int = 0

    @classmethod
    def of(cls, weights: Floats) -> _Weights:
        n_classes, n_features = weights.shape
        # The weights of a new class are zero [Camoriano2017 Eq. 20], so spare rows are zero.
        array = np.zeros((n_classes + max(8, n_classes // 2), n_features))
        array[:n_classes] = weights
        return cls(array)


class Solver:
    """Factor and weights of the latest sums [Camoriano2017 Alg. 1]."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The sums and the penalty that factor and weights belong to; None if they are not valid.
        self._token: object = None
        self._ridge: Ridge | None = None
        self._factor = np.zeros((0, 0))
        self._current = _Weights(np.zeros((0, 0)))
        self._spare = self._current

    @contextmanager
    def weights(self, moments: Moments, ridge: Ridge) -> Iterator[Floats]:
        """Lend weights of shape (n_classes, n_features) that do not change while the block runs."""
        with self._lock:
            self._catch_up(moments, ridge)
            lent = self._current
            lent.n_readers += 1
        try:
            yield lent.array[: moments.n_classes]
        finally:
            with self._lock:
                lent.n_readers -= 1

    def _catch_up(self, moments: Moments, ridge: Ridge) -> None:
        latest = moments.latest
        if self._ridge == ridge and self._token is latest:
            self._grow(moments.n_classes)
            return
        new = moments.follow(self._token) if self._ridge == ridge else None
        if new is None or ridge.standardize or not _is_cheaper(new, moments):
            self._solve(moments, ridge)
        elif not self._follow(new, moments.n_classes):
            warn_user(
                "the Cholesky factor is no longer positive definite because of rounding; it was "
                "computed again from the sums",
                RuntimeWarning,
            )
            self._solve(moments, ridge)
        self._ridge, self._token = ridge, latest

    def _solve(self, moments: Moments, ridge: Ridge) -> None:
        self._token = None
        if ridge.standardize:
            # Every example changes every deviation, so there is no factor to update.
            weights = solve(moments, ridge)
        else:
            self._factor = factorise(moments.gram, ridge.penalty, intercept=ridge.intercept)
            weights = back_substitute(self._factor, moments.sums)
        self._current = _Weights.of(weights)
        self._spare = _Weights(np.zeros((0, 0)))

    def _follow(self, batches: Sequence[Batch], n_classes: int) -> bool:
        # If this is interrupted, factor and weights must not be taken for valid ones.
        self._token = None
        self._grow(n_classes)
        for batch in batches:
            for first in range(0, len(batch.rows), _TOGETHER):
                if not self._update(batch, slice(first, first + _TOGETHER), n_classes):
                    return False
        return True

    def _update(self, batch: Batch, part: slice, n_classes: int) -> bool:
        """Update factor and weights with a few rows."""
        rows = np.ascontiguousarray(batch.scaled[part])
        signs = np.full(len(rows), float(batch.sign))
        gains = _core.update_factor(self._factor, rows, signs)
        if gains is None:
            return False
        target = self._next_buffer()
        _core.update_weights(
            self._current.array[:n_classes],
            rows,
            signs,
            gains,
            batch.codes[part],
            batch.roots[part],
            target.array[:n_classes],
        )
        self._current, self._spare = target, self._current
        return True

    def _next_buffer(self) -> _Weights:
        """Return a buffer for the next weights that has no readers."""
        spare, shape = self._spare, self._current.array.shape
        usable = spare.n_readers == 0 and spare.array.shape == shape
        return spare if usable else _Weights(np.zeros(shape))

    def _grow(self, n_classes: int) -> None:
        array = self._current.array
        if n_classes > len(array):
            self._current = _Weights.of(np.pad(array, [(0, n_classes - len(array)), (0, 0)]))


def _is_cheaper(batches: Sequence[Batch], moments: Moments) -> bool:
    """Whether following the examples takes less time than solving again."""
    d, n_classes = moments.n_features, moments.n_classes
    n_passes = sum(-(-len(batch.rows) // _TOGETHER) for batch in batches)
    # The factor is a triangle that is read twice and written once; weights are read and written.
    n_bytes = 8 * (1.5 * d**2 + 2 * n_classes * d)
    following = n_passes * (_PASS_SECONDS + n_bytes / _BYTES_PER_SECOND)
    solving = _SOLVE_SECONDS + (d**3 / 3 + 2 * n_classes * d**2) / _FLOPS_PER_SECOND
    return following < solving
