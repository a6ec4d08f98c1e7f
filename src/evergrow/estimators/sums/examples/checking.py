"""Examples with weights: checked at the door, and cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight

from evergrow.estimators.sums.batches import Batch
from evergrow.foundation.blocks import float_blocks
from evergrow.storage.shards import choose_rows

__all__ = ["check_block", "check_size", "plain_batches", "weighted"]

# Sums of squares of larger ones would be no numbers any more.
_LARGEST = 1e140

Codes = npt.NDArray[np.int32]
Weights = npt.NDArray[np.float64]


def weighted(
    X: npt.NDArray[Any], y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Weights]:
    """Rows, labels and weights, without the rows of weight zero: those are as good as absent."""
    if sample_weight is None:
        return X, y, np.ones(X.shape[0])
    checked = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    # A copy: few examples wait in the sums, and the caller may use his array again meanwhile.
    weights: Weights = np.array(checked)
    if (weights > _LARGEST).any():
        raise ValueError(f"sample_weight must be at most {_LARGEST:g}")
    present = weights > 0
    if not present.any():
        raise ValueError("sample_weight must not be 0 for all samples")
    if present.all():
        return X, y, weights
    return choose_rows(X, present), y[present], weights[present]


def check_size(X: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for numbers whose squares do not add up."""
    for _, block in float_blocks(X):
        check_block(block)


def check_block(block: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for a block with numbers whose squares do not add up."""
    if block.dtype == np.float64 and len(block) and np.abs(block).max() > _LARGEST:
        raise ValueError(
            f"Input X contains values too large to add up their squares, above {_LARGEST:g}."
        )


def plain_batches(X: npt.NDArray[Any], codes: Codes, weights: Weights) -> Iterator[Batch]:
    """Examples in double precision, a block of rows at a time."""
    for rows, block in float_blocks(X):
        yield Batch(np.asarray(block, dtype=np.float64), codes[rows], weights[rows])
