"""Headers of ``.npy`` files: written, and read from untrusted files without pickle."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from evergrow.foundation.errors import InvalidInputError

_MAGIC_BYTES = 8
# NumPy writes a header of 128 bytes for a matrix.
_MAX_HEADER_BYTES = 10_000
# By format version: the number of bytes of the header length, and the reader.
_READERS = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}


@dataclass(frozen=True)
class NpyHeader:
    """What a header says of its array, and its own length in bytes."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    n_bytes: int


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of an array in row order."""
    content = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, description)
    return content.getvalue()


def read_npy_header(file: IO[bytes]) -> NpyHeader:
    """Read past a header; the text of an ``InvalidInputError`` continues a sentence on the file."""
    start = file.read(_MAGIC_BYTES)
    try:
        version = np.lib.format.read_magic(io.BytesIO(start))
    except ValueError as error:
        raise InvalidInputError("is not in NumPy's .npy format") from error
    if version not in _READERS:
        raise InvalidInputError(f"has version {version} of the .npy format; 1.0 and 2.0 are read")
    n_size, read = _READERS[version]
    size = file.read(n_size)
    n_header = int.from_bytes(size, "little")
    if n_header > _MAX_HEADER_BYTES:
        raise InvalidInputError(
            f"has a header of {n_header} bytes; at most {_MAX_HEADER_BYTES} are read"
        )
    try:
        shape, by_columns, dtype = read(io.BytesIO(size + file.read(n_header)))
    # Untrusted header text can raise many kinds of errors.
    except Exception as error:
        raise InvalidInputError(f"has a damaged header: {error}") from error
    if not all(type(side) is int and side >= 0 for side in shape):
        raise InvalidInputError(f"has a damaged header: its shape is {shape}")
    return NpyHeader(shape, by_columns, dtype, len(start) + n_size + n_header)
