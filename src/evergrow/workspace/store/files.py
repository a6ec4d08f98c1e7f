"""What is too large for the database, and written before the commit: embeddings and images.

Embeddings are float32 rows in ``.npy`` files of equal size. Each is allocated in full when its
first row is written: from then on no write into it can run out of disk space, and no page is
missing when it is memory-mapped. An image file is named by the hash of its content. The database
decides which rows and images are in use.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.files import atomic_write, name_full_disk, open_regular, sync_folder
from evergrow.storage.npy import npy_header
from evergrow.workspace.records import WorkspaceLostError
from evergrow.workspace.store.trust import require_image_name, require_plain

Rows = npt.NDArray[np.float32]

_DTYPE = np.dtype("<f4")


class VectorStore:
    """Embeddings by row number, in files of ``rows_per_shard`` rows each."""

    def __init__(self, folder: Path, rows_per_shard: int, n_features: int) -> None:
        self.folder = folder
        self.rows_per_shard = rows_per_shard
        self.n_features = n_features
        self._header = npy_header(_DTYPE, (rows_per_shard, n_features))
        self._mapped: dict[int, Rows] = {}
        self._mapping = threading.Lock()

    @property
    def shard_bytes(self) -> int:
        """Size of one file."""
        return len(self._header) + self.rows_per_shard * self._row_bytes

    @property
    def _row_bytes(self) -> int:
        return self.n_features * _DTYPE.itemsize

    def path(self, shard: int) -> Path:
        """The file of a shard; a ``WorkspaceError`` if it is a link."""
        return require_plain(self.folder.parent, self.folder / f"{shard:06d}.npy")

    def write(self, first: int, rows: Rows) -> None:
        """Write rows starting at a number; they are on disk when this returns."""
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
            found = os.fstat(descriptor)
            if found.st_nlink > 1:
                # Not the fault of what is written: the same as for a database with two names.
                raise WorkspaceLostError(
                    f"{str(path)!r} is also a file of another folder, by a hard link: a write "
                    "would change both; replace it by a copy of its own"
                )
            if found.st_size != self.shard_bytes:
                raise WorkspaceError(
                    f"{str(path)!r} is damaged: it should have {self.shard_bytes} bytes; "
                    "'evergrow check --mend' recreates it from the images where possible"
                )
            with name_full_disk(path):
                _write_at(descriptor, part.tobytes(), len(self._header) + place * self._row_bytes)
                # The size never changes, so only the data needs to be synced.
                getattr(os, "fdatasync", os.fsync)(descriptor)
        finally:
            os.close(descriptor)

    def _allocate(self, path: Path) -> None:
        self.folder.mkdir(0o700, exist_ok=True)
        with atomic_write(path, private=True) as file:
            file.write(self._header)
            file.flush()
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, self.shard_bytes)
            else:
                zeros = bytes(self._row_bytes)
                for _ in range(self.rows_per_shard):
                    file.write(zeros)
        sync_folder(self.folder.parent)

    def row(self, number: int) -> Rows:
        """A copy of one row."""
        shard, place = divmod(number, self.rows_per_shard)
        return np.array(self._matrix(shard)[place])

    def rows(self, numbers: npt.NDArray[np.int64]) -> Rows:
        """Copies of rows, in the order of their numbers here."""
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

    def discard(self, first: int, n_rows: int) -> None:
        """Remove rows of a change that was not committed, and free their disk space."""
        zeros = np.zeros((1, self.n_features), dtype=np.float32)
        for number in range(first, first + n_rows):
            shard, place = divmod(number, self.rows_per_shard)
            # A file whose first row goes was new; others have space for zeros, being allocated.
            if place and self.path(shard).exists():
                self.write(number, zeros)
            else:
                self.path(shard).unlink(missing_ok=True)
                self._unmap(shard)

    def recreate(self, shard: int) -> None:
        """Replace the file of a shard by one full of zeros."""
        self._allocate(self.path(shard))
        self._unmap(shard)

    def find_damage(self, shard: int) -> str | None:
        """What is wrong with the size or header of a shard's file; None if nothing."""
        path = self.path(shard)
        if not path.exists():
            return f"{path.name} is missing"
        if path.stat().st_size != self.shard_bytes:
            return f"{path.name} has {path.stat().st_size} bytes instead of {self.shard_bytes}"
        with open(path, "rb") as file:
            if file.read(len(self._header)) != self._header:
                return f"{path.name} has a wrong header"
        return None

    def require_intact(self, shard: int) -> None:
        """Raise a ``WorkspaceError`` if the file of a shard is damaged."""
        problem = self.find_damage(shard)
        if problem is not None:
            raise WorkspaceError(
                f"embeddings of the workspace {str(self.folder.parent)!r} are damaged: {problem}; "
                "'evergrow check --mend' recreates them from the images where possible"
            )

    def _matrix(self, shard: int) -> Rows:
        matrix = self._mapped.get(shard)
        if matrix is None:
            with self._mapping:
                matrix = self._mapped.get(shard)
                if matrix is None:
                    matrix = self._mapped[shard] = self._map(shard)
        return matrix

    def _map(self, shard: int) -> Rows:
        self.require_intact(shard)
        return np.memmap(
            self.path(shard),
            dtype=_DTYPE,
            mode="r",
            offset=len(self._header),
            shape=(self.rows_per_shard, self.n_features),
        )

    def _unmap(self, shard: int) -> None:
        with self._mapping:
            self._mapped.pop(shard, None)


def _write_at(descriptor: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        if hasattr(os, "pwrite"):
            n_written = os.pwrite(descriptor, view, offset)
        else:
            os.lseek(descriptor, offset, os.SEEK_SET)
            n_written = os.write(descriptor, view)
        view, offset = view[n_written:], offset + n_written


def row_sha256(row: Rows) -> str:
    """The hash of an embedding as it is stored."""
    return hashlib.sha256(np.ascontiguousarray(row, dtype=_DTYPE).tobytes()).hexdigest()


def sha256_of(content: bytes) -> str:
    """The name of an image file."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of the content of a regular file, which may not be a link."""
    with open_regular(path, follow_links=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ImageStore:
    """The folders of image files and thumbnails of a workspace.

    All paths are made by :meth:`path` and :meth:`thumbnail_path`, which refuse other names than
    hashes, and links.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._images = folder / "images"
        self._thumbnails = folder / "thumbnails"

    def path(self, sha256: str) -> Path:
        """Path of an image file; sub-folders by the first two letters keep each folder small."""
        name = require_image_name(sha256)
        return require_plain(self._folder, self._images / name[:2] / name)

    def thumbnail_path(self, sha256: str) -> Path:
        """Path of the thumbnail of an image."""
        name = require_image_name(sha256)
        return require_plain(self._folder, self._thumbnails / name[:2] / f"{name}.jpg")

    def write(self, sha256: str, content: bytes) -> bool:
        """Write an image file to disk; False if it was there already and intact."""
        path = self.path(sha256)
        with contextlib.suppress(OSError):
            if path.read_bytes() == content:
                return False
        if not path.parent.is_dir():
            with name_full_disk(path):
                _make_folders(path)
                sync_folder(self._images)
                sync_folder(self._images.parent)
        try:
            with atomic_write(path, private=True) as file:
                file.write(content)
        except BaseException:
            # It may have been renamed already, but not durably.
            path.unlink(missing_ok=True)
            raise
        return True

    def write_thumbnail(self, sha256: str, content: bytes) -> None:
        """Write a thumbnail, unless the disk is full: it can be made again at any time."""
        path = self.thumbnail_path(sha256)
        # Not synced, unlike everything else: 8 ms instead of 0.1 ms would halve the speed of
        # teaching. After a power failure it may be empty: then there is none.
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            _make_folders(path)
            temporary.touch(0o600, exist_ok=False)
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def content(self, sha256: str) -> bytes:
        """The bytes of an image file."""
        path = self.path(sha256)
        try:
            with open_regular(path, follow_links=False) as file:
                return file.read()
        except (FileNotFoundError, InvalidInputError) as error:
            raise WorkspaceError(
                f"the image file {sha256} is missing: restore it from a backup; "
                "what was learnt from it is not affected"
            ) from error

    def n_bytes(self, sha256: str) -> int | None:
        """The size of an image file; None if it is missing.

        Fast, for all images at once: whether the path is plain is checked when the file is opened.
        """
        name = require_image_name(sha256)
        try:
            return os.lstat(f"{self._images}/{name[:2]}/{name}").st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def thumbnail(self, sha256: str) -> bytes | None:
        """The thumbnail of an image; None if there is none.

        It is not made here: images are decoded only in processes that may crash.
        """
        path = self.thumbnail_path(sha256)
        try:
            with open_regular(path, follow_links=False) as file:
                # A power failure may have left an empty file.
                return file.read() or None
        except (FileNotFoundError, InvalidInputError):
            return None

    def delete(self, sha256: str) -> None:
        """Delete an image file and its thumbnail."""
        self.path(sha256).unlink(missing_ok=True)
        self.thumbnail_path(sha256).unlink(missing_ok=True)

    def files(self) -> Iterator[Path]:
        """All files in the folder of images, including unknown ones."""
        return _files_below(self._images)

    def thumbnail_files(self) -> Iterator[Path]:
        """All files in the folder of thumbnails, including unknown ones."""
        return _files_below(self._thumbnails)


def _make_folders(path: Path) -> None:
    """Make the folder of an image file, and the one that it is in."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(0o700, exist_ok=True)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            yield Path(folder, name)
