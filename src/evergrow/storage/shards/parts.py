"""Cuts the rows of a matrix or of shards into parts that tasks read where they run.

The cut depends on the rows alone, so that results do not depend on the workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.engine import Engine, Job, Task
from evergrow.storage.shards.reader import ShardPart, Shards
from evergrow.storage.shards.rows import StoredRows

# About the size of a shard, so that the overhead of a task is negligible.
_PART_BYTES = 64 << 20
# Bytes hashed at once.
_HASHED_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class RowPart:
    """Rows of a matrix from ``first`` to ``last``, exclusive.

    They are in the file of a shard; without one, in a matrix that all tasks share.
    """

    first: int
    last: int
    shard: ShardPart | None = None

    @property
    def rows(self) -> slice:
        """The indices of the rows in the whole."""
        return slice(self.first, self.last)

    def read(self, matrix: Any) -> Any:
        """Return the rows; ``matrix`` is the result of :func:`rows_to_share`.

        Rows on disk are read only when they are used.
        """
        if self.shard is not None:
            return self.shard.read()
        if matrix is None:
            raise RuntimeError("rows outside of shards need their matrix")
        if isinstance(matrix, StoredRows):
            return matrix.choose(np.arange(self.first, self.last))
        return matrix[self.rows]


def row_parts(X: Any, *, squared: bool = False) -> list[RowPart]:
    """Cut rows into parts: one per shard, or of about 64 MiB.

    No part is empty, although shards of images may have no rows. ``squared`` says that the result
    of a part has the size of a matrix of features by features.

    >>> [(part.first, part.last) for part in row_parts(np.zeros((3, 2)))]
    [(0, 3)]
    """
    if isinstance(X, Shards):
        return [RowPart(part.first, part.last, part) for part in X.parts if part.first < part.last]
    n_rows, n_features = X.shape
    step = max(1, _PART_BYTES // max(1, n_features * X.dtype.itemsize))
    if squared:
        # The result should be smaller than what was read.
        step = max(step, 4 * n_features)
    step = -(-n_rows // -(-n_rows // step)) if n_rows else 1
    return [RowPart(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def rows_to_share(X: Any) -> npt.NDArray[Any] | None:
    """Return what all tasks share: the matrix, or None if the rows are in shards."""
    if isinstance(X, Shards):
        return None
    # Plain arrays are sent without a copy; memory maps and other subclasses are not.
    return np.asarray(X) if isinstance(X, np.ndarray) else X


def run_and_stack(
    engine: Engine,
    parts: Sequence[RowPart],
    task: Task,
    X: Any,
    values: Sequence[Any],
    *,
    what: str,
    verbose: int = 0,
) -> npt.NDArray[Any]:
    """Run a task on every part and stack its arrays ``"rows"`` in the order of the rows.

    The task is called with a part, the result of :func:`rows_to_share`, and the values.
    """
    job = Job(task, parts, (rows_to_share(X), *values), what, verbose)
    whole: npt.NDArray[Any] | None = None
    for place, found in engine.run(job):
        rows = found["rows"]
        if whole is None:
            whole = np.empty((parts[-1].last, *rows.shape[1:]), dtype=rows.dtype)
        whole[parts[place].rows] = rows
    if whole is None:
        raise RuntimeError("there must be at least one part")
    return whole


def content_name(*values: Any) -> str:
    """Return a hash of values by their content: rows, arrays, and other values by ``repr``.

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
