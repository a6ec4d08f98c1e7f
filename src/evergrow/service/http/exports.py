"""Model files for download, each written once for all requests of the same model and format."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from evergrow.export.html.runtime import RuntimeMissingError
from evergrow.service.http.responses import ProblemError, unavailable

_CHUNK_BYTES = 1 << 18
# Limit on files of different formats and versions of the model: clients that download slowly while
# others teach must not fill the disk.
_MAX_FILES = 6


@dataclass(frozen=True)
class _File:
    folder: tempfile.TemporaryDirectory[str]
    path: Path
    n_bytes: int


class Export:
    """A model file that several requests share."""

    def __init__(self, key: object, file: Future[_File]) -> None:
        self.key = key
        self.file = file
        self.n_users = 1

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.file.result().n_bytes

    def read_chunks(self) -> Iterator[bytes]:
        """Read the file in chunks."""
        with open(self.file.result().path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


class Exports:
    """Model files that are being downloaded.

    Parameters
    ----------
    name : str
        The name of the files, without suffix.
    write : callable
        Writes the model to a file, whose suffix is the format.
    version : callable
        Returns the version of the model; requests of one version and format share a file.
    thread : Executor
        Where files are written.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Path], None],
        version: Callable[[], object],
        thread: Executor,
    ) -> None:
        self._name = name
        self._write = write
        self._version = version
        self._thread = thread
        self._exports: dict[object, Export] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Remove all files."""
        for export in self._exports.values():
            export.file.add_done_callback(_remove)

    async def borrow(self, suffix: str) -> Export:
        """Return a file of the current model; :meth:`release` it afterwards."""
        export = self._find_or_start(suffix)
        try:
            # Shielded, because other requests may wait for it too.
            await asyncio.shield(asyncio.wrap_future(export.file))
        except BaseException:
            self.release(export)
            raise
        return export

    def _find_or_start(self, suffix: str) -> Export:
        key = (suffix, self._version())
        with self._lock:
            export = self._exports.get(key)
            if export is not None:
                export.n_users += 1
                return export
            if len(self._exports) >= _MAX_FILES:
                raise unavailable("earlier versions of the model are still being downloaded")
            export = Export(key, self._thread.submit(self._write_file, suffix))
            self._exports[key] = export
            return export

    def release(self, export: Export) -> None:
        """Note that one request is done with a file; after the last one it is removed."""
        with self._lock:
            export.n_users -= 1
            if export.n_users:
                return
            del self._exports[export.key]
        export.file.add_done_callback(_remove)

    def _write_file(self, suffix: str) -> _File:
        folder = tempfile.TemporaryDirectory(prefix="evergrow-export-")
        try:
            path = Path(folder.name) / f"{self._name}{suffix}"
            self._write(path)
            return _File(folder, path, path.stat().st_size)
        except (ImportError, RuntimeMissingError) as error:
            folder.cleanup()
            # The message says what to install.
            raise ProblemError(HTTPStatus.NOT_IMPLEMENTED, str(error)) from error
        except BaseException:
            folder.cleanup()
            raise


def _remove(file: Future[_File]) -> None:
    if not file.cancelled() and file.exception() is None:
        file.result().folder.cleanup()
