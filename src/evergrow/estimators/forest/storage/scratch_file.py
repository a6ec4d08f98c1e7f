"""Samples in a file that has no name: they are read as memory, and gone when nobody does."""

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
from evergrow.foundation.blocks import float_blocks

# Rows read and standardize_all at once.
_BLOCK_BYTES = 4 << 20

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# Some file systems cannot set budget aside.
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)

_MEMORY_KINDS = ("tmpfs", "ramfs")

# Rows by their numbers, which ascend.
Read = Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]


class ScratchRows:
    """Standardised rows in the order of their classes, as :meth:`_core.Samples.over` takes them.

    The rows of a node, sorted by class, then ascend in the file: a large node reads it from front
    to back.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, padded width)
        The mapped file; it lives as long as anybody looks at this array.
    places : ndarray of shape (n_rows,)
        Where each row lies.
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
    """The rows of a file, read as memory."""
    mapping = mmap.mmap(file, shape[0] * shape[1] * dtype.itemsize, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, dtype=dtype).reshape(shape)


def aligned_rows(shape: tuple[int, int], *, half: bool) -> npt.NDArray[Any]:
    """MemoryBudget in memory for rows, at a multiple of 64 bytes, as the core reads them."""
    dtype = np.dtype(np.uint16 if half else np.float32)
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + n_bytes].view(dtype).reshape(shape)


def class_order(
    codes: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The numbers of rows in the order of their classes, and where each row lies then."""
    # Stable: of one class the rows stay in the order in which they came.
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
    """Write standardize_all rows to a file, front to back, in the order of their classes.

    Parameters
    ----------
    file : int
        Descriptor of a file.
    read : callable
        Takes row numbers that ascend and gives these rows of the input.
    codes : ndarray of shape (n_rows,)
        Column of the class of each row.
    standardization : Standardization
        Transform of the features.
    half : bool
        Write half precision.
    chunk_bytes : int
        Rows of so many bytes are held at once. Fewer read the input more often.
    progress : callable, default=None
        Told how many rows are written.

    Returns
    -------
    places : ndarray of shape (n_rows,)
        Where each row lies in the file.
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
    """Numbers in a row of the file, and their type."""
    width = _core.padded_width(len(standardization.mean))
    return width, np.dtype(np.uint16 if half else np.float32)


def _chunk(
    read: Read,
    numbers: npt.NDArray[np.int64],
    standardization: Standardization,
    row_type: tuple[int, np.dtype[Any]],
) -> npt.NDArray[Any]:
    """Some rows in the order of ``numbers``; the input is read in its own order, front to back."""
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
    """The folder for files without a name: ``TMPDIR``, else ``/var/tmp``, which is on a disk."""
    named = os.environ.get("TMPDIR")
    if named and not os.path.isdir(named):
        raise _unusable(named, errno.ENOENT, "there is no such folder")
    folders = [named, "/var/tmp", tempfile.gettempdir()]  # noqa: S108
    return next(name for name in folders if name and os.path.isdir(name))


@contextmanager
def _scratch_file(n_bytes: int) -> Iterator[int]:
    """The descriptor of a new file of this size without a name; the block may map it."""
    folder = scratch_folder()
    with _opened(folder) as file:
        reserve_space(file.fileno(), folder, n_bytes)
        if is_in_memory(folder):
            warnings.warn(
                f"the samples do not fit memory_limit, but the folder for them, {folder!r}, is "
                "memory itself: set TMPDIR to a folder on a disk",
                stacklevel=3,
            )
        yield file.fileno()


def _opened(folder: str) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="evergrow-", dir=folder, buffering=0)
    except OSError as error:
        reason = f"no file can be made there: {error.strerror}"
        raise _unusable(folder, error.errno, reason) from error


def reserve_space(file: int, folder: str, n_bytes: int) -> None:
    """Take the budget that a file will need, or say that there is too little."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise _too_full(folder, n_bytes, free)
    # Taken now: a mapped file whose disk is full later would end the process.
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, n_bytes)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise _too_full(folder, n_bytes, free) from error
            if error.errno not in _CANNOT_RESERVE:
                raise OSError(
                    error.errno, f"room for the samples cannot be taken: {error.strerror}", folder
                ) from error


def is_in_memory(folder: str) -> bool:
    """Whether a folder lies in memory, not on a disk; False where the system does not say."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for mount in mounts:
                about, _, kind = mount.partition(" - ")
                if about.split()[2] == number:
                    return kind.split()[0] in _MEMORY_KINDS
    except OSError:
        pass
    return False


def _unusable(folder: str, number: int | None, reason: str) -> OSError:
    return OSError(
        number or errno.EIO,
        f"memory_limit needs a folder for the samples that do not fit, and {reason}; set the "
        "environment variable TMPDIR to a folder that can be written to",
        folder,
    )


def _too_full(folder: str, n_bytes: int, free: int) -> OSError:
    return OSError(
        errno.ENOSPC,
        f"the samples need {n_bytes / 1e9:.2f} GB in a temporary file, more than memory_limit "
        f"allows in memory, but the folder has {free / 1e9:.2f} GB left; set TMPDIR to one that "
        "has more",
        folder,
    )


def _write(file: int, rows: npt.NDArray[Any]) -> None:
    left = rows.reshape(-1).view(np.uint8).data
    while left:
        left = left[os.write(file, left) :]
