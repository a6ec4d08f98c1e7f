"""One memory-mapped file of standardised rows per node, shared by all workers there.

The first worker of a node that needs the file writes it; the others wait. The file has a name while
the forest is grown; a mapping outlives the name. A worker maps the file only while a task runs,
because an idle worker must not occupy disk space.

Every reader holds a shared lock on the file, from before the file gets its name. The lock belongs
to the open file, which the mapping keeps open, so it ends with the mapping or the process. A file
without a lock was left behind by a program that was killed, and the next program removes it.
"""

from __future__ import annotations

import mmap
import os
import secrets
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.storage import check_space, temporary_folder
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import Arrays
from evergrow.foundation.locks import lock_or_wait
from evergrow.foundation.rows import float_blocks

try:
    import fcntl
except ImportError:
    # Without locks, such files stay until their program removes them.
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = "evergrow-rows-", ".bin"


class NodeFile:
    """What a worker needs to write the file.

    Parameters
    ----------
    X : Shards
        The rows, on storage that every node can read.
    standardization : Standardization
        Transform of the features.
    half : bool
        Write half precision.
    """

    def __init__(self, X: Any, standardization: Standardization, *, half: bool) -> None:
        self.X = X
        # Without the object of the core, which cannot be sent.
        self.transform = tuple(
            getattr(standardization, field.name) for field in fields(standardization)
        )
        self.dtype = np.dtype(np.uint16 if half else np.float32)
        # One file per forest: two programs on a node neither share files nor remove each other's.
        self.name = secrets.token_hex(16)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and width of a row."""
        return self.X.shape[0], _core.padded_width(self.X.shape[1])


def open_node_samples(
    wanted: NodeFile,
    codes: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float32] | None,
) -> _core.Samples:
    """The samples over the file of this node, which is written if it does not exist."""
    with _open_or_write(wanted) as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = np.frombuffer(mapping, dtype=wanted.dtype).reshape(wanted.shape)
    n_features = wanted.X.shape[1]
    return _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)


def remove_node_file(name: str) -> Arrays:
    """Unlink a file; its space is freed when no worker maps it any more."""
    _path(name).unlink(missing_ok=True)
    return {}


def _path(name: str) -> Path:
    return Path(temporary_folder()) / f"{_PREFIX}{name}{_SUFFIX}"


def _open_or_write(wanted: NodeFile) -> BinaryIO:
    path = _path(wanted.name)
    with lock_or_wait(path, lambda: None):
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError:
            file = None
        if file is not None:
            if _lock_shared(file, path):
                return file
            file.close()
        _remove_stale_files(path.parent)
        return _write(wanted, path)


def _write(wanted: NodeFile, path: Path) -> BinaryIO:
    """Write the file under a temporary name and rename it when it is complete."""
    file, aside = _new_file(path)
    try:
        n_rows, width = wanted.shape
        check_space(str(path.parent), n_rows * width * wanted.dtype.itemsize)
        standardization = Standardization(*wanted.transform)
        for _, block in float_blocks(wanted.X):
            rows = np.empty((len(block), width), dtype=wanted.dtype)
            _core.standardize_rows(block, standardization.core, rows)
            rows.tofile(file)
        os.replace(aside, path)
    except BaseException:
        file.close()
        aside.unlink(missing_ok=True)
        raise
    return file


def _new_file(path: Path) -> tuple[BinaryIO, Path]:
    """A new temporary file next to ``path``, readable by this user only, and its path."""
    while True:
        aside = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
        file = open(aside, "x+b", buffering=0, opener=_private_opener)  # noqa: SIM115
        if _lock_shared(file, aside):
            return file, aside
        file.close()


def _private_opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _lock_shared(file: BinaryIO, path: Path) -> bool:
    """Lock a file as in use; False if it was removed before it was locked."""
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH)
    return _is_linked(file, path)


def _is_linked(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _remove_stale_files(folder: Path) -> None:
    """Remove files that no process has locked: their programs were killed."""
    if fcntl is None:
        return
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            with open(path, "rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The name may belong to another file by now.
                if _is_linked(file, path):
                    path.unlink()
        except OSError:
            # In use, owned by another user, or already removed.
            continue
