"""Rows on disk with the interface of a matrix, which are read a block at a time."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.ragged import RaggedArray, RaggedRows

# Size of a block if the caller does not set its rows.
_BLOCK_BYTES = 8 << 20

# Rows read together when iterating over images.
_ROWS_TOGETHER = 1 << 14

Numbers = npt.NDArray[np.int64]


class StoredRows(metaclass=ABCMeta):
    """A matrix that estimators go through a block at a time.

    It has a shape and a type and is indexed by rows as an array is: by a number, a slice, a list of
    numbers or a mask. What comes back are arrays. ``numpy.asarray`` reads all of it.
    """

    ndim = 2
    # NumPy then leaves comparisons and sums to __array__ instead of going through rows one by one.
    __array_priority__ = -1.0

    # Numbers of rows and features, and the type of the numbers.
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        """Every ``step``-th row of a range that is within bounds and not empty."""

    @abstractmethod
    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        """Rows in ascending order, within bounds; a copy."""

    def __len__(self) -> int:
        """Count the rows."""
        return self.shape[0]

    @property
    def size(self) -> int:
        """Number of numbers."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes that all rows would take in memory."""
        return self.size * self.dtype.itemsize

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Read all rows into memory."""
        if copy is False:
            raise InvalidInputError("rows on disk cannot become an array without a copy")
        wanted = self.dtype
        if dtype is not None:
            # As NumPy converts: text, say, gets the length that it needs.
            wanted = np.empty(0, self.dtype).astype(dtype).dtype
        # A block at a time, so that there are never two copies of all rows.
        found = np.empty(self.shape, dtype=wanted)
        for rows, block in self.blocks():
            found[rows] = block
        return found

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Go through the rows."""
        for _, block in self.blocks():
            yield from block

    def blocks(self, max_rows: int | None = None) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Iterate over all rows, a block at a time.

        Parameters
        ----------
        max_rows : int, default=None
            Maximum number of rows in a block. None makes blocks of about 8 MiB.

        Yields
        ------
        rows : slice
            Which rows these are.
        block : ndarray of shape (n_rows, n_features)
            The rows.
        """
        step = max_rows or max(1, _BLOCK_BYTES // max(1, self.nbytes // max(1, len(self))))
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, self[rows]

    def choose(self, rows: npt.ArrayLike) -> StoredRows:
        """Select some rows, which stay on disk; estimators accept the result as ``X``.

        Parameters
        ----------
        rows : array-like
            Indices of the rows in any order, or a mask over all rows.

        Returns
        -------
        chosen : array-like of shape (n_chosen, n_features)
            The selected rows.
        """
        return ChosenRows(self, self._numbers(rows))

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """Rows as an array: one number, a slice, numbers in any order, or a mask."""
        if isinstance(index, tuple):
            return self._across(*index)
        if index is Ellipsis:
            return self[:]
        if isinstance(index, slice):
            return self._sliced(index)
        if _is_number(index):
            at = range(len(self))[index]
            return cast("npt.NDArray[Any]", self._span(at, at + 1, 1)[0])
        return self._gathered(self._numbers(index))

    def _across(self, rows: Any = Ellipsis, *columns: Any) -> npt.NDArray[Any]:
        found = self[rows]
        every: tuple[Any, ...] = (slice(None),) * (found.ndim - 1)
        is_list = not isinstance(rows, slice) and rows is not Ellipsis
        if every and is_list and any(np.ndim(column) for column in columns):
            # Numbers of rows and of columns go in pairs, as those of an array do.
            every = (np.arange(len(found)),)
        return cast("npt.NDArray[Any]", found[(*every, *columns)])

    def _sliced(self, index: slice) -> npt.NDArray[Any]:
        wanted = range(len(self))[index]
        if not wanted:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        if wanted.step > 0:
            return self._span(wanted[0], wanted[-1] + 1, wanted.step)
        return self._span(wanted[-1], wanted[0] + 1, -wanted.step)[::-1]

    def _gathered(self, numbers: Numbers) -> npt.NDArray[Any]:
        if (numbers[1:] >= numbers[:-1]).all():
            return self._at(numbers)
        # Disks like to be read forwards.
        order = np.argsort(numbers, kind="stable")
        found = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        found[order] = self._at(numbers[order])
        return found

    def _numbers(self, rows: npt.ArrayLike) -> Numbers:
        asked: npt.NDArray[Any] = np.asarray(rows)
        if asked.ndim != 1 or (asked.dtype.kind not in "biu" and asked.size):
            raise IndexError(
                "rows are chosen by a number, a slice, a list of numbers or a mask, "
                f"got {asked.dtype} of shape {asked.shape}"
            )
        if asked.dtype.kind == "b":
            if len(asked) != len(self):
                raise IndexError(f"the mask has {len(asked)} entries, there are {len(self)} rows")
            return np.flatnonzero(asked).astype(np.int64)
        if asked.size and not (-len(self) <= asked.min() and asked.max() < len(self)):
            raise IndexError(f"rows must be from 0 to {len(self) - 1}")
        numbers: Numbers = asked.astype(np.int64)
        return np.where(numbers < 0, numbers + len(self), numbers)


class ChosenRows(StoredRows):
    """Some of the rows of another; made by :meth:`Shards.choose`."""

    def __init__(self, rows: StoredRows, numbers: Numbers) -> None:
        self._rows, self._chosen = rows, numbers
        self.shape, self.dtype = (len(numbers), rows.shape[1]), rows.dtype

    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        return self._rows[self._chosen[first:last:step]]

    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        return self._rows[self._chosen[numbers]]

    def __repr__(self) -> str:
        """Say how much there is."""
        return f"<{len(self)} of the rows of {self._rows!r}>"


class JoinedRows(StoredRows):
    """A few rows in memory, and after them others that stay on disk."""

    def __init__(self, first: npt.NDArray[Any], rest: StoredRows) -> None:
        self._first, self._rest = first, rest
        self.shape = (len(first) + len(rest), rest.shape[1])
        self.dtype = np.result_type(first.dtype, rest.dtype)

    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        here = self._first[first:last:step]
        after = first + step * len(here) - len(self._first)
        if after >= last - len(self._first):
            return here
        rest = self._rest[after : last - len(self._first) : step]
        return np.concatenate([here, rest]) if len(here) else rest.astype(self.dtype, copy=False)

    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        n_first = int(np.searchsorted(numbers, len(self._first)))
        rest = self._rest[numbers[n_first:] - len(self._first)]
        return np.concatenate([self._first[numbers[:n_first]], rest])

    def __repr__(self) -> str:
        """Say how much there is."""
        return f"<{len(self._first)} rows and {self._rest!r}>"


def _is_number(index: Any) -> bool:
    """Whether an index asks for one row; flags do not."""
    return isinstance(index, (int, np.integer, np.ndarray)) and (
        np.ndim(index) == 0 and np.asarray(index).dtype.kind in "iu"
    )


def choose_rows(X: Any, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Some rows of a matrix, by numbers or a mask; those on disk stay there."""
    chosen: Any = X.choose(rows) if isinstance(X, StoredRows) else X[rows]
    return cast("npt.NDArray[Any]", chosen)


def join_rows(first: npt.NDArray[Any], rest: Any) -> npt.NDArray[Any]:
    """Rows of two matrices; those on disk stay there."""
    if isinstance(rest, StoredRows):
        return cast("npt.NDArray[Any]", JoinedRows(first, rest))
    return np.concatenate([first, rest])


class ShardImages(RaggedRows):
    """The images of shards, each with several rows that stay on disk.

    It behaves like a list of matrices and like a :class:`~evergrow.RaggedArray`, and codebooks
    accept it. Created by ``Shards.images``.

    Attributes
    ----------
    values : StoredRows
        The rows of all images, one image after the other.
    offsets : ndarray of shape (n_images + 1,)
        The first row of each image.
    """

    def __init__(self, values: StoredRows, offsets: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.offsets = offsets

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
