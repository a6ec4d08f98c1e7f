"""Refusals as the service words them: ``application/problem+json``, one status per reason."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from evergrow.foundation.errors import WorkspaceError
from evergrow.service.decoding.refusals import (
    STATUS_OF_REFUSAL,
    DecoderError,
    RefusedImageError,
)
from evergrow.workspace.errors import (
    ConflictError,
    KeyReusedError,
    NoSuchClassError,
    NoSuchExampleError,
    WorkspaceFullError,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["PROBLEM_TYPE", "ProblemError", "add_handlers", "problem", "problem_of"]

PROBLEM_TYPE = "application/problem+json"
_LATER = {"Retry-After": "1"}

# The first that fits counts; any other refusal of the workspace is about what was sent.
_STATUS_OF_ERROR: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (WorkspaceFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (NoSuchClassError, HTTPStatus.NOT_FOUND),
    (NoSuchExampleError, HTTPStatus.NOT_FOUND),
    (ConflictError, HTTPStatus.CONFLICT),
    # The request is fine by itself; it is the one before that it does not fit.
    (KeyReusedError, HTTPStatus.CONFLICT),
    (WorkspaceError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ValueError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (DecoderError, HTTPStatus.SERVICE_UNAVAILABLE),
)

_log = logging.getLogger("evergrow.service")


class ProblemError(Exception):
    """A request is refused with this status; ``detail`` is for a person."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status = int(status)
        self.detail = detail
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.detail


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as a response."""
    known = HTTPStatus(status)
    body = {"type": "about:blank", "title": known.phrase, "status": int(known), "detail": detail}
    if known == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {**_LATER, **(headers or {})}
    return Response(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status_code=int(known),
        headers=dict(headers or {}),
        media_type=PROBLEM_TYPE,
    )


def problem_of(error: Exception) -> Response | None:
    """The response to an error that tells something about the request; None for a fault of ours."""
    if isinstance(error, ProblemError):
        return problem(error.status, error.detail, error.headers)
    if isinstance(error, RefusedImageError):
        return problem(STATUS_OF_REFUSAL[error.kind], str(error))
    for kind, status in _STATUS_OF_ERROR:
        if isinstance(error, kind):
            return problem(status, str(error))
    return None


def fault(error: Exception) -> Response:
    """The response to a fault of ours; what it was stands in the log only."""
    _log.error("a request failed", exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "the service made a mistake; its log says more"
    )


def add_handlers(app: FastAPI) -> None:
    """Word all that frameworks raise in the same way."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def known(_: Request, error: Exception) -> Response:
        return problem_of(error) or fault(error)

    async def of_framework(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        said = {
            HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path}",
            HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible here",
        }
        detail = said.get(HTTPStatus(status), str(getattr(error, "detail", "")))
        headers = dict(getattr(error, "headers", None) or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_allowed(request))
        return problem(status, detail, headers)

    async def invalid(_: Request, error: Exception) -> Response:
        errors = error.errors() if isinstance(error, RequestValidationError) else []
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, in_words(errors))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_framework)
    for kind in (ProblemError, ValueError, DecoderError):
        app.add_exception_handler(kind, known)


def _allowed(request: Request) -> list[str]:
    """Methods of all routes of a path; the framework names those of the first only."""
    from starlette.routing import Match

    methods: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches({**request.scope, "path": request.url.path})
        if match is not Match.NONE:
            methods |= set(getattr(route, "methods", None) or ())
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def in_words(errors: Any) -> str:
    """What pydantic found, as a sentence; nothing of what was sent is repeated but names."""
    parts = []
    for one in list(errors)[:5]:
        place = ".".join(str(part) for part in one["loc"] if part not in ("query", "path", "body"))
        parts.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    return "; ".join(parts) or "the request is not valid"
