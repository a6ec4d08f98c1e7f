"""The model as a file for whoever asks: made once for all who ask for the same."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Self

from evergrow.service.http.problems import ProblemError

__all__ = ["Export", "Exports"]

_FILE_NAME = "model.evergrow"
_CHUNK_BYTES = 1 << 20
# Files of different states of the model that may be there at once: clients that read slowly while
# others teach must not fill the disk.
_MOST = 4


@dataclass(frozen=True)
class _File:
    folder: tempfile.TemporaryDirectory[str]
    path: Path
    n_bytes: int


class Export:
    """A file of the model that some requests share."""

    def __init__(self, state: object, made: Future[_File]) -> None:
        self.state = state
        self.made = made
        self.n_users = 1

    @property
    def n_bytes(self) -> int:
        """Length of the file."""
        return self.made.result().n_bytes


class Exports:
    """Files of the model that are being sent; a context manager.

    They have threads of their own: neither making a file nor reading it for a slow client keeps
    those waiting who ask the database.

    Parameters
    ----------
    write : callable
        Writes the model into a file.
    state : callable
        What the model depends on, at once; requests that find the same share a file.
    """

    def __init__(self, write: Callable[[Path], None], state: Callable[[], object]) -> None:
        self._write = write
        self._state = state
        self._maker = ThreadPoolExecutor(1, "export")
        self._reader = ThreadPoolExecutor(1, "export reader")
        self._exports: dict[object, Export] = {}
        self._guard = threading.Lock()

    def __enter__(self) -> Self:
        """Nothing is made before someone asks."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads and remove all files."""
        for threads in (self._maker, self._reader):
            threads.shutdown(cancel_futures=True)
        for export in self._exports.values():
            export.made.add_done_callback(_remove)

    async def take(self) -> Export:
        """The file of the present model; to be given back by :meth:`release`."""
        export = self._joined()
        try:
            # Others may wait for it too.
            await asyncio.shield(asyncio.wrap_future(export.made))
        except BaseException:
            self.release(export)
            raise
        return export

    def _joined(self) -> Export:
        state = self._state()
        with self._guard:
            export = self._exports.get(state)
            if export is not None:
                export.n_users += 1
                return export
            if len(self._exports) >= _MOST:
                raise ProblemError(
                    HTTPStatus.SERVICE_UNAVAILABLE, "earlier states of the model are still sent"
                )
            export = Export(state, self._maker.submit(self._made))
            self._exports[state] = export
            return export

    def release(self, export: Export) -> None:
        """Say that one request is done with a file; the last one has it removed."""
        with self._guard:
            export.n_users -= 1
            if export.n_users:
                return
            del self._exports[export.state]
        export.made.add_done_callback(_remove)

    async def pieces(self, export: Export) -> AsyncIterator[bytes]:
        """The file piece by piece."""
        loop = asyncio.get_running_loop()
        with open(export.made.result().path, "rb") as file:
            read = partial(file.read, _CHUNK_BYTES)
            while piece := await loop.run_in_executor(self._reader, read):
                yield piece

    def _made(self) -> _File:
        folder = tempfile.TemporaryDirectory(prefix="evergrow-export-")
        try:
            path = Path(folder.name) / _FILE_NAME
            self._write(path)
            return _File(folder, path, path.stat().st_size)
        except BaseException:
            folder.cleanup()
            raise


def _remove(made: Future[_File]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().folder.cleanup()
