"""The files of the page, held in memory: what is not there at the start is never served."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.listings import is_known, not_modified
from evergrow.service.http.problems import ProblemError

__all__ = ["PageFiles"]

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
# Asked about every time, so that an update of the package shows at once.
_CACHE = "no-cache"


@dataclass(frozen=True)
class _File:
    content: bytes
    media_type: str
    tag: str


class PageFiles:
    """Serves files of known kinds from one folder of the package.

    Parameters
    ----------
    folder : Traversable
        Where they are.
    """

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(_found(folder, ""))

    @property
    def names(self) -> list[str]:
        """Names of the files, with folders."""
        return sorted(self._files)

    def response(self, name: str, request: Request) -> Response:
        """One file; a ``ProblemError`` if there is none of that name."""
        file = self._files.get(name)
        if file is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "there is no such file")
        headers = {
            "ETag": file.tag,
            "Cache-Control": _CACHE,
            # A worker that lies with the other files may serve the page when there is no network.
            "Service-Worker-Allowed": "/",
        }
        if is_known(request, headers):
            return not_modified(headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def _found(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    if not folder.is_dir():
        return found
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            found.extend(_found(entry, f"{name}/"))
        elif suffix in _MEDIA_TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found.append((name, _File(content, _MEDIA_TYPES[suffix], tag)))
    return found
