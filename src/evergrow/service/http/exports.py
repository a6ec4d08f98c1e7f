"""Model files for download, each written once for all requests of the same model."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from evergrow.service.http.responses import unavailable

_FILE_NAME = "model.evergrow"
_CHUNK_BYTES = 1 << 20
# Limit on files of different versions of the model: clients that download slowly while others
# teach must not fill the disk.
_MAX_FILES = 4


@dataclass(frozen=True)
class _File:
    folder: tempfile.TemporaryDirectory[str]
    path: Path
    n_bytes: int


class Export:
    """A model file that several requests share."""

    def __init__(self, version: object, file: Future[_File]) -> None:
        self.version = version
        self.file = file
        self.n_users = 1

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.file.result().n_bytes


class Exports:
    """Model files that are being downloaded; a context manager.

    Files are written and read in separate threads, so that slow clients do not delay requests that
    read the database. ``write`` writes the model to a file; requests of one ``version`` share a
    file.
    """

    def __init__(self, write: Callable[[Path], None], version: Callable[[], object]) -> None:
        self._write = write
        self._version = version
        self._write_thread = ThreadPoolExecutor(1, "export")
        self._read_thread = ThreadPoolExecutor(1, "export reader")
        self._exports: dict[object, Export] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Do nothing: the first request writes a file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads and remove all files."""
        for thread in (self._write_thread, self._read_thread):
            thread.shutdown(cancel_futures=True)
        for export in self._exports.values():
            export.file.add_done_callback(_remove)

    async def borrow(self) -> Export:
        """Return a file of the current model; :meth:`release` it afterwards."""
        export = self._find_or_start()
        try:
            # Shielded, because other requests may wait for it too.
            await asyncio.shield(asyncio.wrap_future(export.file))
        except BaseException:
            self.release(export)
            raise
        return export

    def _find_or_start(self) -> Export:
        version = self._version()
        with self._lock:
            export = self._exports.get(version)
            if export is not None:
                export.n_users += 1
                return export
            if len(self._exports) >= _MAX_FILES:
                raise unavailable("earlier versions of the model are still being downloaded")
            export = Export(version, self._write_thread.submit(self._write_file))
            self._exports[version] = export
            return export

    def release(self, export: Export) -> None:
        """Note that one request is done with a file; after the last one it is removed."""
        with self._lock:
            export.n_users -= 1
            if export.n_users:
                return
            del self._exports[export.version]
        export.file.add_done_callback(_remove)

    async def read_chunks(self, export: Export) -> AsyncIterator[bytes]:
        """Read a file in chunks."""
        loop = asyncio.get_running_loop()
        with open(export.file.result().path, "rb") as file:
            read = partial(file.read, _CHUNK_BYTES)
            while chunk := await loop.run_in_executor(self._read_thread, read):
                yield chunk

    def _write_file(self) -> _File:
        folder = tempfile.TemporaryDirectory(prefix="evergrow-export-")
        try:
            path = Path(folder.name) / _FILE_NAME
            self._write(path)
            return _File(folder, path, path.stat().st_size)
        except BaseException:
            folder.cleanup()
            raise


def _remove(file: Future[_File]) -> None:
    if not file.cancelled() and file.exception() is None:
        file.result().folder.cleanup()
