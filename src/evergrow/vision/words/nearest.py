"""The nearest of some centres, by products of blocks of rows in single precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ModelFileError

__all__ = ["LARGEST", "check_magnitude", "check_stored_magnitude", "nearest"]

# Squares of larger numbers, summed over many features, leave single precision.
LARGEST = 1e15
# Scores of one block: stays in the cache, and is enough for a product to run at full speed.
_BLOCK_SCORES = 1 << 20

Rows = npt.NDArray[np.float32]


def nearest(rows: Rows, centres: Rows) -> npt.NDArray[np.int32]:
    """The nearest centre of each row by Euclidean distance; the first of equally near ones."""
    # Seen from the middle of the centres, a common offset costs no digits.
    middle = centres.mean(axis=0)
    seen = np.ascontiguousarray((centres - middle).T)
    half_norms = 0.5 * np.einsum("ij,ij->j", seen, seen)
    found = np.empty(len(rows), dtype=np.int32)
    for block in _slices(len(rows), max(1, _BLOCK_SCORES // len(centres))):
        scores = (rows[block] - middle) @ seen
        np.subtract(half_norms, scores, out=scores)
        found[block] = scores.argmin(axis=1)
    return found


def _slices(n_rows: int, step: int) -> Iterator[slice]:
    return (slice(first, first + step) for first in range(0, n_rows, step))


def check_magnitude(rows: Rows) -> None:
    """Raise a ``ValueError`` for descriptors whose distances would be no numbers."""
    if len(rows) and max(rows.max(), -rows.min()) > LARGEST:
        raise ValueError(
            f"Input contains values too large for distances in single precision, above {LARGEST:g}."
        )


def check_stored_magnitude(centres: Rows) -> None:
    """Raise a ``ModelFileError`` for centres that could not have been learnt."""
    if not centres.size or np.abs(centres).max() > LARGEST:
        raise ModelFileError("the model file is inconsistent: centres are missing or too large")
