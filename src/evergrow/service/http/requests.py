"""What routes read from a request: JSON body or form, query parameters, actor and key."""

from __future__ import annotations

import asyncio
import hashlib
import json
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from fastapi import Header, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import MAX_FEATURES, RequestBody
from evergrow.service.http.fairness import Actor
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
Result = TypeVar("Result")

MAX_PAGE_SIZE = 500
# Enough for the names and ids of any change, however they are escaped and indented.
MAX_NAMES_BYTES = 64 * 1024
# A number has at most 24 characters; the rest is for separators and white space.
_BYTES_PER_NUMBER = 40
# Limit on lists, objects and members of a body; no request needs half of it. They cost a hundred
# times as much time and memory as their bytes.
_STRUCTURE = b"[{:"
_MAX_STRUCTURE = 4096
# Label Studio sends tasks with all their annotations and earlier predictions.
_MAX_FOREIGN_STRUCTURE = 500_000

# Visible ASCII: what every program can put into a header.
_KEY_PATTERN = r"^[!-~]{1,255}$"
# Cursors are numbers in base64. Clients treat them as opaque; the pattern is for tests that
# generate any cursor that could exist.
_TRIPLE = "(?:[MN][DTjz]|O[DT])[AEIMQUYcgk][w-z0-5]"
_REST = "(?:[MN][AQgw]|O[AQ])|(?:[MN][DTjz]|O[DT])[AEIMQUYcgk]"
_CURSOR_PATTERN = f"^(?!MD)(?:{_REST}|(?:{_TRIPLE}){{1,5}}(?:{_REST})?|(?:{_TRIPLE}){{6}})$"

_KEY_HEADER: Final = "Idempotency-Key"
_ACTION_HEADER: Final = "Evergrow-Action"


class _ChangeHeaders(BaseModel):
    """Headers of a request that makes a change."""

    key: str | None = Field(
        None,
        alias=_KEY_HEADER,
        pattern=_KEY_PATTERN,
        description="Identifies this change. Sent again with the same key, it is made only once.",
    )
    action: str | None = Field(
        None,
        alias=_ACTION_HEADER,
        pattern="^[A-Za-z0-9_-]{1,64}$",
        description="Identifies what the user did. Consecutive changes with the same token and"
        " action are undone together.",
    )


ChangeHeaders = Annotated[_ChangeHeaders, Header()]


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
        description="Cursor of the page: the value of next on the previous page.",
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

    Parsing blocks other requests, so ``max_bytes`` should be as low as the model allows. Long
    bodies are parsed in threads that tokens share fairly, so that many of them do not add up.
    """
    body = await _read_json_bytes(request, max_bytes)
    if len(body) <= MAX_NAMES_BYTES:
        return parse_json(body, model)
    actor: Actor = request.scope["actor"]
    return await service_of(request).read(actor, lambda: parse_json(body, model))


async def read_foreign_json(request: Request, parse: Callable[[Any], Result]) -> Result:
    """Read a JSON body whose form another program decides; ``parse`` reads what it needs of it.

    Both are done in threads that tokens share fairly: such bodies are long.
    """
    service = service_of(request)
    body = await _read_json_bytes(request, service.settings.max_request_bytes)
    actor: Actor = request.scope["actor"]
    return await service.read(actor, lambda: parse(_load_json(body, _MAX_FOREIGN_STRUCTURE)))


async def _read_json_bytes(request: Request, max_bytes: int) -> bytes:
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
    return b"".join(pieces)


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
    value = _load_json(body, _MAX_STRUCTURE)
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


def _load_json(body: bytes, max_structure: int) -> Any:
    if sum(body.count(sign) for sign in _STRUCTURE) > max_structure:
        raise invalid_request("the body has too many lists, objects and members")
    try:
        return from_json(body)
    except ValueError as error:
        raise invalid_request(f"the body is not JSON: {error}") from None


def make_change_request(
    request: Request, headers: _ChangeHeaders, *arguments: Any, content: bytes = b""
) -> records.Request:
    """Return the actor and the key of a change, with a digest that repetitions must match."""
    for name in (_KEY_HEADER, _ACTION_HEADER):
        if len(request.headers.getlist(name)) > 1:
            raise invalid_request(f"{name}: send only one")
    actor: Actor = request.scope["actor"]
    if headers.key is None:
        return records.Request(actor.name, action=headers.action)
    digest = hashlib.sha256(json.dumps([request.method, request.url.path, *arguments]).encode())
    digest.update(content)
    return records.Request(actor.name, headers.key, digest.hexdigest(), headers.action)


async def apply_change(request: Request, change: Callable[[Workspace], records.Change]) -> Response:
    """Make a change in the writer thread and respond with its result."""
    service = service_of(request)
    workspace = service.workspace
    done = await asyncio.wrap_future(service.writer.change(lambda: change(workspace)))
    return json_response(done)


FORM_TYPE = "multipart/form-data"
_MAX_BOUNDARY = 200
_MAX_HEADER_BYTES = 4096
# Bytes that show whether a part is the name of a file: images have others among their first ones.
_MAX_NAME = 16

# The name and the content of one field.
Part = tuple[str, bytes]


@dataclass(frozen=True)
class TeachForm:
    """An image to teach, with its names."""

    image: bytes
    label: str
    fine: str | None
    move: bool


async def read_teach_form(request: Request) -> TeachForm:
    """Return the image of a form, its names, and whether it may move from another class."""
    parts = await _read_parts(request, len(fields(TeachForm)))
    found = dict(parts)
    if len(found) < len(parts) or not found.keys() <= {one.name for one in fields(TeachForm)}:
        raise invalid_request(
            "the form must have the parts image and label, and optionally fine and move"
        )
    for name in ("image", "label"):
        if name not in found:
            raise invalid_request(f"the part {name} is missing")
    text = {name: _decode_text(value, name) for name, value in found.items() if name != "image"}
    if text.get("move", "false") not in ("true", "false"):
        raise invalid_request("the part move must be true or false")
    move = text.get("move") == "true"
    return TeachForm(found["image"], text["label"], text.get("fine"), move)


async def read_image_form(request: Request) -> list[bytes]:
    """Return the images of a form, in their order."""
    max_images = service_of(request).settings.max_images
    parts = await _read_parts(request, max_images)
    if not parts or any(name != "image" for name, _ in parts):
        raise invalid_request(
            f"the form must have 1 to {max_images} parts named image, and no others"
        )
    return [content for _, content in parts]


async def _read_parts(request: Request, max_parts: int) -> list[Part]:
    body = await request.body()
    return parse_form(body, request.headers["content-type"], max_parts=max_parts)


def _decode_text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise invalid_request(f"the part {name} must be text in UTF-8") from None


def parse_form(body: bytes, content_type: str, *, max_parts: int) -> list[Part]:
    """Return the parts of a form in their order; raise a ``ProblemError`` if it is not valid."""
    from python_multipart import MultipartParser
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise invalid_request("the Content-Type has no valid boundary")
    collector = _PartCollector(max_parts)
    names = [name for name in dir(collector) if name.startswith("on_")]
    parser = MultipartParser(boundary, {name: getattr(collector, name) for name in names})  # type: ignore[arg-type]
    try:
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise invalid_request(f"the form cannot be parsed: {error}") from error
    if not collector.ended:
        raise invalid_request("the form is truncated: its last boundary is missing")
    return collector.parts


def _is_text(content: bytes) -> bool:
    try:
        # A character may be cut off at the end.
        start = getincrementaldecoder("utf-8")().decode(content[:_MAX_NAME])
    except UnicodeDecodeError:
        return False
    return bool(start) and start.isprintable()


class _PartCollector:
    """Callbacks of the parser, which collect the parts as slices of the body."""

    def __init__(self, max_parts: int) -> None:
        self.parts: list[Part] = []
        self.ended = False
        self._max_parts = max_parts
        self._n_header_bytes = 0
        self._name: list[bytes] = []
        self._value: list[bytes] = []
        self._disposition = b""
        self._data: list[bytes] = []

    def on_part_begin(self) -> None:
        if len(self.parts) == self._max_parts:
            raise invalid_request(f"the form has more than {self._max_parts} parts")
        self._n_header_bytes, self._disposition = 0, b""
        self._data = []

    def on_header_begin(self) -> None:
        self._name, self._value = [], []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name.append(self._count_header(data[start:end]))

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value.append(self._count_header(data[start:end]))

    def on_header_end(self) -> None:
        if b"".join(self._name).lower() == b"content-disposition":
            self._disposition = b"".join(self._value)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        from python_multipart.multipart import parse_options_header

        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise invalid_request("a part of the form has no name")
        try:
            name = options[b"name"].decode()
        except UnicodeDecodeError:
            raise invalid_request("the name of a part is not UTF-8") from None
        content = self._data[0] if len(self._data) == 1 else b"".join(self._data)
        if name == "image" and b"filename" not in options and _is_text(content):
            raise invalid_request(
                "the part image is text, not a file; send the file, with curl: -F image=@what.jpg"
            )
        self.parts.append((name, content))

    def on_end(self) -> None:
        self.ended = True

    def _count_header(self, data: bytes) -> bytes:
        self._n_header_bytes += len(data)
        if self._n_header_bytes > _MAX_HEADER_BYTES:
            raise invalid_request("the headers of a part are too long")
        return data
