"""Standardised rows in one file of each node, which all workers there read as memory.

The first worker of a node that needs the file makes it, others wait. It has a name for as long as a
forest is grown; whoever has mapped it keeps it beyond that. A worker maps it for as long as a task
runs: an idle one would keep a disk full.

Whoever reads a file holds a shared lock of it, from before it has its name. The lock belongs to the
open file, which the mapping keeps open, and so ends with the mapping or the process, however that
ends. Files without one are left behind by programs that were killed, and are removed by the next.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.storage.scratch_file import (
    class_order,
    mapped_rows,
    reserve_space,
    scratch_folder,
    write_by_class,
)
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import Arrays
from evergrow.foundation.locks import locked

try:
    import fcntl
except ImportError:
    # There such files stay until their program removes them.
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = "evergrow-rows-", ".bin"


class NodeFile:
    """What a worker must know to make the file: small, but for the shards that it names.

    Parameters
    ----------
    X : Shards
        The rows, on storage that every node reads.
    standardization : Standardization
        How they are standardize_all.
    half : bool
        Whether in half precision.
    chunk_bytes : int
        Bytes of rows that are held at once.
    """

    def __init__(
        self, X: Any, standardization: Standardization, *, half: bool, chunk_bytes: int
    ) -> None:
        self.X = X
        self.mean, self.scale = standardization.mean, standardization.scale
        self.half = half
        self.dtype = np.dtype(np.uint16 if half else np.float32)
        self.chunk_bytes = chunk_bytes
        # One forest, one file: two programs on a node do not share, nor take away from each other.
        self.name = secrets.token_hex(16)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and floats in a row."""
        return self.X.shape[0], _core.padded_width(self.X.shape[1])


def open_node_samples(
    rows: NodeFile, codes: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]
) -> _core.Samples:
    """The samples over the file of this node, which is made if it is not there."""
    _, places = class_order(codes)
    with _opened(rows, codes) as file:
        mapped = mapped_rows(file.fileno(), rows.shape, rows.dtype)
    return _core.Samples.over(mapped, codes, ids, n_features=rows.X.shape[1], places=places)


def remove_node_file(name: str) -> Arrays:
    """Take the name of a file away; it is gone when nobody reads it any more."""
    _path(name).unlink(missing_ok=True)
    return {}


def _path(name: str) -> Path:
    return Path(scratch_folder()) / f"{_PREFIX}{name}{_SUFFIX}"


def _opened(rows: NodeFile, codes: npt.NDArray[np.int32]) -> BinaryIO:
    path = _path(rows.name)
    with locked(path, lambda: None):
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError:
            file = None
        if file is not None:
            if _is_ours(file, path):
                return file
            file.close()
        _remove_left_behind(path.parent)
        return _made(rows, codes, path)


def _made(rows: NodeFile, codes: npt.NDArray[np.int32], path: Path) -> BinaryIO:
    """Write the file aside; it has its name when it is whole."""
    file, aside = _new_file(path)
    try:
        n_rows, width = rows.shape
        reserve_space(file.fileno(), str(path.parent), n_rows * width * rows.dtype.itemsize)
        write_by_class(
            file.fileno(),
            lambda numbers: np.asarray(rows.X[numbers]),
            codes,
            Standardization(rows.mean, rows.scale),
            half=rows.half,
            chunk_bytes=rows.chunk_bytes,
        )
        os.replace(aside, path)
    except BaseException:
        file.close()
        aside.unlink(missing_ok=True)
        raise
    return file


def _new_file(path: Path) -> tuple[BinaryIO, Path]:
    """A file beside another, and its path; nobody else may read what is in it."""
    while True:
        aside = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
        file = open(aside, "x+b", buffering=0, opener=_for_us_alone)  # noqa: SIM115
        if _is_ours(file, aside):
            return file, aside
        file.close()


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_ours(file: BinaryIO, path: Path) -> bool:
    """Say that a file is in use; False if it was removed before that could be said."""
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH)
    return _is_still(file, path)


def _is_still(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_left_behind(folder: Path) -> None:
    """Remove files that nobody reads: their programs were killed before they could."""
    if fcntl is None:
        return
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            with open(path, "rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                # It may have been renamed since, and this be the name of another.
                if _is_still(file, path):
                    path.unlink()
        except OSError:
            # In use, of somebody else, or gone by now.
            continue
