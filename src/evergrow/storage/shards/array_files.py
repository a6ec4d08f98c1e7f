"""The ``.npy`` files of a folder of shards: written with their hash, memory-mapped after checks.

The header is parsed without pickle, and type, shape and size must match the manifest before the
file is mapped. The hash is checked once per process for as long as the file does not change.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, ShardError
from evergrow.foundation.files import name_full_disk, open_regular
from evergrow.storage.npy import npy_header, read_npy_header

# Temporary files; the next writer removes leftovers.
TEMPORARY_NAME = re.compile(r"\.evergrow-[0-9a-f]{16}\.tmp")

_CHUNK_BYTES = 4 << 20
# NumPy writes a header of 128 bytes for a matrix.
_MAX_HEADER_BYTES = 4096


@dataclass(frozen=True)
class ArrayFile:
    """A file and its expected content."""

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    sha256: str

    @property
    def nbytes(self) -> int:
        """Bytes of the array in it."""
        return self.dtype.itemsize * math.prod(self.shape)

    def check_size(self) -> None:
        """Raise a ``ShardError`` if the file is missing, a link, or cannot hold the array."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            raise ShardError(f"the shard {str(self.path)!r} is missing") from None
        if not stat.S_ISREG(found.st_mode):
            raise ShardError(f"the shard {str(self.path)!r} is not a regular file")
        if not self.nbytes < found.st_size <= self.nbytes + _MAX_HEADER_BYTES:
            raise self.wrong(
                f"it has {found.st_size} bytes, an array of {self.dtype} of shape {self.shape} "
                f"has {self.nbytes}"
            )

    def map(self) -> npt.NDArray[Any]:
        """The array as read-only memory; a ``ShardError`` if the file holds another one."""
        with open_shard_file(self.path) as file:
            offset = self.read_header(file)
            if not self.nbytes:
                # An empty array cannot be memory-mapped.
                return np.empty(self.shape, self.dtype)
            mapped = np.memmap(file, self.dtype, mode="r", offset=offset, shape=self.shape)
        # A plain array: what is computed from it is then plain as well.
        return mapped.view(np.ndarray)

    def read_header(self, file: BinaryIO) -> int:
        """Go past the header; give where the data begin."""
        try:
            header = read_npy_header(file)
        except InvalidInputError as error:
            raise self.wrong(f"it {error}") from error
        kind, shape, by_columns = header.dtype.str, header.shape, header.by_columns
        if (kind, shape, by_columns) != (self.dtype.str, self.shape, False):
            order = " by columns" if by_columns else ""
            expected = f"{self.dtype.str} of shape {self.shape}"
            raise self.wrong(f"it holds {kind} of shape {shape}{order}, not {expected}")
        offset, size = header.n_bytes, os.fstat(file.fileno()).st_size
        if size != offset + self.nbytes:
            raise self.wrong(f"it has {size} bytes, its array needs {offset + self.nbytes}")
        return offset

    def wrong(self, reason: str) -> ShardError:
        """Return an error that names this file."""
        return ShardError(f"the shard {str(self.path)!r} is damaged: {reason}")


def open_shard_file(path: Path) -> BinaryIO:
    """Open a regular file; raise a ``ShardError`` for a link, pipe, device or missing file."""
    try:
        return open_regular(path, follow_links=False)
    except FileNotFoundError:
        raise ShardError(f"the shard {str(path)!r} is missing") from None
    except (OSError, InvalidInputError) as error:
        raise ShardError(f"the shard {str(path)!r} cannot be opened: {error}") from error


def read_chunks(file: BinaryIO) -> Iterator[memoryview]:
    """Yield the rest of a file in chunks; the buffer is reused."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    # Unbuffered: chunks are read directly into the buffer.
    raw = file.raw if hasattr(file, "raw") else file
    raw.seek(file.tell())
    while n_read := _fill(raw, buffer):
        yield buffer[:n_read]


def _fill(file: Any, buffer: memoryview) -> int:
    """Fill a buffer unless the file ends, so that no number is split."""
    filled = 0
    while filled < len(buffer):
        n_read = file.readinto(buffer[filled:])
        if not n_read:
            break
        filled += n_read
    return filled


def write_temporary(
    folder: Path, dtype: np.dtype[Any], shape: tuple[int, ...], parts: Iterable[npt.NDArray[Any]]
) -> tuple[Path, str]:
    """Write an array given in parts to a temporary file; return its path and SHA-256.

    The file is synced to disk; if anything fails, it is removed.
    """
    header = npy_header(dtype, shape)
    hashed, n_bytes = hashlib.sha256(header), 0
    temporary = folder / f".evergrow-{secrets.token_hex(8)}.tmp"
    try:
        with name_full_disk(folder), open(temporary, "xb") as file:
            file.write(header)
            for part in parts:
                content = np.ascontiguousarray(part, dtype=dtype).reshape(-1).view(np.uint8).data
                file.write(content)
                hashed.update(content)
                n_bytes += len(content)
            file.flush()
            os.fsync(file.fileno())
        _check_complete(n_bytes, dtype, shape)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary, hashed.hexdigest()


def _check_complete(n_bytes: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if n_bytes != dtype.itemsize * math.prod(shape):
        raise InvalidInputError(f"the parts do not make an array of shape {shape}")


# The exponent bits of half precision, all set in NaN and infinity.
_HALF_EXPONENT = 0x7C00

Identity = tuple[int, int, int]

_known: dict[tuple[str, str], Identity] = {}
_lock = threading.Lock()


def identity(file: ArrayFile) -> Identity:
    """Return values that change with the file; raise a ``ShardError`` if it is missing."""
    try:
        found = os.stat(file.path, follow_symlinks=False)
    except FileNotFoundError:
        raise ShardError(f"the shard {str(file.path)!r} is missing") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


def check_once(file: ArrayFile) -> Identity:
    """Check a file unless this process did so since its last change."""
    key = (str(file.path), file.sha256)
    now = identity(file)
    if _known.get(key) != now:
        check_content(file)
        with _lock:
            _known[key] = now
    return now


def check_content(file: ArrayFile) -> None:
    """Read a whole file; raise a ``ShardError`` if its hash or a number in it is wrong."""
    hashed = hashlib.sha256()
    with open_shard_file(file.path) as opened:
        offset = file.read_header(opened)
        opened.seek(0)
        hashed.update(opened.read(offset))
        is_finite = True
        for chunk in read_chunks(opened):
            hashed.update(chunk)
            # A file that grows meanwhile may end within a number; then its hash is wrong.
            whole = len(chunk) // file.dtype.itemsize
            values = np.frombuffer(chunk, dtype=file.dtype, count=whole)
            is_finite = is_finite and _is_finite(values)
    if hashed.hexdigest() != file.sha256:
        raise file.wrong("its content does not match its SHA-256 checksum")
    if not is_finite:
        raise file.wrong("it holds numbers that are NaN or infinite")


def _is_finite(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> bool:
    if values.dtype.kind != "f" or not values.size:
        return True
    if values.dtype.itemsize == 2:
        exponents = values.view(np.uint16) & _HALF_EXPONENT
        return bool((exponents != _HALF_EXPONENT).all())
    # If there is a NaN, it is both maximum and minimum.
    return bool(np.isfinite(values.max()) and np.isfinite(values.min()))
