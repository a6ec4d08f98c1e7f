"""What routes read from a request: its JSON body, query parameters, actor and idempotency key."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import Header, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.access import Actor
from evergrow.service.http.bodies import MAX_FEATURES, RelabelBody, RequestBody
from evergrow.service.http.responses import (
    JSON_TYPE,
    ProblemError,
    describe_validation_errors,
    invalid_request,
    json_response,
)
from evergrow.service.http.service import Service
from evergrow.workspace import records
from evergrow.workspace.workspace import Workspace

Body = TypeVar("Body", bound=BaseModel)

MAX_PAGE_SIZE = 500
# Enough for the names and ids of any change, however they are escaped and indented.
MAX_NAMES_BYTES = 64 * 1024
# A number has at most 24 characters; the rest is for separators and white space.
_BYTES_PER_NUMBER = 40
# Limit on lists, objects and members of a body; no request needs half of it. They cost a hundred
# times as much time and memory as their bytes.
_STRUCTURE = b"[{:"
_MAX_STRUCTURE = 4096

# Visible ASCII: what every program can put into a header.
_KEY_PATTERN = r"^[!-~]{1,255}$"
# Cursors are numbers in base64. Clients treat them as opaque; the pattern is for tests that
# generate any cursor that could exist.
_TRIPLE = "(?:[MN][DTjz]|O[DT])[AEIMQUYcgk][w-z0-5]"
_REST = "(?:[MN][AQgw]|O[AQ])|(?:[MN][DTjz]|O[DT])[AEIMQUYcgk]"
_CURSOR_PATTERN = f"^(?!MD)(?:{_REST}|(?:{_TRIPLE}){{1,5}}(?:{_REST})?|(?:{_TRIPLE}){{6}})$"

_KEY_HEADER = "Idempotency-Key"
Key = Annotated[
    str | None,
    Header(
        alias=_KEY_HEADER,
        pattern=_KEY_PATTERN,
        description="Identifies this change: sent again with the same key, it is made only once.",
    ),
]


class _NoParameters(RequestBody):
    """No query parameters: unknown ones are refused."""


NoQuery = Annotated[_NoParameters, Query()]


class LimitQuery(RequestBody):
    """The number of items to return."""

    # Query parameters are text; the strict types of JSON bodies would refuse all numbers.
    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(100, ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")


class PageQuery(LimitQuery):
    """A page of a listing."""

    after: str | None = Field(
        None,
        description="Cursor: the value of next on the page before.",
        json_schema_extra={"pattern": _CURSOR_PATTERN},
    )


def service_of(request: Request) -> Service:
    """Return the service that handles a request."""
    service: Service = request.app.state.service
    return service


def content_type_of(request: Request) -> str:
    """Return the media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wrong_content_type(request: Request, *allowed: str) -> ProblemError:
    """Make the error for a body of another media type (415)."""
    found = content_type_of(request) or "nothing"
    return ProblemError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"the Content-Type must be {' or '.join(allowed)}, got {found[:100]}",
    )


async def read_json(request: Request, model: type[Body], max_bytes: int = MAX_NAMES_BYTES) -> Body:
    """Read and validate a JSON body; raise a ``ProblemError`` if it is not valid.

    Parameters
    ----------
    request : Request
        The request.
    model : type
        The expected model.
    max_bytes : int
        Maximum length. Parsing blocks all other requests, so the limit should be as low as the
        model allows.
    """
    if content_type_of(request) != JSON_TYPE:
        raise wrong_content_type(request, JSON_TYPE)
    pieces, n_bytes = [], 0
    async for piece in request.stream():
        n_bytes += len(piece)
        if n_bytes > max_bytes:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the JSON body is longer than the limit of {max_bytes} bytes",
            )
        pieces.append(piece)
    return parse_json(b"".join(pieces), model)


def max_embeddings_bytes(n_features: int | None, n_embeddings: int = 1) -> int:
    """Return the maximum length of a JSON body with so many embeddings.

    Before the first example the length of an embedding is not known: one of any length may come.

    >>> max_embeddings_bytes(1280, 32)
    1703936
    """
    n_numbers = MAX_FEATURES if n_features is None else n_embeddings * n_features
    return MAX_NAMES_BYTES + n_numbers * _BYTES_PER_NUMBER


def parse_json(body: bytes, model: type[Body]) -> Body:
    """Parse and validate a JSON body."""
    if sum(body.count(sign) for sign in _STRUCTURE) > _MAX_STRUCTURE:
        raise invalid_request("the body has too many lists, objects and members")
    try:
        value = from_json(body)
    except ValueError as error:
        raise invalid_request(f"the body is not JSON: {error}") from None
    if isinstance(value, dict):
        # Checked before validation, which would describe each of thousands of unknown members.
        unknown = [name for name in value if name not in model.model_fields]
        if unknown:
            raise invalid_request("; ".join(f"{name[:100]}: unknown" for name in unknown[:3]))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise invalid_request(describe_validation_errors(found)) from None


def clears_fine(sent: RelabelBody) -> bool:
    """Whether a correction removes finer classes: null does, leaving the member out does not."""
    return "fine" in sent.model_fields_set and sent.fine is None


def identify(
    request: Request, key: str | None, *arguments: Any, content: bytes = b""
) -> records.Request:
    """Return the actor and the key of a change, with a digest that repetitions must match."""
    if len(request.headers.getlist(_KEY_HEADER)) > 1:
        raise invalid_request(f"{_KEY_HEADER}: send only one")
    actor: Actor = request.scope["actor"]
    if key is None:
        return records.Request(actor.name)
    digest = hashlib.sha256(json.dumps([request.method, request.url.path, *arguments]).encode())
    digest.update(content)
    return records.Request(actor.name, key, digest.hexdigest())


async def apply_change(request: Request, change: Callable[[Workspace], records.Change]) -> Response:
    """Make a change in the writer thread and respond with its result."""
    service = service_of(request)
    workspace = service.workspace
    done = await asyncio.wrap_future(service.writer.change(lambda: change(workspace)))
    return json_response(done)
