"""What routes need of a request: its body as a model, its sender, its key."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import Header, Query
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.access import Actor
from evergrow.service.bodies import KEY_PATTERN, Asked, ChangeBody
from evergrow.service.listings import JSON_TYPE, json_response
from evergrow.service.problems import ProblemError, in_words
from evergrow.service.state import Service
from evergrow.workspace import records
from evergrow.workspace.workspace import Workspace

__all__ = [
    "Key",
    "NoQuery",
    "changed",
    "content_type_of",
    "json_body",
    "parsed",
    "service_of",
    "signed",
    "wrong_type",
]

Body = TypeVar("Body", bound=BaseModel)

_KEY_HEADER = "Idempotency-Key"
Key = Annotated[
    str | None,
    Header(
        alias=_KEY_HEADER,
        pattern=KEY_PATTERN,
        description="Stands for this one request: sent again, it is answered but not done again.",
    ),
]


class _Nothing(Asked):
    """No parameters: any that come are a mistake."""


NoQuery = Annotated[_Nothing, Query()]


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    service: Service = request.app.state.service
    return service


def content_type_of(request: Request) -> str:
    """What the body says it is, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wrong_type(request: Request, *allowed: str) -> ProblemError:
    """The refusal of a body of another kind."""
    found = content_type_of(request) or "nothing"
    return ProblemError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"the Content-Type must be {' or '.join(allowed)}, got {found[:100]}",
    )


async def json_body(request: Request, model: type[Body]) -> Body:
    """The body as a model; a ``ProblemError`` says what is wrong with it."""
    if content_type_of(request) != JSON_TYPE:
        raise wrong_type(request, JSON_TYPE)
    return parsed(await request.body(), model)


def parsed(body: bytes, model: type[Body]) -> Body:
    """JSON as a model."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, in_words(error.errors(include_url=False))
        ) from None


def signed(request: Request, key: str | None, *what: Any, content: bytes = b"") -> records.Request:
    """Who asks, with a digest of what for: retries must ask for the same."""
    if len(request.headers.getlist(_KEY_HEADER)) > 1:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"{_KEY_HEADER}: there must be one only"
        )
    actor: Actor = request.scope["actor"]
    if key is None:
        return records.Request(actor.name)
    digest = hashlib.sha256(json.dumps([request.method, request.url.path, *what]).encode())
    digest.update(content)
    return records.Request(actor.name, key, digest.hexdigest())


async def changed(request: Request, change: Callable[[Workspace], records.Change]) -> Response:
    """Have the writer make a change, and say what it did."""
    service = service_of(request)
    workspace = service.workspace
    done = await asyncio.wrap_future(service.writer.change(lambda: change(workspace)))
    return json_response(ChangeBody.model_validate(done))
