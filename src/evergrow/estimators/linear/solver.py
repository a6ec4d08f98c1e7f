"""Weights that follow the examples: Algorithm 1 of Camoriano 2017.

The sums are the truth; factor and weights are kept beside them because bringing them up to date
with a few examples is much cheaper than solving anew. Which of the two is done is decided when a
prediction asks, by what has come since the last one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.linear.ridge import Ridge, back_substitute, factorise, solve
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.moments import Moments

__all__ = ["Solver"]

Floats = npt.NDArray[np.float64]

# Rows that one pass over the factor takes together.
_TOGETHER = 8

# Measured on one machine; only the speed depends on them, not the result.
_BYTES_PER_SECOND = 12e9
_FLOPS_PER_SECOND = 60e9
_PASS_SECONDS = 30e-6
_SOLVE_SECONDS = 150e-6


@dataclass
class _Weights:
    """Weights with room for more classes, and how many read them right now."""

    array: Floats
    n_readers: int = 0

    @classmethod
    def of(cls, weights: Floats) -> _Weights:
        n_classes, n_features = weights.shape
        # Rows beyond the classes are zero, which is what the weights of a new class are.
        array = np.zeros((n_classes + max(8, n_classes // 2), n_features))
        array[:n_classes] = weights
        return cls(array)


class Solver:
    """Factor and weights for the latest sums it was asked about."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Which sums and which penalty factor and weights belong to; None if to none.
        self._token: object = None
        self._ridge: Ridge | None = None
        self._factor = np.zeros((0, 0))
        self._current = _Weights(np.zeros((0, 0)))
        self._spare = self._current

    @contextmanager
    def weights(self, moments: Moments, ridge: Ridge) -> Iterator[Floats]:
        """Weights of shape (n_classes, n_features) that nobody changes while the block runs."""
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
            warnings.warn(
                "the factor of least squares lost its definiteness by rounding and was computed "
                "again from the kept sums",
                RuntimeWarning,
                stacklevel=5,
            )
            self._solve(moments, ridge)
        self._ridge, self._token = ridge, latest

    def _solve(self, moments: Moments, ridge: Ridge) -> None:
        self._token = None
        if ridge.standardize:
            # Every example moves every deviation, so there is no factor to follow.
            weights = solve(moments, ridge)
        else:
            self._factor = factorise(moments.gram, ridge.penalty, intercept=ridge.intercept)
            weights = back_substitute(self._factor, moments.sums)
        self._current = _Weights.of(weights)
        self._spare = _Weights(np.zeros((0, 0)))

    def _follow(self, batches: Sequence[Batch], n_classes: int) -> bool:
        # Whatever happens from here on, factor and weights belong to no sums until all is done.
        self._token = None
        self._grow(n_classes)
        for batch in batches:
            for first in range(0, len(batch.rows), _TOGETHER):
                if not self._enter(batch, slice(first, first + _TOGETHER), n_classes):
                    return False
        return True

    def _enter(self, batch: Batch, part: slice, n_classes: int) -> bool:
        """Bring factor and weights up to date with a few rows."""
        rows = np.ascontiguousarray(batch.scaled[part])
        signs = np.full(len(rows), float(batch.sign))
        gains = _core.update_factor(self._factor, rows, signs)
        if gains is None:
            return False
        target = self._free()
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

    def _free(self) -> _Weights:
        """Room for the next weights that nobody reads."""
        spare, shape = self._spare, self._current.array.shape
        usable = spare.n_readers == 0 and spare.array.shape == shape
        return spare if usable else _Weights(np.zeros(shape))

    def _grow(self, n_classes: int) -> None:
        array = self._current.array
        if n_classes > len(array):
            self._current = _Weights.of(np.pad(array, [(0, n_classes - len(array)), (0, 0)]))


def _is_cheaper(batches: Sequence[Batch], moments: Moments) -> bool:
    """Whether following the examples takes less time than solving anew."""
    d, n_classes = moments.n_features, moments.n_classes
    n_passes = sum(-(-len(batch.rows) // _TOGETHER) for batch in batches)
    # The factor is read twice and written once, half of the square each; weights come and go.
    n_bytes = 8 * (1.5 * d**2 + 2 * n_classes * d)
    following = n_passes * (_PASS_SECONDS + n_bytes / _BYTES_PER_SECOND)
    solving = _SOLVE_SECONDS + (d**3 / 3 + 2 * n_classes * d**2) / _FLOPS_PER_SECOND
    return following < solving
