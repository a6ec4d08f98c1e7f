"""Embeddings on disk: float32 rows in files of equal size, read as memory.

Each file is an ordinary ``.npy`` matrix, allocated whole when its first row is written: from then
on no write into it can run out of disk, and no page of it is missing when it is read as memory.
Which rows count is for the database to say.
"""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import WorkspaceError

__all__ = ["Shards"]

Rows = npt.NDArray[np.float32]

_DTYPE = np.dtype("<f4")


class Shards:
    """Rows of embeddings by number.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    rows_per_shard : int
        Rows in each of them.
    n_features : int
        Length of a row.
    """

    def __init__(self, folder: Path, rows_per_shard: int, n_features: int) -> None:
        self.folder = folder
        self.rows_per_shard = rows_per_shard
        self.n_features = n_features
        self._header = _header(rows_per_shard, n_features)
        self._open: dict[int, Rows] = {}
        self._opening = threading.Lock()

    @property
    def shard_bytes(self) -> int:
        """Size of one file."""
        return len(self._header) + self.rows_per_shard * self._row_bytes

    @property
    def _row_bytes(self) -> int:
        return self.n_features * _DTYPE.itemsize

    def path(self, shard: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{shard:06d}.npy"

    def write(self, first: int, rows: Rows) -> None:
        """Write rows from a number on and return when they are on disk."""
        content = np.ascontiguousarray(rows, dtype=_DTYPE)
        while len(content):
            shard, place = divmod(first, self.rows_per_shard)
            part = content[: self.rows_per_shard - place]
            self._write_part(shard, place, part)
            first, content = first + len(part), content[len(part) :]

    def _write_part(self, shard: int, place: int, part: Rows) -> None:
        path = self.path(shard)
        if not path.exists():
            self._allocate(path)
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            if os.fstat(descriptor).st_size != self.shard_bytes:
                raise self._wrong_size(path)
            _write_at(descriptor, part.tobytes(), len(self._header) + place * self._row_bytes)
            # The size never changes, so that there is nothing but the data to sync.
            getattr(os, "fdatasync", os.fsync)(descriptor)
        finally:
            os.close(descriptor)

    def _allocate(self, path: Path) -> None:
        self.folder.mkdir(exist_ok=True)
        aside = path.with_suffix(".tmp")
        try:
            with open(aside, "wb") as file:
                file.write(self._header)
                file.flush()
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, self.shard_bytes)
                else:
                    zeros = bytes(self._row_bytes)
                    for _ in range(self.rows_per_shard):
                        file.write(zeros)
                    file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

    def row(self, number: int) -> Rows:
        """A copy of one row."""
        shard, place = divmod(number, self.rows_per_shard)
        return np.array(self._matrix(shard)[place])

    def rows(self, numbers: npt.NDArray[np.int64]) -> Rows:
        """Copies of rows, in the order asked for."""
        found = np.empty((len(numbers), self.n_features), dtype=np.float32)
        shards, places = np.divmod(numbers, self.rows_per_shard)
        for shard in np.unique(shards).tolist():
            here = np.flatnonzero(shards == shard)
            found[here] = self._matrix(shard)[places[here]]
        return found

    def erase(self, numbers: npt.NDArray[np.int64]) -> None:
        """Overwrite rows with zeros."""
        zeros = np.zeros((1, self.n_features), dtype=np.float32)
        for number in numbers.tolist():
            self.write(number, zeros)

    def take_back(self, first: int, n_rows: int) -> None:
        """Have rows not be there that were written and do not count; give back their room."""
        zeros = np.zeros((1, self.n_features), dtype=np.float32)
        for number in range(first, first + n_rows):
            shard, place = divmod(number, self.rows_per_shard)
            # Whole files go; of others there is room for zeros, as they were allocated whole.
            if place and self.path(shard).exists():
                self.write(number, zeros)
            else:
                self.path(shard).unlink(missing_ok=True)
                with self._opening:
                    self._open.pop(shard, None)

    def make_again(self, shard: int) -> None:
        """Make the file of a shard anew, all zeros, in place of whatever is there."""
        self._allocate(self.path(shard))
        with self._opening:
            self._open.pop(shard, None)

    def check_whole(self, shard: int) -> str | None:
        """What is wrong with the file of a shard as a whole; None if nothing."""
        path = self.path(shard)
        if not path.exists():
            return f"{path.name} is missing"
        if path.stat().st_size != self.shard_bytes:
            return f"{path.name} has {path.stat().st_size} bytes, not {self.shard_bytes}"
        with open(path, "rb") as file:
            if file.read(len(self._header)) != self._header:
                return f"{path.name} does not begin as it should"
        return None

    def require_whole(self, shard: int) -> None:
        """Raise an error that says how to mend the file of a shard, if it is damaged."""
        problem = self.check_whole(shard)
        if problem is not None:
            raise WorkspaceError(
                f"embeddings of the workspace {str(self.folder.parent)!r} are damaged: {problem}; "
                "'evergrow check --mend' makes them again from the images where it can"
            )

    def _matrix(self, shard: int) -> Rows:
        matrix = self._open.get(shard)
        if matrix is None:
            with self._opening:
                matrix = self._open.get(shard)
                if matrix is None:
                    matrix = self._mapped(shard)
                    self._open[shard] = matrix
        return matrix

    def _mapped(self, shard: int) -> Rows:
        self.require_whole(shard)
        return np.memmap(
            self.path(shard),
            dtype=_DTYPE,
            mode="r",
            offset=len(self._header),
            shape=(self.rows_per_shard, self.n_features),
        )

    def _wrong_size(self, path: Path) -> WorkspaceError:
        return WorkspaceError(
            f"{str(path)!r} does not have {self.shard_bytes} bytes: it is damaged; "
            "'evergrow check --mend' makes it again from the images where it can"
        )


def _header(n_rows: int, n_features: int) -> bytes:
    """What a ``.npy`` file of this shape begins with."""
    content = io.BytesIO()
    description = {"descr": _DTYPE.str, "fortran_order": False, "shape": (n_rows, n_features)}
    np.lib.format.write_array_header_1_0(content, description)
    return content.getvalue()


def _write_at(descriptor: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        if hasattr(os, "pwrite"):
            n_written = os.pwrite(descriptor, view, offset)
        else:
            os.lseek(descriptor, offset, os.SEEK_SET)
            n_written = os.write(descriptor, view)
        view, offset = view[n_written:], offset + n_written
