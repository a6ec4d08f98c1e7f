"""Words of many descriptors, in this process or in parts on an engine."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from evergrow.estimators.classifier.learner import validate_rows
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.shards import StoredRows
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

Rows = npt.NDArray[np.float32]
Words = npt.NDArray[np.int32]


class Coder(Protocol):
    """Assigns words to rows; picklable, because tasks use it in other processes."""

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of words of each tree."""

    def words_of(self, rows: npt.NDArray[Any], n_threads: int) -> Words:
        """Word of each row in each tree."""


def assign_words(coder: Coder, X: Any, n_threads: int) -> Words:
    """Word of each row in each tree; rows on disk are read block by block."""
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is not None and len(parts) > 1:
        capacity = engine.capacity
        shared = (coder, capacity.threads_per_worker if capacity.is_remote else n_threads)
        return run_and_stack(engine, parts, assign_part, X, shared, what="coding descriptors")
    if not isinstance(X, StoredRows):
        return coder.words_of(X, n_threads)
    words = np.empty((X.shape[0], len(coder.words_per_tree)), dtype=np.int32)
    for rows, block in float_blocks(X):  # type: ignore[arg-type]
        words[rows] = coder.words_of(to_single(block), n_threads)
    return words


def assign_part(
    part: RowPart, matrix: npt.NDArray[Any] | None, coder: Coder, n_threads: int
) -> Arrays:
    """Task: the words of one part of the rows."""
    return {"rows": coder.words_of(load_single(part.read(matrix)), n_threads)}


def check_matrix(estimator: BaseEstimator, rows: Any, *, reset: bool = True) -> Any:
    """Validate descriptors as a matrix in single precision; rows on disk stay there."""
    return validate_rows(estimator, rows, reset=reset, dtype=np.float32, order="C")


def load_single(X: Any) -> Rows:
    """Load descriptors into memory in single precision; those on disk are read block by block.

    A ``ValueError`` for values that are not finite, or too large.
    """
    if not isinstance(X, StoredRows):
        return to_single(X)
    rows = np.empty(X.shape, dtype=np.float32)
    for part, block in float_blocks(X):  # type: ignore[arg-type]
        rows[part] = to_single(block)
    return rows


def to_single(block: npt.NDArray[Any]) -> Rows:
    """Convert to single precision; a ``ValueError`` if values are not finite or too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(block, dtype=np.float32)
        # A finite sum proves that all values are finite; only otherwise are they checked.
        suspect = not np.isfinite(rows.sum())
    if suspect and not np.isfinite(rows).all():
        raise InvalidInputError(
            "descriptors must not be NaN or infinite and must fit in single precision "
            "(up to 3.4e38)"
        )
    return rows
