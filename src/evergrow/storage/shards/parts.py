"""Rows of a matrix, or of shards, cut into parts that tasks read where they run.

How they are cut depends on the rows alone, so that results do not depend on who computes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.engine import Engine, Job, Task
from evergrow.storage.shards.reading import ShardPart, Shards
from evergrow.storage.shards.rows import StoredRows

__all__ = ["RowPart", "content_name", "gathered", "row_parts", "rows_to_share"]

# About as much as a shard holds: what a task costs by itself vanishes beside it.
_PART_BYTES = 64 << 20
# Bytes that are hashed at once.
_HASHED_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some neighbouring rows of a whole, by where they lie.

    Attributes
    ----------
    first, last : int
        The rows' places in the whole, the last one excluded.
    shard : ShardPart or None
        Where they are read; None for rows of a matrix that all tasks share.
    """

    first: int
    last: int
    shard: ShardPart | None = None

    @property
    def rows(self) -> slice:
        """The rows' places in the whole."""
        return slice(self.first, self.last)

    def read(self, matrix: Any) -> Any:
        """The rows; ``matrix`` is what :func:`rows_to_share` gave.

        Rows on disk stay there until somebody goes through them.
        """
        if self.shard is not None:
            return self.shard.read()
        if matrix is None:
            raise ValueError("rows that lie in no shard need the matrix they are part of")
        if isinstance(matrix, StoredRows):
            return matrix.choose(np.arange(self.first, self.last))
        return matrix[self.rows]


def row_parts(X: Any, *, squared: bool = False) -> list[RowPart]:
    """Cut rows into parts: by shards, or else where so many bytes are full.

    No part is empty: shards of images may have no rows at all. ``squared`` says that what a part
    gives is as large as a square of features.

    >>> [(part.first, part.last) for part in row_parts(np.zeros((3, 2)))]
    [(0, 3)]
    """
    if isinstance(X, Shards):
        return [RowPart(part.first, part.last, part) for part in X.parts if part.first < part.last]
    n_rows, n_features = X.shape
    step = max(1, _PART_BYTES // max(1, n_features * X.dtype.itemsize))
    if squared:
        # What is sent back shall be less than what was read.
        step = max(step, 4 * n_features)
    step = -(-n_rows // -(-n_rows // step)) if n_rows else 1
    return [RowPart(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def rows_to_share(X: Any) -> npt.NDArray[Any] | None:
    """What tasks need besides their parts: the matrix, or nothing where rows lie in shards."""
    if isinstance(X, Shards):
        return None
    # Plain arrays travel without a copy, mapped ones and other kinds of array do not.
    return np.asarray(X) if isinstance(X, np.ndarray) else X


def gathered(
    engine: Engine,
    parts: Sequence[RowPart],
    task: Task,
    X: Any,
    values: Sequence[Any],
    *,
    what: str,
    verbose: int = 0,
) -> npt.NDArray[Any]:
    """What a task makes of the rows of each part, its array ``"rows"``, in the order of the rows.

    ``task`` gets a part, what :func:`rows_to_share` gave, and the values.
    """
    job = Job(task, parts, (rows_to_share(X), *values), what, verbose)
    whole: npt.NDArray[Any] | None = None
    for place, found in engine.run(job):
        rows = found["rows"]
        if whole is None:
            whole = np.empty((parts[-1].last, *rows.shape[1:]), dtype=rows.dtype)
        whole[parts[place].rows] = rows
    if whole is None:
        raise ValueError("there must be at least one part")
    return whole


def content_name(*values: Any) -> str:
    """A hash that names values by their content: rows, other arrays, and what has a ``repr``.

    >>> content_name(np.zeros(3), "a") == content_name(np.zeros(3), "a")
    True
    >>> content_name(np.zeros(3), "a") == content_name(np.zeros(3), "b")
    False
    """
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, Shards):
            total.update(f"shards {value.digest}\n".encode())
        elif isinstance(value, (np.ndarray, StoredRows)):
            total.update(f"array {value.dtype.str} {value.shape}\n".encode())
            _add_array(total, value)
        else:
            total.update(f"value {value!r}\n".encode())
    return total.hexdigest()


def _add_array(total: Any, array: npt.NDArray[Any] | StoredRows) -> None:
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    step = max(1, _HASHED_BYTES // max(1, row_bytes))
    for first in range(0, len(array) if array.ndim else 0, step):
        total.update(np.ascontiguousarray(array[first : first + step]).data)
