"""NumPy arrays from untrusted files: no pickle, and sizes are checked first.

``numpy.load`` refuses pickled objects too, but allocates memory by what the header declares and
reads headers of any length.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from typing import BinaryIO, Self

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetError, InvalidInputError
from evergrow.research.datasets.formats.files import Budget, fill
from evergrow.storage.npy import read_npy_header

# Booleans, numbers and text.
_KINDS = "biufSU"
# As float32, values may need more memory than in the file.
_FLOAT_BYTES = 4
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npy(file: BinaryIO, n_bytes: int, budget: Budget, what: str) -> Array:
    """Read one array from a file of ``n_bytes``; ``what`` names it in errors."""
    try:
        header = read_npy_header(file)
    except InvalidInputError as error:
        raise DatasetError(f"{what} {error}") from error
    shape, dtype, n_header = header.shape, header.dtype, header.n_bytes
    if dtype.hasobject:
        raise DatasetError(
            f"{what} is an array of Python objects, which only pickle can read, and a pickle can "
            "run any code: save it as an array of numbers or of strings"
        )
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise DatasetError(f"{what} has values of type {dtype}; numbers or strings are allowed")
    n_values = math.prod(shape)
    if n_header + n_values * dtype.itemsize != n_bytes:
        raise DatasetError(
            f"{what} has {n_bytes} bytes, but its header of {n_header} declares values of shape "
            f"{shape}, which need {n_values * dtype.itemsize}"
        )
    budget.take(n_values * max(dtype.itemsize, _FLOAT_BYTES), what)
    values = np.empty(n_values, dtype)
    fill(values, file, what)
    return values.reshape(shape, order="F" if header.by_columns else "C")


class ArrayArchive:
    """The named arrays of an ``.npz`` file, read on demand; ``what`` names it in errors."""

    def __init__(self, file: BinaryIO, budget: Budget, what: str) -> None:
        self._what = what
        self._budget = budget
        try:
            self._zip = zipfile.ZipFile(file)
        # The table of contents is not trusted either.
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise DatasetError(f"{what} is not an .npz file: {error}") from error
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._zip.infolist():
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                self._zip.close()
                raise DatasetError(f"{what} holds {name!r} twice")
            self._members[name] = member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in the order of the file."""
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Array:
        member = self._members[name]
        what = f"{name!r} in {self._what}"
        if member.compress_type not in _COMPRESSIONS:
            raise DatasetError(f"{what} has a compression that NumPy does not use")
        try:
            with self._zip.open(member) as file:
                return read_npy(file, member.file_size, self._budget, what)  # type: ignore[arg-type]
        except DatasetError:
            raise
        # Checksums, encryption, wrong lengths.
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError) as error:
            raise DatasetError(f"{what} is damaged: {error}") from error
