"""Blocks of inputs added to sums by the core, on all threads that BLAS may use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.sums.gram import copy_columns
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.lapack import function_address
from evergrow.foundation.rows import places_by_class
from evergrow.foundation.threads import blas_threads, one_blas_thread

Floats = npt.NDArray[np.float64]

# Sums of squares of larger numbers would overflow.
LARGEST = 1e140
# Fewer multiplications than this are not worth a second thread.
_WORTH_THREADS = 20_000_000
# Bytes of inputs that are added at once if they have to be read or converted first.
_READ_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class FeatureRule:
    """How features follow from inputs, for the core and for GPUs.

    The features are the inputs if ``n_copied`` is their number, then ``n_random`` random ones, then
    the constant 1. ``directions`` has one row per projection.
    """

    n_inputs: int
    n_copied: int
    kind: Literal["none", "relu", "rff"] = "none"
    directions: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    n_random: int = 0
    constant: bool = False

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_copied + self.n_random + self.constant


class Accumulator(Protocol):
    """New sums that blocks of inputs are added to."""

    # Rows to add at once if they have to be read or converted first.
    max_rows: int

    def add(self, block: Any, codes: npt.NDArray[np.int32], weights: Floats) -> None:
        """Add examples; a ``ValueError`` for numbers that are too large."""

    def finish(self) -> Moments:
        """Return the sums."""


def too_large() -> InvalidInputError:
    """Return the error for numbers whose sums of squares would overflow."""
    return InvalidInputError(
        f"Input X contains values too large to add up their squares, above {LARGEST:g}."
    )


class CoreAccumulator:
    """Sums that the core adds examples to."""

    def __init__(self, moments: Moments, rule: FeatureRule) -> None:
        gram, class_grams = moments.settle()
        # New matrices, which are not shared until they are complete.
        self._gram = None if gram is None else to_host(gram)
        if gram is not None and gram is moments.settled:
            self._gram = np.array(self._gram)
        self._class_grams = copy_columns(class_grams, range(moments.n_classes))
        self._moments, self._rule = moments, rule
        self._sums = np.zeros((moments.n_classes, rule.n_features))
        self._squares = np.zeros(moments.n_classes)
        self._weights = np.zeros(moments.n_classes)
        self._examples = np.zeros(moments.n_classes, dtype=np.int64)
        self.max_rows = max(1, _READ_BYTES // (8 * rule.n_inputs))

    def add(
        self,
        block: npt.NDArray[Any],
        codes: npt.NDArray[np.int32],
        weights: Floats,
    ) -> None:
        """Add examples; a ``ValueError`` for numbers that are too large."""
        n_classes = len(self._weights)
        self._call(block, codes, weights, self._gram, self._sums, self._squares)
        self._weights += np.bincount(codes, weights, n_classes)
        self._examples += np.bincount(codes, minlength=n_classes)
        if self._class_grams is None:
            return
        unused, zeros = np.zeros((1, self._rule.n_features)), np.zeros(1)
        batch = Batch(block, codes, weights)
        for column, places in places_by_class(codes):
            mine, none = batch.at(places), np.zeros(len(places), dtype=np.int32)
            rows = np.ascontiguousarray(mine.rows)
            self._call(rows, none, mine.weights, self._class_grams[column], unused, zeros)

    def _call(
        self,
        block: npt.NDArray[Any],
        codes: npt.NDArray[np.int32],
        weights: Floats,
        gram: Floats | None,
        sums: Floats,
        squares: Floats,
    ) -> None:
        rule = self._rule
        width = rule.n_features if gram is not None else 1
        is_small = len(block) * width * (width + rule.n_inputs) < _WORTH_THREADS
        n_threads = 1 if is_small else blas_threads()
        # Each thread calls BLAS for a part of its own, and sums do not depend on their number.
        with one_blas_thread():
            fits = _core.add_examples(
                function_address("dgemm"),
                function_address("dsyrk"),
                block,
                np.ascontiguousarray(codes, dtype=np.int32),
                None if (weights == 1.0).all() else np.ascontiguousarray(weights),
                rule.n_copied,
                rule.kind,
                rule.directions,
                rule.n_random,
                rule.constant,
                self._moments.shift,
                LARGEST,
                gram,
                sums,
                squares,
                n_threads,
                None,  # no progress bar
            )
        if not fits:
            raise too_large()

    def finish(self) -> Moments:
        """Return the sums."""
        return with_added(
            replace(self._moments, settled=self._gram, class_settled=self._class_grams),
            self._sums,
            self._weights,
            self._examples,
            self._squares,
        )


def with_added(
    moments: Moments,
    sums: Floats,
    weights: Floats,
    examples: npt.NDArray[np.int64],
    squares: Floats,
) -> Moments:
    """Add sums per class to those of some moments; the Gram matrices are complete already."""
    squares = moments.class_squares + squares
    return replace(
        moments,
        class_sums=tuple(moments.sums + sums),
        class_weights=moments.class_weights + weights,
        class_examples=moments.class_examples + examples,
        class_squares=squares,
        peak=max(moments.peak, float(squares.sum())),
        waiting=(),
        token=object(),
    )
