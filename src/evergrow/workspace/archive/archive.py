"""The labelled pictures of a workspace as of one moment, to be sent or written afterwards.

What goes where is read from the database in one transaction and kept in a temporary file, so that
neither memory nor the database is held for as long as a slow client needs. Pictures never change
afterwards. If one is erased meanwhile, the export fails and has to be repeated: it must not hold
more than the workspace, and not less than it says.
"""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Self, cast

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.files import atomic_folder, atomic_write, open_regular
from evergrow.vision.images.decoder import SUFFIX_OF_TYPE
from evergrow.vision.images.folder_names import FolderNames
from evergrow.vision.images.label_table import COLUMNS, LABEL_TABLE, format_rows, parse_field
from evergrow.vision.images.labelled.coco_writer import CocoWriter
from evergrow.workspace.archive.zip_stream import ZipStream
from evergrow.workspace.records import ConflictError
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.store import Store
from evergrow.workspace.store.trust import require_media_type

ANNOTATIONS = "annotations.json"

_CHUNK_BYTES = 1 << 18
_IN_MEMORY = 1 << 20
_ROWS_AT_ONCE = 500
# Before the first year that zip files can have.
_UNKNOWN_TIME = datetime.min.replace(tzinfo=UTC)

# Class by class, by an index.
_EXAMPLES = (
    "SELECT e.class_id, c.name, f.name, v.at, e.id, e.image, p.media_type, p.width, p.height"
    " FROM example e JOIN class c ON c.id = e.class_id LEFT JOIN class f ON f.id = e.fine_id"
    " LEFT JOIN picture p ON p.sha256 = e.image JOIN event v ON v.seq = e.event"
    " WHERE e.class_id IS NOT NULL ORDER BY e.class_id, e.id"
)


@dataclass
class ExportedPictures:
    """The result of :meth:`Workspace.export_pictures`.

    Attributes
    ----------
    n_pictures : int
        Number of pictures that were written.
    n_classes : int
        Number of classes with pictures.
    n_without_picture : int
        Number of examples that were taught as embeddings. They are only in the table.
    n_lost : int
        Number of examples whose picture is missing in the workspace. They are only in the table.
    """

    n_pictures: int = 0
    n_classes: int = 0
    n_without_picture: int = 0
    n_lost: int = 0


@dataclass(frozen=True)
class _Entry:
    """A picture: its path in the archive, the name of its file here, when it was taught."""

    path: str
    image: str
    at: datetime


class PictureArchive:
    """Class folders with all labelled pictures, and ``labels.csv``; a context manager.

    Parameters
    ----------
    store : Store
        Of the workspace.
    coco : bool, default=False
        Also have ``annotations.json``, the labels in the format of COCO.

    Attributes
    ----------
    contents : ExportedPictures
        What it holds.
    n_bytes : int
        Size of the zip file.
    """

    def __init__(self, store: Store, *, coco: bool = False) -> None:
        self._store = store
        self.contents = ExportedPictures()
        # By name, written after the pictures; closed by the caller, or below.
        names = [LABEL_TABLE, *([ANNOTATIONS] if coco else [])]
        self._tables = {
            name: tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
            for name in names
        }
        try:
            with (
                translate_disk_errors(Path(tempfile.gettempdir())),
                ZipStream() as size,
                CocoWriter() as annotations,
                store.database.read_transaction() as connection,
            ):
                self._plan(connection, size, annotations)
                self._require_pictures()
                if coco:
                    annotations.finish(self._tables[ANNOTATIONS])
                for name, table in self._tables.items():
                    size.add(name, table.tell(), 0, _UNKNOWN_TIME)
                self.n_bytes = size.n_bytes
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        for table in self._tables.values():
            table.close()

    def _plan(
        self, connection: sqlite3.Connection, size: ZipStream, annotations: CocoWriter
    ) -> None:
        """Write the tables, and add up the size of the zip file."""
        self._write([COLUMNS])
        names = FolderNames(self._tables)
        found = connection.execute(_EXAMPLES)
        last_class, folder = None, ""
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            lines = []
            for class_id, label, fine, at, number, image, media_type, width, height in rows:
                n_bytes = self._find(image)
                if n_bytes is not None and class_id != last_class:
                    last_class, folder = class_id, names.find(label)
                    self.contents.n_classes += 1
                path = ""
                if n_bytes is not None:
                    self.contents.n_pictures += 1
                    path = f"{folder}/{number}{SUFFIX_OF_TYPE[require_media_type(media_type)]}"
                    size.add(path, n_bytes, 0, _UNKNOWN_TIME)
                    if ANNOTATIONS in self._tables:
                        annotations.add(path, (width, height), label)
                lines.append((path, label, fine, at, number, image))
            self._write(lines)

    def _find(self, image: str | None) -> int | None:
        """The size of a picture; None if there is none."""
        if image is None:
            self.contents.n_without_picture += 1
            return None
        n_bytes = self._store.images.n_bytes(image)
        if n_bytes is None:
            self.contents.n_lost += 1
        return n_bytes

    def _write(self, rows: Sequence[tuple[object, ...]]) -> None:
        self._tables[LABEL_TABLE].write(format_rows(rows).encode())

    def _require_pictures(self) -> None:
        if self.contents.n_pictures:
            return
        reason = "the workspace has no examples yet, so it has no pictures to export"
        if self.contents.n_without_picture:
            reason = "all examples were taught as embeddings: the workspace has no pictures"
        if self.contents.n_lost:
            reason = "the files of all pictures are missing: restore them from a backup"
        raise ConflictError(reason)

    def zip_chunks(self) -> Iterator[bytes]:
        """The zip file in pieces of at most 256 KiB; each picture as it was taught."""
        waiting = bytearray()
        for piece in self._zip_pieces():
            waiting += piece
            if len(waiting) >= _CHUNK_BYTES:
                yield bytes(waiting[:_CHUNK_BYTES])
                del waiting[:_CHUNK_BYTES]
        if waiting:
            yield bytes(waiting)

    def _zip_pieces(self) -> Iterator[bytes]:
        with ZipStream() as archive:
            for entry in self._entries():
                with self._open(entry) as file:
                    yield self._header(archive, entry.path, file, entry.at)
                    yield from _chunks(file)
            for name, spooled in self._tables.items():
                table = cast(BinaryIO, spooled)
                yield self._header(archive, name, table, datetime.now(UTC))
                yield from _chunks(table)
            if archive.n_bytes < self.n_bytes:
                raise _changed(LABEL_TABLE)
            yield from archive.end()

    def _header(self, archive: ZipStream, path: str, file: BinaryIO, at: datetime) -> bytes:
        checksum, n_bytes = 0, 0
        file.seek(0)
        for chunk in _chunks(file):
            checksum = zlib.crc32(chunk, checksum)
            n_bytes += len(chunk)
        file.seek(0)
        header = archive.add(path, n_bytes, checksum, at)
        if archive.n_bytes > self.n_bytes:
            raise _changed(path)
        return header

    def write_zip(self, path: str | os.PathLike[str]) -> None:
        """Write the zip file; an existing one is replaced."""
        with translate_disk_errors(Path(path).parent), atomic_write(path) as file:
            for chunk in self.zip_chunks():
                file.write(chunk)

    def write_folder(self, path: str | os.PathLike[str]) -> None:
        """Write the class folders and the table to a new or empty folder."""
        with translate_disk_errors(Path(path).parent), atomic_folder(path) as folder:
            for entry in self._entries():
                (folder / entry.path).parent.mkdir(exist_ok=True)
                with self._open(entry) as file, open(folder / entry.path, "xb") as copy:
                    shutil.copyfileobj(file, copy, _CHUNK_BYTES)
            for name, table in self._tables.items():
                table.seek(0)
                with open(folder / name, "xb") as copy:
                    shutil.copyfileobj(table, copy)

    def _entries(self) -> Iterator[_Entry]:
        """The pictures in order; nothing else may read the table meanwhile."""
        table = self._tables[LABEL_TABLE]
        table.seek(0)
        rows = csv.reader(line.decode() for line in table)
        next(rows)
        for path, _, _, at, _, image in rows:
            if path:
                yield _Entry(parse_field(path), image, _parse_time(at))

    @contextmanager
    def _open(self, entry: _Entry) -> Iterator[BufferedReader]:
        try:
            file = open_regular(self._store.images.path(entry.image), follow_links=False)
        except (FileNotFoundError, InvalidInputError) as error:
            raise _changed(entry.path) from error
        with file:
            yield file


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _parse_time(text: str) -> datetime:
    # In a folder from a stranger it may be any text.
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    return _UNKNOWN_TIME


def _changed(path: str) -> WorkspaceError:
    return WorkspaceError(f"pictures were erased during the export ({path!r}): try again")
