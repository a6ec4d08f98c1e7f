"""Downloads: prepared before the response begins, then sent piece by piece at a limited rate.

Whatever can be refused is refused while a download is prepared. Threads of their own prepare and
read files, so that slow clients delay neither predictions nor teaching. A browser saves a file to
disk by itself only if it requests a plain link, without a token. So a link is valid for one
request within a minute.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from evergrow.foundation.errors import EvergrowError, WorkspaceError
from evergrow.service.http.exports import Exports
from evergrow.service.http.fairness import Actor, Allowance, Pacer
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.writer import lower_priority
from evergrow.service.wire import DownloadLink, File
from evergrow.vision.images.folder_names import FolderNames
from evergrow.workspace.workspace import Workspace

# The ending of the file's name, which begins with that of the workspace, and its media type.
FILES: dict[File, tuple[str, str]] = {
    "model": (".evergrow", "application/octet-stream"),
    "onnx": (".onnx", "application/octet-stream"),
    "html": (".html", "text/html"),
    "pictures": ("-pictures.zip", "application/zip"),
    "labels": ("-labels.csv", "text/csv"),
    "audit-log": ("-audit-log.jsonl", "application/x-ndjson"),
}

# Downloads at a time: in all, of one token, and of all tokens that may not teach.
_MAX_DOWNLOADS, _MAX_EACH, _MAX_OF_READERS = 12, 3, 8
# Bytes per second of one token; more would leave too little of the event loop to other requests.
_BYTES_PER_SECOND = 50_000_000.0
_BURST_BYTES = 10_000_000
_LINK_SECONDS = 60
_NICENESS = 10

_log = logging.getLogger("evergrow.service")


@dataclass(frozen=True)
class Download:
    """A file that is ready to be sent.

    Attributes
    ----------
    actor : Actor
        Whom it is for.
    name, media_type : str
        How to call it, and what it is.
    n_bytes : int or None
        Its size; None if that is not known yet.
    chunks : iterator of bytes
        Its content, which only the reading thread may ask for.
    close : callable
        Frees what the file needs.
    """

    actor: Actor
    name: str
    media_type: str
    n_bytes: int | None
    chunks: Iterator[bytes]
    close: Callable[[], None]


@dataclass(frozen=True)
class _Link:
    token: str
    download: Download
    expires: float


class Downloads:
    """All downloads of a service; a context manager."""

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._clock = clock
        self._write_thread = ThreadPoolExecutor(
            1, "export", initializer=partial(lower_priority, _NICENESS)
        )
        self._read_thread = ThreadPoolExecutor(1, "download")
        # A name that every system accepts; that of the file is also the title of an exported page.
        self._name = FolderNames().find(workspace.layout.folder.resolve().name) or "workspace"
        self.exports = Exports(
            self._name,
            workspace.export,
            partial(_model_version, workspace),
            self._write_thread,
        )
        self._at_once = Allowance(_MAX_DOWNLOADS, _MAX_EACH, _MAX_OF_READERS)
        self._pace = Pacer(_BYTES_PER_SECOND, _BURST_BYTES, math.inf)
        self._links: dict[str, _Link] = {}

    def __enter__(self) -> Self:
        """Do nothing: the first request writes a file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads and remove all files."""
        self._write_thread.shutdown(cancel_futures=True)
        # What is closed in this thread has to be closed.
        self._read_thread.shutdown()
        for link in self._links.values():
            link.download.close()
        self.exports.close()

    async def prepare(self, actor: Actor, file: File) -> Download:
        """Prepare a file; it must be sent by a :class:`DownloadResponse`, or get a link."""
        self._drop_links()
        if not self._at_once.take(actor, 1):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many downloads at a time with this token, or with all tokens; wait for one "
                "of them to end",
                {"Retry-After": "1"},
            )
        try:
            n_bytes, chunks, close = await self._open(file)
        except BaseException:
            self._at_once.give_back(actor, 1)
            raise
        ending, media_type = FILES[file]
        return Download(actor, f"{self._name}{ending}", media_type, n_bytes, chunks, close)

    async def _open(self, file: File) -> tuple[int | None, Iterator[bytes], Callable[[], None]]:
        """The size of a file, its content, and how to close it."""
        workspace = self._workspace
        if file in ("model", "onnx", "html"):
            export = await self.exports.borrow(FILES[file][0])
            return export.n_bytes, export.read_chunks(), partial(self.exports.release, export)
        if file == "pictures":
            loop = asyncio.get_running_loop()
            archive = await loop.run_in_executor(self._write_thread, workspace.picture_archive)
            return archive.n_bytes, archive.zip_chunks(), archive.close
        lines = {"labels": Workspace.label_lines, "audit-log": Workspace.audit_log}[file]
        return None, lines(workspace), lambda: None

    def release(self, download: Download) -> None:
        """Close a file, once the reading thread is done with it."""
        self._at_once.give_back(download.actor, 1)
        try:
            self._read_thread.submit(_close, download)
        except RuntimeError:
            # The service has stopped, and the thread with it.
            _close(download)

    async def read(self, download: Download) -> AsyncIterator[bytes]:
        """Read a file, no faster than its token may."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                chunk = await loop.run_in_executor(self._read_thread, next, download.chunks, None)
            except OSError as error:
                # Otherwise it would be taken for one of the connection.
                raise WorkspaceError(f"a file cannot be read: {error}") from error
            if chunk is None:
                return
            delay = self._pace.delay(download.actor.name, len(chunk))
            if delay:
                await asyncio.sleep(delay)
            if chunk:
                yield chunk

    def make_link(self, token: str, download: Download) -> DownloadLink:
        """Return a link to a file, valid for one request within a minute."""
        ticket = secrets.token_urlsafe(32)
        self._links[ticket] = _Link(token, download, self._clock() + _LINK_SECONDS)
        asyncio.get_running_loop().call_later(_LINK_SECONDS + 1, self._drop_links)
        return DownloadLink(ticket, _LINK_SECONDS, download.name, download.n_bytes)

    def token_of(self, ticket: str) -> str | None:
        """Return the token that a link was made with; None if it is not valid."""
        self._drop_links()
        link = self._links.get(ticket)
        return None if link is None else link.token

    def follow_link(self, ticket: str) -> Download | None:
        """Return the file of a link, which is not valid any more; None if it was not valid."""
        link = self._links.pop(ticket, None)
        return None if link is None else link.download

    def _drop_links(self) -> None:
        now = self._clock()
        for ticket in [ticket for ticket, link in self._links.items() if link.expires <= now]:
            self.release(self._links.pop(ticket).download)


def _close(download: Download) -> None:
    # A generator has files of its own open until it ends.
    close: Any = getattr(download.chunks, "close", None)
    try:
        if close is not None:
            close()
    finally:
        download.close()


class DownloadResponse(StreamingResponse):
    """Sends a download, and releases it however the transfer ends, even if it never starts."""

    def __init__(self, downloads: Downloads, download: Download) -> None:
        headers = {"Content-Disposition": _attachment(download.name)}
        if download.n_bytes is not None:
            headers["Content-Length"] = str(download.n_bytes)
        super().__init__(downloads.read(download), media_type=download.media_type, headers=headers)
        self._release = partial(downloads.release, download)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        try:
            if scope.get("without_body"):
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )
                await send({"type": "http.response.body", "body": b""})
                return
            await super().__call__(scope, receive, send)
        except EvergrowError as error:
            # The client notices: its connection ends before the file does.
            _log.warning("a download was broken off: %s", error)
            connection = scope.get("connection")
            if connection is not None:
                connection.drop()
            raise ClientDisconnect from error
        finally:
            self._release()


def _attachment(name: str) -> str:
    """The header that makes browsers save a file under a name (RFC 6266)."""
    # Quotes and backslashes are not in names that every system accepts.
    plain = "".join(one if one.isascii() else "_" for one in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _model_version(workspace: Workspace) -> object:
    """Everything that a model file depends on."""
    assessment = workspace.assessment
    return workspace.snapshot.event, None if assessment is None else assessment.event
