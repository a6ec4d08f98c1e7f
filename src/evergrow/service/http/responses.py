"""Responses: JSON records, ETags, and problems (RFC 9457).

A refusal is an error whose message is about the request: it becomes a 4xx, 503 or 507 response.
Any other exception, a plain ``ValueError`` included, is a bug: it is logged with its traceback and
answered with a 500 that shows no internals.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.decoding.protocol import STATUS_OF_REFUSAL, DecoderError, RefusedImageError
from evergrow.service.label_studio.learner import LearnerBusyError
from evergrow.workspace.records import (
    ConflictError,
    KeyReusedError,
    NoSuchClassError,
    NoSuchExampleError,
    WorkspaceFullError,
    WorkspaceLostError,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

    from evergrow.service.http.service import Service

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
_RETRY_SOON = {"Retry-After": "1"}
# The client may cache the response, but must revalidate it every time.
_REVALIDATE = "private, no-cache"

# The first class that matches counts.
_STATUS_OF_ERROR: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (WorkspaceFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    # The request is valid; this process can no longer write, and another one may serve it.
    (WorkspaceLostError, HTTPStatus.SERVICE_UNAVAILABLE),
    (NoSuchClassError, HTTPStatus.NOT_FOUND),
    (NoSuchExampleError, HTTPStatus.NOT_FOUND),
    (ConflictError, HTTPStatus.CONFLICT),
    # The request is valid by itself; it contradicts an earlier one with the same key.
    (KeyReusedError, HTTPStatus.CONFLICT),
    (InvalidInputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (DecoderError, HTTPStatus.SERVICE_UNAVAILABLE),
    (LearnerBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
)

_log = logging.getLogger("evergrow.service")


@cache
def _serializer(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def json_response(
    record: object, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    """Serialize a record of the workspace or of :mod:`evergrow.service.wire`."""
    return Response(
        _serializer(cast(Any, type(record))).dump_json(record, by_alias=True),
        status_code=int(status),
        headers=headers,
        media_type=JSON_TYPE,
    )


async def cached_response(
    request: Request,
    state: Callable[[], object],
    make: Callable[[], object],
) -> Response:
    """Respond with a record and its ETag, or with 304 if the client has it already.

    ETags are valid until the service restarts: afterwards the same event number may stand for
    another change, if the workspace was restored from a backup.

    ``state`` is what the record depends on. It is read before the record is made: after a change
    between the two, a new record has an old ETag, which costs one more request. The reverse, an old
    record with a new ETag, cannot happen.
    """
    service: Service = request.app.state.service

    def respond() -> Response:
        headers = etag_headers(request, (service.run, state()))
        if client_has_etag(request, headers):
            return not_modified(headers)
        return json_response(make(), headers=headers)

    return await service.read(request.scope["actor"], respond)


def etag_headers(request: Request, state: object) -> dict[str, str]:
    """Headers with an ETag of the requested resource and its state."""
    facts = repr((request.url.path, sorted(request.query_params.multi_items()), state))
    tag = hashlib.sha256(facts.encode()).hexdigest()[:32]
    return {"ETag": f'"{tag}"', "Cache-Control": _REVALIDATE}


def client_has_etag(request: Request, headers: dict[str, str]) -> bool:
    """Whether the client has the resource with this ETag."""
    sent = request.headers.get("if-none-match", "")
    tags = {tag.strip().removeprefix("W/") for tag in sent.split(",")}
    return headers["ETag"] in tags or "*" in tags


def not_modified(headers: dict[str, str]) -> Response:
    """Respond that the client's copy is current."""
    return Response(status_code=int(HTTPStatus.NOT_MODIFIED), headers=headers)


class ProblemError(Exception):
    """Refuse a request with this status; ``detail`` is shown to the user."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status = int(status)
        self.detail = detail
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.detail


def invalid_request(detail: str) -> ProblemError:
    """Make the error for a request whose content is not valid (422)."""
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def unavailable(detail: str) -> ProblemError:
    """Make the error for a request that may succeed later (503)."""
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail)


class _Problem(Response):
    """A problem response, whose reason also goes to the log."""

    reason = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        scope["reason"] = self.reason
        await super().__call__(scope, receive, send)


def problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, Any] | None = None,
) -> Response:
    """Make a problem response; further members are facts for programs."""
    known = HTTPStatus(status)
    body = {"type": "about:blank", "title": known.phrase, "status": int(known), "detail": detail}
    body |= members or {}
    if known == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {**_RETRY_SOON, **(headers or {})}
    response = _Problem(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status_code=int(known),
        headers=dict(headers or {}),
        media_type=PROBLEM_TYPE,
    )
    response.reason = detail
    return response


def refusal_response(error: Exception) -> Response | None:
    """Make the response for a refusal; None if the error is a bug."""
    if isinstance(error, ProblemError):
        return problem(error.status, error.detail, error.headers)
    if isinstance(error, RefusedImageError):
        return problem(STATUS_OF_REFUSAL[error.kind], str(error))
    for kind, status in _STATUS_OF_ERROR:
        if isinstance(error, kind):
            return problem(status, str(error))
    return None


def internal_error(error: Exception) -> Response:
    """Log an unexpected error with its traceback; the response does not show it."""
    _log.error("a request failed", exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the log of the service has the details"
    )


def add_error_handlers(app: FastAPI) -> None:
    """Turn all refusals, and those of the frameworks, into problem responses."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def handle_refusal(_: Request, error: Exception) -> Response:
        return refusal_response(error) or internal_error(error)

    async def handle_http_error(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        details = {
            HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path}",
            HTTPStatus.METHOD_NOT_ALLOWED: f"the method {request.method} is not allowed here",
        }
        detail = details.get(HTTPStatus(status), str(getattr(error, "detail", "")))
        headers = dict(getattr(error, "headers", None) or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_allowed_methods(request))
        return problem(status, detail, headers)

    async def handle_validation_error(_: Request, error: Exception) -> Response:
        errors = error.errors() if isinstance(error, RequestValidationError) else []
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, describe_validation_errors(errors))

    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(HTTPException, handle_http_error)
    kinds = (ProblemError, InvalidInputError, RefusedImageError, DecoderError, LearnerBusyError)
    for kind in kinds:
        app.add_exception_handler(kind, handle_refusal)


def _allowed_methods(request: Request) -> list[str]:
    """Methods of all routes of a path; the framework reports only those of the first route."""
    from starlette.routing import Match

    methods: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches({**request.scope, "path": request.url.path})
        if match is not Match.NONE:
            methods |= set(getattr(route, "methods", None) or ())
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def describe_validation_errors(errors: Any) -> str:
    """Describe pydantic's errors in one line, which repeats names but no values of the request."""
    parts = []
    for one in list(errors)[:5]:
        place = ".".join(str(part) for part in one["loc"] if part not in ("query", "path", "body"))
        parts.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    return "; ".join(parts) or "the request is not valid"
