"""The ASGI application: middleware, routes, and the files of the page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from evergrow.foundation.extras import __version__
from evergrow.service.http.middleware import (
    STATIC_PREFIX,
    Access,
    BodyLength,
    BodyLimits,
    HeadRequests,
    Hosts,
    RequestLimits,
    Scopes,
    SecurityHeaders,
    allowed_hosts,
)
from evergrow.service.http.monitoring import RequestLog
from evergrow.service.http.responses import (
    ProblemError,
    add_error_handlers,
    client_has_etag,
    not_modified,
)
from evergrow.service.http.routes import (
    changes,
    downloads,
    examples,
    health,
    label_studio,
    overview,
    predictions,
)
from evergrow.service.http.service import Service

# To add a route: a function in a module of ``routes``, what it reads in ``bodies``, what it sends
# in ``service.wire``, and a method of ``Client``. The method decides the scope of the token. The
# fuzz test and docs/service.md read the routes from OpenAPI.
_ROUTERS = (
    health.router,
    examples.router,
    predictions.router,
    changes.router,
    overview.router,
    downloads.router,
    label_studio.router,
)
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


def create_app(service: Service, host: str | None = None) -> FastAPI:
    """Create the FastAPI application of a service, for your own ASGI server.

    Parameters
    ----------
    service : Service
        The service. It may be opened before or after this call.
    host : str, default=None
        The address on which the server listens; requests may name it as their host.

    Returns
    -------
    app : fastapi.FastAPI
        The application.
    """
    settings = service.settings
    app = FastAPI(
        title="Evergrow",
        version=__version__,
        description="Teach an image classifier by example and ask for predictions.",
        # FastAPI's documentation pages load files from other hosts, and the OpenAPI document needs
        # a token.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # The first is the outermost.
        middleware=[
            Middleware(RequestLog, metrics=service.metrics),
            Middleware(SecurityHeaders),
            Middleware(HeadRequests),
            Middleware(BodyLimits, settings=settings),
            Middleware(Access, service=service),
            Middleware(RequestLimits, settings=settings),
            # These refuse requests, so they come after everything that limits refusals.
            Middleware(Hosts, names=allowed_hosts(settings, host)),
            Middleware(Scopes),
            Middleware(BodyLength, settings=settings),
        ],
    )
    app.state.service = service
    for router in _ROUTERS:
        # Added to the application's own table, so that the table lists every route.
        app.router.routes.extend(router.routes)
    # What every page of Evergrow has, and what only that of a service has.
    page = PageFiles(files("evergrow").joinpath("page"), files("evergrow.service").joinpath("page"))

    async def index(request: Request) -> Response:
        return page.response("index.html", request)

    async def static(request: Request) -> Response:
        return page.response(request.path_params["name"], request)

    options: dict[str, Any] = {"methods": ["GET"], "include_in_schema": False}
    app.add_route("/", index, **options)
    app.add_route(STATIC_PREFIX + "{name:path}", static, **options)
    add_error_handlers(app)
    return app


@dataclass(frozen=True)
class _File:
    content: bytes
    media_type: str
    etag: str


class PageFiles:
    """Files of known types in folders of the package, loaded once: no other file is served."""

    def __init__(self, *folders: Traversable) -> None:
        self._files = {name: file for folder in folders for name, file in _load_files(folder, "")}

    @property
    def names(self) -> list[str]:
        """Names of the files, with sub-folders."""
        return sorted(self._files)

    def response(self, name: str, request: Request) -> Response:
        """Serve one file; raise a ``ProblemError`` if it does not exist."""
        file = self._files.get(name)
        if file is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "no such file")
        headers = {
            "ETag": file.etag,
            # Revalidated every time, so that an update of the package is visible at once.
            "Cache-Control": "no-cache",
            # The service worker lies with the other files and may serve the page offline.
            "Service-Worker-Allowed": "/",
        }
        if client_has_etag(request, headers):
            return not_modified(headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def _load_files(folder: Traversable, prefix: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    if not folder.is_dir():
        return found
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            found.extend(_load_files(entry, f"{name}/"))
        elif suffix in _MEDIA_TYPES:
            content = entry.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found.append((name, _File(content, _MEDIA_TYPES[suffix], etag)))
    return found
