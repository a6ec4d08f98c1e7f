"""Rows on disk that are asked for like those of a matrix, and never read all at once unasked."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

# Rows of a block where nobody says how many.
from evergrow.foundation.errors import InvalidInputError

_BLOCK_BYTES = 8 << 20

Numbers = npt.NDArray[np.int64]


class StoredRows(metaclass=ABCMeta):
    """A matrix that estimators go through a block at a time.

    It has a shape and a type and is indexed by rows as an array is: by a number, a slice, a list of
    numbers or a mask. What comes back are arrays. ``numpy.asarray`` reads all of it.
    """

    ndim = 2
    # NumPy then leaves comparisons and sums to __array__ instead of going through rows one by one.
    __array_priority__ = -1.0

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""

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
        """Go through all rows, some at a time: (which rows, the rows).

        Parameters
        ----------
        max_rows : int, default=None
            Rows in a block at most; None for about 8 MiB.
        """
        step = max_rows or max(1, _BLOCK_BYTES // max(1, self.nbytes // max(1, len(self))))
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, self[rows]

    def choose(self, rows: npt.ArrayLike) -> ChosenRows:
        """Some rows, which stay on disk; estimators take them as they take all.

        Parameters
        ----------
        rows : array-like
            Their numbers, in any order, or a mask over all rows.
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
            row: npt.NDArray[Any] = self._span(at, at + 1, 1)[0]
            return row
        return self._gathered(self._numbers(index))

    def _across(self, rows: Any = Ellipsis, *columns: Any) -> npt.NDArray[Any]:
        found = self[rows]
        every: tuple[Any, ...] = (slice(None),) * (found.ndim - 1)
        is_list = not isinstance(rows, slice) and rows is not Ellipsis
        if every and is_list and any(np.ndim(column) for column in columns):
            # Numbers of rows and of columns go in pairs, as those of an array do.
            every = (np.arange(len(found)),)
        result: npt.NDArray[Any] = found[(*every, *columns)]
        return result

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
        self._rows = rows
        self._chosen = numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return len(self._chosen), self._rows.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self._rows.dtype

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
        self._first = first
        self._rest = rest

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return len(self._first) + len(self._rest), self._rest.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.result_type(self._first.dtype, self._rest.dtype)

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
        found: npt.NDArray[Any] = np.concatenate([self._first[numbers[:n_first]], rest])
        return found

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
