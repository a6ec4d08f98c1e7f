"""Examples with weights, checked and cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight

from evergrow.blocks import float_blocks
from evergrow.moments import WAITING, Batch, Moments

__all__ = ["add_examples", "check_size", "positive_part", "subtract_examples"]

# Sums of squares of larger ones would be no numbers any more.
_LARGEST = 1e140

Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]


def positive_part(
    X: npt.NDArray[Any], y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> Arrays:
    """Rows, labels and weights, without the rows of weight zero: those are as good as absent."""
    if sample_weight is None:
        return X, y, np.ones(X.shape[0])
    weights = _check_sample_weight(
        sample_weight,
        X,
        dtype=np.float64,
        ensure_non_negative=True,
    )
    if (weights > _LARGEST).any():
        raise ValueError(f"sample_weight must be at most {_LARGEST:g}")
    present = weights > 0
    if not present.any():
        raise ValueError("sample_weight is zero for every example")
    return (X, y, weights) if present.all() else (X[present], y[present], weights[present])


def check_size(X: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for numbers whose squares do not add up."""
    for _, block in float_blocks(X):
        if block.dtype == np.float64 and np.abs(block).max() > _LARGEST:
            raise ValueError(
                f"Input X contains values too large to add up their squares, above {_LARGEST:g}."
            )


def add_examples(
    moments: Moments,
    X: npt.NDArray[Any],
    codes: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
) -> Moments:
    """Sums with these examples in them."""
    check_size(X)
    if X.shape[0] <= WAITING:
        return moments.add(Batch(np.array(X, dtype=np.float64, order="C"), codes, weights))
    return moments.add(_batches(X, codes, weights))


def subtract_examples(
    moments: Moments,
    X: npt.NDArray[Any],
    codes: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
) -> Moments:
    """Sums without these examples; a ``ForgetError`` if they cannot have been learnt."""
    check_size(X)
    for batch in _batches(X, codes, weights):
        moments = moments.subtract(batch)
    return moments


def _batches(
    X: npt.NDArray[Any], codes: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]
) -> Iterator[Batch]:
    for rows, block in float_blocks(X):
        yield Batch(np.asarray(block, dtype=np.float64), codes[rows], weights[rows])
