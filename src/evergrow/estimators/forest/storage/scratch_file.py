"""Samples in an unlinked, memory-mapped temporary file: the scratch file."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.rows import float_blocks

# Bytes of rows that are read and standardised at once.
_BLOCK_BYTES = 4 << 20

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# Some file systems cannot reserve space.
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)

_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")

# Reads rows of the input by ascending row numbers.
Read = Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]


class ScratchRows:
    """Standardised rows sorted by class in a scratch file, for :meth:`_core.Samples.over`.

    The rows of a node are sorted by class too, so a large node reads the file sequentially.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, padded width)
        The mapped file; it is freed with the last reference to this array.
    places : ndarray of shape (n_rows,)
        Position of each row in the file.
    """

    def __init__(
        self,
        read: Read,
        codes: npt.NDArray[np.int32],
        standardization: Standardization,
        *,
        half: bool,
        chunk_bytes: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        width, dtype = _row_type(standardization, half)
        shape = (len(codes), width)
        n_bytes = len(codes) * width * dtype.itemsize
        with _scratch_file(n_bytes) as file:
            self.places = write_by_class(
                file,
                read,
                codes,
                standardization,
                half=half,
                chunk_bytes=chunk_bytes,
                progress=progress,
            )
            self.rows = mapped_rows(file, shape, dtype)


def mapped_rows(file: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Memory-map the rows of an open file."""
    mapping = mmap.mmap(file, shape[0] * shape[1] * dtype.itemsize, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, dtype=dtype).reshape(shape)


def aligned_rows(shape: tuple[int, int], *, half: bool) -> npt.NDArray[Any]:
    """Allocate rows aligned to 64 bytes, as the core needs them."""
    dtype = np.dtype(np.uint16 if half else np.float32)
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + n_bytes].view(dtype).reshape(shape)


def standardize_all(
    X: Any, standardization: Standardization, *, half: bool, n_threads: int = 1
) -> npt.NDArray[Any]:
    """All rows as the core stores them, in one read-only array that tasks can share."""
    rows = aligned_rows((X.shape[0], _core.padded_width(X.shape[1])), half=half)
    for part, block in float_blocks(X):
        _core.standardize_rows(block, standardization.core, rows[part], n_threads)
    rows.setflags(write=False)
    return rows


def class_order(
    codes: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Row numbers sorted by class, and the position of each row in that order."""
    # Stable, so that the rows of a class keep their order.
    order = np.argsort(codes, kind="stable")
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return order, places


def write_by_class(
    file: int,
    read: Read,
    codes: npt.NDArray[np.int32],
    standardization: Standardization,
    *,
    half: bool,
    chunk_bytes: int,
    progress: Callable[[int], None] | None = None,
) -> npt.NDArray[np.int32]:
    """Write standardised rows to a file, sorted by class; return the position of each row.

    ``read`` takes ascending row numbers and returns these rows of the input. At most
    ``chunk_bytes`` of rows are held in memory at once; smaller chunks read the input more often.
    ``progress`` is called with the number of rows written so far.
    """
    width, dtype = _row_type(standardization, half)
    order, places = class_order(codes)
    chunk_rows = max(1, chunk_bytes // (width * dtype.itemsize))
    for first in range(0, len(order), chunk_rows):
        chunk = order[first : first + chunk_rows]
        _write(file, _chunk(read, chunk, standardization, (width, dtype)))
        if progress is not None:
            progress(first + len(chunk))
    return places


def _row_type(standardization: Standardization, half: bool) -> tuple[int, np.dtype[Any]]:
    """Width of a row in the file, and its type."""
    width = _core.padded_width(len(standardization.mean))
    return width, np.dtype(np.uint16 if half else np.float32)


def _chunk(
    read: Read,
    numbers: npt.NDArray[np.int64],
    standardization: Standardization,
    row_type: tuple[int, np.dtype[Any]],
) -> npt.NDArray[Any]:
    """Rows in the order of ``numbers``; the input is read sequentially."""
    width, dtype = row_type
    rows = np.empty((len(numbers), width), dtype=dtype)
    ascending = np.argsort(numbers)
    step = max(1, _BLOCK_BYTES // (8 * width))
    space = np.empty((step, width), dtype=dtype)
    for first in range(0, len(numbers), step):
        places = ascending[first : first + step]
        for part, block in float_blocks(read(numbers[places])):
            out = space[: len(block)]
            _core.standardize_rows(block, standardization.core, out)
            rows[places[part]] = out
    return rows


def scratch_folder() -> str:
    """Folder of scratch files: ``TMPDIR``, else ``/var/tmp``, which is on a disk."""
    named = os.environ.get("TMPDIR")
    if named and not os.path.isdir(named):
        raise _unusable(named, errno.ENOENT, "the folder does not exist")
    folders = [named, "/var/tmp", tempfile.gettempdir()]  # noqa: S108
    return next(name for name in folders if name and os.path.isdir(name))


@contextmanager
def _scratch_file(n_bytes: int) -> Iterator[int]:
    """Descriptor of a new unlinked file of this size; map it before the block ends."""
    folder = scratch_folder()
    with _opened(folder) as file:
        reserve_space(file.fileno(), folder, n_bytes)
        if is_in_memory(folder):
            warnings.warn(
                f"the samples exceed memory_limit, but their temporary folder {folder!r} is itself "
                "in memory: set TMPDIR to a folder on a disk",
                stacklevel=3,
            )
        yield file.fileno()


def _opened(folder: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="evergrow-", dir=folder, buffering=0)
    except OSError as error:
        reason = f"no file can be created there: {error.strerror}"
        raise _unusable(folder, error.errno, reason) from error


def reserve_space(file: int, folder: str, n_bytes: int) -> None:
    """Reserve disk space for a file; an ``OSError`` if there is too little."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise _too_full(folder, n_bytes, free)
    # Reserved now: if the disk filled up later, writing to the mapped file would end the process.
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, n_bytes)
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise _too_full(folder, n_bytes, free) from error
            if error.errno not in _CANNOT_RESERVE:
                raise OSError(
                    error.errno,
                    f"disk space for the samples cannot be reserved: {error.strerror}",
                    folder,
                ) from error


def is_in_memory(folder: str) -> bool:
    """Whether a folder is in memory rather than on a disk; False if the system does not say."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for mount in mounts:
                about, _, kind = mount.partition(" - ")
                if about.split()[2] == number:
                    return kind.split()[0] in _MEMORY_FILE_SYSTEMS
    except OSError:
        pass
    return False


def _unusable(folder: str, number: int | None, reason: str) -> OSError:
    return OSError(
        number or errno.EIO,
        f"memory_limit needs a folder for the samples that exceed it, and {reason}; set the "
        "environment variable TMPDIR to a writable folder",
        folder,
    )


def _too_full(folder: str, n_bytes: int, free: int) -> OSError:
    return OSError(
        errno.ENOSPC,
        f"the samples exceed memory_limit and need {n_bytes / 1e9:.2f} GB in a temporary file, but "
        f"the folder has only {free / 1e9:.2f} GB left; set TMPDIR to a folder with more space",
        folder,
    )


def _write(file: int, rows: npt.NDArray[Any]) -> None:
    left = rows.reshape(-1).view(np.uint8).data
    while left:
        left = left[os.write(file, left) :]
