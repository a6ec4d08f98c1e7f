"""Rows of ``.npy`` content, read forwards a block at a time, from files and from archives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, ShardError
from evergrow.storage.npy import read_npy_header
from evergrow.storage.shards.importers.source import report_damage

_BLOCK_BYTES = 8 << 20


class NpyStream:
    """An array that is read once, from its beginning, by a file that need not be seekable.

    ``name`` names it in errors.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self.name = name
        with report_damage(name):
            try:
                header = read_npy_header(file)
            except InvalidInputError as error:
                raise ShardError(f"{name} {error}") from error
        self.shape, self.dtype, self._by_columns = header.shape, header.dtype, header.by_columns
        if self.dtype.hasobject:
            raise ShardError(
                f"{name} holds Python objects, which are not read: save numbers, or labels as "
                "strings with numpy.array(labels, dtype=str)"
            )

    def whole(self) -> npt.NDArray[Any]:
        """All of it."""
        found = self._read(math.prod(self.shape))
        self._check_over()
        return found.reshape(self.shape, order="F" if self._by_columns else "C")

    def blocks(self, n_skipped: int) -> Iterator[npt.NDArray[Any]]:
        """The rows of a matrix but for the first few."""
        if len(self.shape) != 2 or self.dtype.kind not in "biuf":
            raise ShardError(
                f"{self.name} must be a matrix of numbers, got {self.dtype} of shape {self.shape}"
            )
        n_rows, n_features = self.shape
        if not n_features:
            raise ShardError(f"{self.name} has no features: its shape is {self.shape}")
        if self._by_columns:
            # No row is whole before the last column has come.
            yield np.ascontiguousarray(self.whole()[n_skipped:])
            return
        step = max(1, _BLOCK_BYTES // max(1, n_features * self.dtype.itemsize))
        for first in range(0, n_rows, step):
            last = min(first + step, n_rows)
            block = self._read((last - first) * n_features).reshape(-1, n_features)
            if last > n_skipped:
                yield block[max(0, n_skipped - first) :]
        self._check_over()

    def _read(self, n_items: int) -> npt.NDArray[Any]:
        n_bytes = n_items * self.dtype.itemsize
        content = bytearray()
        while len(content) < n_bytes:
            # Never more at once than there is: a header may promise what no file holds.
            with report_damage(self.name):
                chunk = self._file.read(min(_BLOCK_BYTES, n_bytes - len(content)))
            if not chunk:
                raise ShardError(f"{self.name} ends early: it has fewer rows than it says")
            content += chunk
        if not n_items:
            return np.empty(0, dtype=self.dtype)
        return np.frombuffer(content, dtype=self.dtype)

    def _check_over(self) -> None:
        # Archives compare their hashes when they find the end, not before.
        with report_damage(self.name):
            more = self._file.read(1)
        if more:
            raise ShardError(f"{self.name} has more data than its header declares")
