"""NumPy arrays from untrusted files: no pickle, and sizes are checked first.

``numpy.load`` refuses pickled objects too, but allocates memory by what the header declares and
reads headers of any length.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError
from evergrow.research.datasets.formats.files import Budget, fill

Array = npt.NDArray[Any]

_MAGIC_BYTES = 8
_MAX_HEADER_BYTES = 10_000
# By format version: the number of bytes of the header length, and the reader.
_HEADERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
# Booleans, numbers and text.
_KINDS = "biufSU"
# As float32, values may need more memory than in the file.
_FLOAT_BYTES = 4
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npy(file: BinaryIO, n_bytes: int, budget: Budget, what: str) -> Array:
    """Read one array from a file of ``n_bytes``; ``what`` names it in errors."""
    shape, fortran_order, dtype, n_header = _header(file, what)
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
    return values.reshape(shape, order="F" if fortran_order else "C")


def _header(file: BinaryIO, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    start = file.read(_MAGIC_BYTES)
    try:
        version = np.lib.format.read_magic(io.BytesIO(start))
    except ValueError as error:
        raise DatasetError(f"{what} is not in NumPy's .npy format") from error
    if version not in _HEADERS:
        raise DatasetError(f"{what} has version {version} of the .npy format; 1.0 and 2.0 are read")
    n_size, read = _HEADERS[version]
    size = file.read(n_size)
    n_header = int.from_bytes(size, "little")
    if n_header > _MAX_HEADER_BYTES:
        raise DatasetError(
            f"{what} has a header of {n_header} bytes; at most {_MAX_HEADER_BYTES} are read"
        )
    try:
        shape, fortran_order, dtype = read(io.BytesIO(size + file.read(n_header)))
    # Untrusted header text can raise many kinds of errors.
    except Exception as error:
        raise DatasetError(f"{what} has a damaged header: {error}") from error
    if any(side < 0 for side in shape):
        raise DatasetError(f"{what} has a damaged header: its shape is {shape}")
    return shape, fortran_order, dtype, len(start) + n_size + n_header


class ArrayArchive:
    """The named arrays of an ``.npz`` file, read on demand.

    Parameters
    ----------
    file : binary file
        Open to read.
    budget : Budget
        Memory limit for all arrays together.
    what : str
        Name of the file in errors.
    """

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
