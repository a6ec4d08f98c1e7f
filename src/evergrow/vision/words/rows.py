"""Descriptors in single precision, from matrices in memory or rows on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from evergrow.estimators.classifier.learner import checked_rows
from evergrow.foundation.blocks import float_blocks
from evergrow.storage.shards import StoredRows

__all__ = ["checked_descriptors", "single", "single_matrix"]

Rows = npt.NDArray[np.float32]


def checked_descriptors(estimator: BaseEstimator, rows: Any, *, reset: bool = True) -> Any:
    """A matrix in single precision; rows on disk stay there."""
    return checked_rows(estimator, rows, reset=reset, dtype=np.float32, order="C")


def single_matrix(X: Any) -> Rows:
    """Descriptors to learn from, in memory; those on disk are read once, a block at a time.

    A ``ValueError`` for what is not finite, or too large.
    """
    if not isinstance(X, StoredRows):
        return single(X)
    rows = np.empty(X.shape, dtype=np.float32)
    for part, block in float_blocks(X):  # type: ignore[arg-type]
        rows[part] = single(block)
    return rows


def single(block: npt.NDArray[Any]) -> Rows:
    """Rows in single precision; a ``ValueError`` for what is not finite, or what is too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(block, dtype=np.float32)
        # The sum is a number unless one of them is not, or they are very large.
        suspect = not np.isfinite(rows.sum())
    if suspect and not np.isfinite(rows).all():
        raise ValueError(
            "descriptors must not be NaN or infinite and must fit in single precision "
            "(up to 3.4e38)"
        )
    return rows
