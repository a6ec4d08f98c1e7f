"""Standardised rows in one file of each node, which all workers there read as memory.

The first worker of a node that needs the file makes it, others wait. It has a name for as long as a
forest is grown; whoever has mapped it keeps it beyond that.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.engine import Arrays
from evergrow.forest.scratch import (
    class_order,
    mapped_rows,
    scratch_folder,
    take_room,
    write_by_class,
)
from evergrow.forest.standardize import Standardization
from evergrow.locks import locked

try:
    import fcntl
except ImportError:
    # There such files stay until their program removes them.
    fcntl = None  # type: ignore[assignment]

__all__ = ["NodeRows", "remove_rows", "samples_on_node"]

_PREFIX, _SUFFIX = "evergrow-rows-", ".bin"

# What this process reads at present: rows, and the open file whose shared lock says so.
_mapped: dict[str, tuple[npt.NDArray[Any], BinaryIO]] = {}


class NodeRows:
    """What a worker must know to make the file: small, but for the shards that it names.

    Parameters
    ----------
    X : Shards
        The rows, on storage that every node reads.
    standardization : Standardization
        How they are standardised.
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


def samples_on_node(
    rows: NodeRows, codes: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]
) -> _core.Samples:
    """The samples over the file of this node, which is made if it is not there."""
    _, places = class_order(codes)
    if rows.name not in _mapped:
        # A worker reads for one forest at a time.
        _forget()
        _mapped[rows.name] = _opened(rows, codes)
    mapped, _ = _mapped[rows.name]
    return _core.Samples.over(mapped, codes, ids, n_features=rows.X.shape[1], places=places)


def remove_rows(name: str) -> Arrays:
    """Take the name of a file away; it is gone when nobody reads it any more."""
    if name in _mapped:
        _forget()
    _path(name).unlink(missing_ok=True)
    return {}


def _path(name: str) -> Path:
    return Path(scratch_folder()) / f"{_PREFIX}{name}{_SUFFIX}"


def _forget() -> None:
    for _, file in _mapped.values():
        file.close()
    _mapped.clear()


def _opened(rows: NodeRows, codes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[Any], BinaryIO]:
    path = _path(rows.name)
    with locked(path, lambda: None):
        if not path.exists():
            _remove_left_behind(path.parent)
            _make(rows, codes, path)
        file = open(path, "rb")  # noqa: SIM115
        _say_in_use(file)
    return mapped_rows(file.fileno(), rows.shape, rows.dtype), file


def _make(rows: NodeRows, codes: npt.NDArray[np.int32], path: Path) -> None:
    """Write the file aside; it has its name when it is whole."""
    aside = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
    try:
        with open(aside, "xb", buffering=0) as file:
            _say_in_use(file)
            n_rows, width = rows.shape
            take_room(file.fileno(), str(path.parent), n_rows * width * rows.dtype.itemsize)
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
        aside.unlink(missing_ok=True)
        raise


def _say_in_use(file: BinaryIO) -> None:
    # The lock ends with the process, however it ends.
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH)


def _remove_left_behind(folder: Path) -> None:
    """Remove files that nobody reads: their programs were killed before they could."""
    if fcntl is None:
        return
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            with open(path, "rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except OSError:
            # In use, of somebody else, or gone by now.
            continue
