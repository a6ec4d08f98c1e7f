"""One pass over examples: each block is checked, mapped, and some rows of it are picked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples.checking import check_block
from evergrow.foundation.blocks import float_blocks

__all__ = ["AS_THEY_ARE", "NONE", "Mapping", "Picked", "mapped_batches"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# No places to pick from.
NONE: Places = np.zeros(0, dtype=np.int64)


class Mapping(Protocol):
    """What becomes of inputs before they are added up; it has to travel, so it is picklable."""

    @property
    def max_rows(self) -> int | None:
        """How many rows are mapped at once; None for any number."""

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        """New rows in double precision, which share no memory with the block."""


@dataclass(frozen=True)
class _AsTheyAre:
    """Inputs are added up as they come."""

    max_rows: int | None = None

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        # A copy: few examples wait in the sums, and the caller may change his matrix meanwhile.
        return np.array(block, dtype=np.float64, order="C")


AS_THEY_ARE: Mapping = _AsTheyAre()


class Picked:
    """Rows at some ascending places, collected while blocks pass by.

    >>> picked = Picked(np.array([1, 4]), np.zeros((6, 1)))
    >>> picked.take(slice(0, 3), np.array([[5.0], [6.0], [7.0]]))
    >>> picked.take(slice(3, 6), np.array([[8.0], [9.0], [9.5]]))
    >>> picked.rows.ravel().tolist()
    [6.0, 9.0]
    """

    def __init__(self, places: Places, X: npt.NDArray[Any]) -> None:
        self._places = places
        # What blocks are: single precision stays that, and takes half the way.
        is_single = X.dtype in (np.float16, np.float32)
        dtype = np.float32 if is_single else np.float64
        self.rows: npt.NDArray[Any] = np.empty((len(places), X.shape[1]), dtype=dtype)

    def take(self, rows: slice, block: npt.NDArray[Any]) -> None:
        """Copy those that lie in a block of these rows."""
        first, last = np.searchsorted(self._places, (rows.start, rows.stop))
        self.rows[first:last] = block[self._places[first:last] - rows.start]


def mapped_batches(
    new: Batch,
    mapping: Mapping = AS_THEY_ARE,
    picked: Picked | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Batch]:
    """Examples, inputs of any type, a block of rows at a time.

    A ``ValueError`` stops the pass at numbers that do not add up: nobody has to look before.
    """
    for rows, block in float_blocks(new.rows, mapping.max_rows):
        check_block(block)
        if picked is not None:
            picked.take(rows, block)
        yield Batch(mapping(block), new.codes[rows], new.weights[rows])
        if progress is not None:
            progress(rows.stop)
