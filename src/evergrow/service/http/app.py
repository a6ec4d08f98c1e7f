"""The service as an ASGI application."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.foundation.version import __version__
from evergrow.service.http.access import STATIC_PREFIX, Access
from evergrow.service.http.headers import SafeHeaders
from evergrow.service.http.limits import BodyLimits, RateLimit
from evergrow.service.http.logs import Observing
from evergrow.service.http.pagefiles import PageFiles
from evergrow.service.http.problems import add_handlers
from evergrow.service.http.routes import changes, examples, health, overview, predicting, teaching
from evergrow.service.http.state import Service

__all__ = ["create_app"]

_ROUTERS = (
    health.router,
    teaching.router,
    predicting.router,
    examples.router,
    changes.router,
    overview.router,
)


class _Heads:
    """Answers HEAD as GET without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        await self._app(scope, receive, send_head)


def create_app(service: Service) -> FastAPI:
    """The application of a service, which may be open already or be opened later.

    Parameters
    ----------
    service : Service
        What is served.
    """
    settings = service.settings
    app = FastAPI(
        title="Evergrow",
        version=__version__,
        description="Teach things by example and ask what something is.",
        # Their pages load files from elsewhere, and the document needs a token.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # The first is the outermost.
        middleware=[
            Middleware(Observing, metrics=service.metrics),
            Middleware(SafeHeaders),
            Middleware(_Heads),
            Middleware(BodyLimits, settings=settings),
            Middleware(Access, check=lambda: service.token_check),
            Middleware(RateLimit, settings=settings),
        ],
    )
    app.state.service = service
    for router in _ROUTERS:
        # Not included but taken over: the application's own table then names every route there is.
        app.router.routes.extend(router.routes)
    page = PageFiles(files("evergrow.service").joinpath("page"))

    async def index(request: Request) -> Response:
        return page.response("index.html", request)

    async def static(request: Request) -> Response:
        return page.response(request.path_params["name"], request)

    options: dict[str, Any] = {"methods": ["GET"], "include_in_schema": False}
    app.add_route("/", index, **options)
    app.add_route(STATIC_PREFIX + "{name:path}", static, **options)
    add_handlers(app)
    return app
