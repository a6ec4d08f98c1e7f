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
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.access import Actor
from evergrow.service.http.bodies import KEY_PATTERN, MAX_FEATURES, Asked, ChangeBody, RelabelBody
from evergrow.service.http.listings import JSON_TYPE, json_response
from evergrow.service.http.problems import ProblemError, in_words
from evergrow.service.http.state import Service
from evergrow.workspace import records
from evergrow.workspace.workspace import Workspace

__all__ = [
    "Key",
    "NoQuery",
    "changed",
    "clears_fine",
    "content_type_of",
    "embeddings_bytes",
    "json_body",
    "parsed",
    "service_of",
    "signed",
    "wrong_type",
]

Body = TypeVar("Body", bound=BaseModel)

# Names and numbers of a change, however they are escaped and indented.
MAX_NAMES_BYTES = 64 * 1024
# The longest a program writes is 24 characters; the rest is for what stands between.
_BYTES_OF_NUMBER = 40
# Lists, objects and members of a body, and such signs in its names; no request needs half of it.
# They cost a hundred times as much time and memory as their bytes.
_STRUCTURE = b"[{:"
_MAX_STRUCTURE = 4096

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


async def json_body(request: Request, model: type[Body], max_bytes: int = MAX_NAMES_BYTES) -> Body:
    """The body as a model; a ``ProblemError`` says what is wrong with it.

    Parameters
    ----------
    request : Request
        Who sends it.
    model : type
        What it must be.
    max_bytes : int
        Longest body. What is read here holds up all other requests meanwhile, so that it must be
        no longer than what it can have to say.
    """
    if content_type_of(request) != JSON_TYPE:
        raise wrong_type(request, JSON_TYPE)
    pieces, n_bytes = [], 0
    async for piece in request.stream():
        n_bytes += len(piece)
        if n_bytes > max_bytes:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a JSON body of more than {max_bytes} bytes is not needed here",
            )
        pieces.append(piece)
    return parsed(b"".join(pieces), model)


def embeddings_bytes(n_features: int | None, n_embeddings: int = 1) -> int:
    """Longest JSON body with so many embeddings; before the first example, with one of any length.

    >>> embeddings_bytes(1280, 32)
    1703936
    """
    n_numbers = MAX_FEATURES if n_features is None else n_embeddings * n_features
    return MAX_NAMES_BYTES + n_numbers * _BYTES_OF_NUMBER


def parsed(body: bytes, model: type[Body]) -> Body:
    """JSON as a model."""
    if sum(body.count(sign) for sign in _STRUCTURE) > _MAX_STRUCTURE:
        raise _invalid("the body has more lists, objects and members than any request needs")
    try:
        value = from_json(body)
    except ValueError as error:
        raise _invalid(f"the body is no JSON: {error}") from None
    if isinstance(value, dict):
        # Before the model looks: it would describe each of thousands.
        unknown = [name for name in value if name not in model.model_fields]
        if unknown:
            raise _invalid("; ".join(f"{name[:100]}: not known" for name in unknown[:3]))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise _invalid(in_words(found)) from None


def _invalid(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def clears_fine(sent: RelabelBody) -> bool:
    """Whether a correction takes finer names away: null does, and nothing leaves them."""
    return "fine" in sent.model_fields_set and sent.fine is None


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
