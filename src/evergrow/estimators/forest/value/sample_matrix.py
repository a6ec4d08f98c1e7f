"""Stored samples as an array-like matrix that is read on access."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.foundation.errors import InvalidInputError


class SampleMatrix:
    """Some stored samples as a matrix; they may lie in a file larger than memory.

    It has the shape of an array and can be sliced, which is enough to write a model file.
    """

    ndim = 2

    def __init__(self, samples: _core.Samples, numbers: npt.NDArray[np.int32]) -> None:
        self._samples, self._numbers = samples, numbers
        self.shape = (len(numbers), samples.n_features)
        self.dtype = np.dtype(np.float16 if samples.half else np.float32)
        self.nbytes = self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """Read some rows."""
        return as_floats(self._samples.take(self._numbers[rows]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Read all rows."""
        if copy is False:
            raise InvalidInputError(
                "stored samples are always read as a copy; copy=False is not possible"
            )
        return np.asarray(self[:], dtype=dtype)


def as_floats(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows of the core as floats; the core returns half precision as 16-bit integers."""
    return rows.view(np.float16) if rows.dtype == np.uint16 else rows
