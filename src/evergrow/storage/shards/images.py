"""Images with several rows each, whose rows stay on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards.rows import StoredRows

# Rows read together when iterating over images.
_ROWS_TOGETHER = 1 << 14


class ShardImages:
    """Like :class:`~evergrow.RaggedArray`, with the rows on disk.

    It is indexed and iterated like a list of matrices, and codebooks accept it as one. Created by
    ``Shards.images``.

    Attributes
    ----------
    values : StoredRows
        The rows of all images, one image after the other.
    offsets : ndarray of shape (n_images + 1,)
        The first row of each image.
    """

    # Comparing arrays gives no single answer, so `in` cannot be supported.
    __contains__ = None

    def __init__(self, values: StoredRows, offsets: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.offsets = offsets

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of rows of each image."""
        lengths: npt.NDArray[np.int64] = np.diff(self.offsets)
        return lengths

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def __len__(self) -> int:
        """Count the images."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice | npt.NDArray[Any] | list[int]) -> RaggedArray: ...
    def __getitem__(self, index: Any) -> npt.NDArray[Any] | RaggedArray:
        """Return the rows of one image, or several images in memory."""
        if isinstance(index, (int, np.integer)):
            at = range(len(self))[index]
            return self.values[int(self.offsets[at]) : int(self.offsets[at + 1])]
        wanted = np.arange(len(self))[index]
        parts = [self[int(at)] for at in wanted]
        values = np.concatenate(parts) if parts else self.values[:0]
        return RaggedArray(values, np.cumsum([0, *(len(part) for part in parts)]))

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Iterate over the images; the rows of many are read together."""
        first = 0
        while first < len(self):
            end = self.offsets[first] + _ROWS_TOGETHER
            last = max(first + 1, int(np.searchsorted(self.offsets, end, side="right")) - 1)
            yield from RaggedArray(
                self.values[int(self.offsets[first]) : int(self.offsets[last])],
                self.offsets[first : last + 1] - self.offsets[first],
            )
            first = last

    def __repr__(self) -> str:
        """Show the number of images."""
        return f"ShardImages({len(self)} images of {self.values!r})"
