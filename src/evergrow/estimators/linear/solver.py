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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.linear.equations import (
    Equations,
    Followed,
    Ridge,
    Step,
    intercept_penalty,
    standardisation,
)
from evergrow.estimators.sums.gram import copy
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import is_tensor, place_like, to_host, translate_full
from evergrow.foundation.errors import InvalidInputError, warn_user
from evergrow.foundation.lapack import cholesky, solve_both, solve_transposed

Floats = npt.NDArray[np.float64]

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


# Another cause of a matrix that is not positive definite than rounding.
_NEVER_LEARNT = ", or because forget was given examples that were never learnt"


def factorise(gram: Floats, ridge: Ridge, *, has_forgotten: bool = False) -> Floats:
    """Return the upper Cholesky factor ``R`` of ``A = gram + penalty I = R'R``.

    Values below the diagonal have no meaning. With an intercept the last feature is constant and
    hardly penalised. The factor lies where the matrix lies. ``has_forgotten`` is for the warning.
    """
    penalty = ridge.penalty
    penalties = np.full(len(gram), penalty)
    if ridge.intercept:
        penalties[-1] = intercept_penalty(ridge)
    extra = 0.0
    while True:
        factor = copy(gram)
        if is_tensor(factor):
            factor.diagonal().add_(place_like(penalties + extra, factor))  # type: ignore[attr-defined]
        else:
            np.einsum("ii->i", factor)[:] += penalties + extra
        if cholesky(factor):
            break
        extra = _more(extra, gram)
    if extra:
        cause = f" because of rounding{_NEVER_LEARNT}" if has_forgotten else ""
        warn_user(
            f"the Gram matrix is not positive definite with regularization={penalty:g}{cause}; "
            f"solved with {penalty + extra:.3g} instead",
            RuntimeWarning,
        )
    return factor


def _more(extra: float, gram: Floats) -> float:
    """Return the next larger addition to the diagonal to try."""
    largest = max(float(abs(gram).max()), np.finfo(float).tiny)
    # More than the sum of any row makes every matrix positive definite (Gershgorin).
    if not extra <= 10 * len(gram) * largest < float("inf"):
        raise InvalidInputError("the sums of the model are damaged: no penalty makes them definite")
    return 10 * extra if extra else _REPAIR * largest


def back_substitute(factor: Floats, right: Floats) -> Floats:
    """Solve ``R'R w = b`` for every row of ``right``."""
    weights = place_like(np.array(right, order="C"), factor)
    solve_both(factor, weights)
    return to_host(weights)


def forward_substitute(factor: Floats, right: Floats) -> Floats:
    """Solve ``R'z = b`` for every row of ``right``, so that ``z.z' = b.A^-1 b'``."""
    half = place_like(np.array(right, order="C"), factor)
    solve_transposed(factor, half)
    return to_host(half)


class Solution(NamedTuple):
    """What solving gives.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features)
        The weights, before recoding.
    own_scores : ndarray of shape (n_classes,)
        The score of each class for its own right side, ``b' A^-1 b``.
    """

    weights: Floats
    own_scores: Floats


def solve(moments: Moments, ridge: Ridge) -> Solution:
    """Solve the equations [Camoriano2017 Eq. 16].

    The constant feature of an intercept is hardly penalised. Weights of features that do not take
    part are 0.
    """
    places = ridge.places(moments.n_features)
    some = moments if ridge.columns is None else moments.with_features(places)
    if ridge.standardize:
        change = standardisation(some, ridge)
        _, (weights, own) = _solve(change.equations, ridge, moments)
        weights = change.weights(weights)
    else:
        _, (weights, own) = _solve(Equations.of(some, ridge), ridge, moments)
    return Solution(_spread(weights, places, moments.n_features), own)


def _solve(equations: Equations, ridge: Ridge, moments: Moments) -> tuple[Floats, Solution]:
    """Return the Cholesky factor and the solution of the equations of some sums."""
    factor = factorise(equations.gram, ridge, has_forgotten=moments.has_forgotten)
    weights = back_substitute(factor, equations.sums)
    return factor, Solution(weights, np.einsum("ij,ij->i", weights, equations.sums))


def _spread(some: Floats, places: npt.NDArray[np.int64] | slice, n_features: int) -> Floats:
    """Return rows with values at some places and 0 elsewhere."""
    if isinstance(places, slice):
        return some
    whole = np.zeros((len(some), n_features))
    whole[:, places] = some
    return whole


@dataclass
class _Weights:
    """Weights and own scores, with spare rows for more classes, and the current readers."""

    array: Floats
    own_scores: Floats
    n_readers: int = 0

    @classmethod
    def of(cls, weights: Floats, own_scores: Floats) -> _Weights:
        n_classes, n_features = weights.shape
        # The weights of a new class are zero [Camoriano2017 Eq. 20], so spare rows are zero.
        n_rows = n_classes + max(8, n_classes // 2)
        made = cls.empty((n_rows, n_features))
        made.array[:n_classes], made.own_scores[:n_classes] = weights, own_scores
        return made

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> _Weights:
        return cls(np.zeros(shape), np.zeros(shape[0]))


class Solver:
    """Factor and weights of the latest sums [Camoriano2017 Alg. 1]."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The sums and the penalty that factor and weights belong to; None if they are not valid.
        self._token: object = None
        self._ridge: Ridge | None = None
        self._factor = np.zeros((0, 0))
        self._followed: Followed | None = None
        self._current = _Weights.empty((0, 0))
        self._spare = self._current

    @contextmanager
    def solution(self, moments: Moments, ridge: Ridge) -> Iterator[Solution]:
        """Lend a solution that does not change while the block runs."""
        with self._lock:
            self._catch_up(moments, ridge)
            lent = self._current
            lent.n_readers += 1
        try:
            yield Solution(lent.array[: moments.n_classes], lent.own_scores[: moments.n_classes])
        finally:
            with self._lock:
                lent.n_readers -= 1

    def factor(self, moments: Moments, ridge: Ridge) -> Floats:
        """Return a copy of the Cholesky factor; there is none with standardised features."""
        with self._lock:
            self._catch_up(moments, ridge)
            return np.array(to_host(self._factor))

    @translate_full()
    def _catch_up(self, moments: Moments, ridge: Ridge) -> None:
        latest = moments.latest
        if self._ridge == ridge and self._token is latest:
            self._grow(moments.n_classes)
            return
        new = moments.follow(self._token) if self._ridge == ridge else None
        # On a GPU solving again takes milliseconds; following examples is work for a processor.
        is_fixed = ridge.standardize or is_tensor(moments.settled)
        if new is None or is_fixed or not _is_cheaper(new, moments, ridge):
            self._solve(moments, ridge)
        elif not self._follow(new, moments, ridge):
            cause = _NEVER_LEARNT if moments.has_forgotten else ""
            warn_user(
                f"the Cholesky factor is no longer positive definite because of rounding{cause}; "
                "it was computed again from the sums",
                RuntimeWarning,
            )
            self._solve(moments, ridge)
        self._ridge, self._token = ridge, latest

    def _solve(self, moments: Moments, ridge: Ridge) -> None:
        self._token = None
        if ridge.standardize:
            # Every example changes every deviation, so there is no factor to update.
            weights, own = solve(moments, ridge)
        else:
            places = ridge.places(moments.n_features)
            some = moments if ridge.columns is None else moments.with_features(places)
            self._factor, (solved, own) = _solve(Equations.of(some, ridge), ridge, moments)
            weights = _spread(solved, places, moments.n_features)
            self._followed = Followed(moments)
        self._current = _Weights.of(weights, own)
        self._spare = _Weights.empty((0, 0))

    def _follow(self, batches: Sequence[Batch], moments: Moments, ridge: Ridge) -> bool:
        # If this is interrupted, factor and weights must not be taken for valid ones.
        self._token = None
        followed = self._followed
        if followed is None:
            return False
        self._grow(moments.n_classes)
        places = ridge.places(moments.n_features)
        for batch in batches:
            for step in followed.steps(batch, ridge, _TOGETHER):
                if not self._update(step, moments.n_classes, places):
                    return False
        return True

    def _update(self, step: Step, n_classes: int, places: npt.NDArray[np.int64] | slice) -> bool:
        """Update factor and weights with a few rows; the features at ``places`` take part."""
        rows, signs, codes, targets = step
        gains = _core.update_factor(self._factor, np.ascontiguousarray(rows[:, places]), signs)
        if gains is None:
            return False
        gains = _spread(gains, places, rows.shape[1])
        target = self._next_buffer()
        errors = _core.update_weights(
            self._current.array[:n_classes],
            rows,
            signs,
            gains,
            codes,
            targets,
            target.array[:n_classes],
        )
        before = self._current.own_scores[:n_classes]
        after = _follow_own_scores(before, errors, rows @ gains.T, signs, codes, targets)
        target.own_scores[:n_classes] = after
        if target is not self._current:
            self._current, self._spare = target, self._current
        return True

    def _next_buffer(self) -> _Weights:
        """Return a buffer for the next weights that has no readers; in place is the fastest."""
        if self._current.n_readers == 0:
            return self._current
        spare, shape = self._spare, self._current.array.shape
        usable = spare.n_readers == 0 and spare.array.shape == shape
        return spare if usable else _Weights.empty(shape)

    def _grow(self, n_classes: int) -> None:
        array = self._current.array
        if n_classes > len(array):
            n_more = n_classes - len(array)
            own = np.pad(self._current.own_scores, (0, n_more))
            self._current = _Weights.of(np.pad(array, [(0, n_more), (0, 0)]), own)


def _follow_own_scores(
    before: Floats,
    errors: Floats,
    products: Floats,
    signs: Floats,
    codes: npt.NDArray[np.int32],
    targets: Floats,
) -> Floats:
    """Return the own scores after a few rows, from the errors of the weights before.

    With ``w' = w + sum_v e_v g_v``, ``g_v = A'^-1 x_v`` and ``products[u, v] = x_u.g_v``, the new
    sum ``w'.b'`` of a class needs only products of the new rows.
    """
    coded = np.zeros((len(before), len(codes)))
    coded[codes, np.arange(len(codes))] = targets
    # Scores of the new rows by the new weights.
    scores = coded - signs * errors + errors @ products.T
    added = signs * coded
    # g_v.b is g_v.b' without what the new rows add to b'.
    change: Floats = errors * (scores - added @ products) + added * scores
    after: Floats = before + change.sum(axis=1)
    return after


def _is_cheaper(batches: Sequence[Batch], moments: Moments, ridge: Ridge) -> bool:
    """Whether following the examples takes less time than solving again."""
    d, n_classes = moments.n_features, moments.n_classes
    rows_per_example = 2 if ridge.counts_means else 1
    n_passes = sum(-(-rows_per_example * len(batch.rows) // _TOGETHER) for batch in batches)
    # The factor is a triangle that is read twice and written once; weights are read and written.
    n_bytes = 8 * (1.5 * d**2 + 2 * n_classes * d)
    following = n_passes * (_PASS_SECONDS + n_bytes / _BYTES_PER_SECOND)
    solving = _SOLVE_SECONDS + (d**3 / 3 + 2 * n_classes * d**2) / _FLOPS_PER_SECOND
    return following < solving
