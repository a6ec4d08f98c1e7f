"""The words of many descriptors, here or wherever the engine in use runs its tasks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.storage.shards import StoredRows
from evergrow.storage.shards.row_parts import RowPart, gathered, row_parts
from evergrow.vision.words.rows import single, single_matrix

__all__ = ["Coder", "words_of_all", "words_of_part"]

Words = npt.NDArray[np.int32]


class Coder(Protocol):
    """What gives rows their words; it has to travel, so it is picklable."""

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of words of each tree."""

    def words_of(self, rows: npt.NDArray[Any], n_threads: int) -> Words:
        """Word of each row in each tree."""


def words_of_all(coder: Coder, X: Any, n_threads: int) -> Words:
    """Word of each row in each tree; rows on disk are read a block at a time."""
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is not None and len(parts) > 1:
        values = (
            coder,
            engine.capacity.threads_per_worker if engine.capacity.is_remote else n_threads,
        )
        return gathered(engine, parts, words_of_part, X, values, what="coding descriptors")
    if not isinstance(X, StoredRows):
        return coder.words_of(X, n_threads)
    words = np.empty((X.shape[0], len(coder.words_per_tree)), dtype=np.int32)
    for rows, block in float_blocks(X):  # type: ignore[arg-type]
        words[rows] = coder.words_of(single(block), n_threads)
    return words


def words_of_part(
    part: RowPart, matrix: npt.NDArray[Any] | None, coder: Coder, n_threads: int
) -> Arrays:
    """The words of some rows."""
    return {"rows": coder.words_of(single_matrix(part.read(matrix)), n_threads)}
