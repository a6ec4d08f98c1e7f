"""Answers that clients may keep until something changes."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

from starlette.responses import Response

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.requests import Request

__all__ = ["JSON_TYPE", "is_known", "json_response", "listed", "not_modified", "tagged"]

Result = TypeVar("Result")


class Read(Protocol):
    """Calls something in a thread that may wait for the disk."""

    def __call__(self, ask: Callable[[], Result]) -> Awaitable[Result]:
        """Call it."""


JSON_TYPE = "application/json"
# Kept by the client for itself, and asked about every time.
_ASK_EVERY_TIME = "private, no-cache"


def json_response(
    body: BaseModel, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    """A model as it is, without another check of what was made here."""
    return Response(
        body.__pydantic_serializer__.to_json(body, by_alias=True),
        status_code=int(status),
        headers=headers,
        media_type=JSON_TYPE,
    )


async def listed(
    request: Request,
    read: Read,
    state: Callable[[], object],
    make: Callable[[], BaseModel],
) -> Response:
    """A listing with a tag, or word that the one the client has is still right.

    Tags end with the service: after a restart the same number of a change may stand for another
    one, of a workspace that was restored from a copy, and another version may word it otherwise.

    Parameters
    ----------
    request : Request
        Its path and query are part of the tag.
    read : callable
        Calls something in a thread that may wait for the disk.
    state : callable
        What the listing depends on. It is asked before the listing is made: a change between the
        two gives a new listing an old tag, which is then asked for once more, and never an old
        listing a new tag.
    make : callable
        Gives the listing.
    """

    def ask() -> Response:
        headers = tagged(request, (request.app.state.service.run, state()))
        if is_known(request, headers):
            return not_modified(headers)
        return json_response(make(), headers=headers)

    return await read(ask)


def tagged(request: Request, state: object) -> dict[str, str]:
    """Headers that name what is shown: what was asked for, and the state it was read at."""
    facts = repr((request.url.path, sorted(request.query_params.multi_items()), state))
    tag = hashlib.sha256(facts.encode()).hexdigest()[:32]
    return {"ETag": f'"{tag}"', "Cache-Control": _ASK_EVERY_TIME}


def is_known(request: Request, headers: dict[str, str]) -> bool:
    """Whether the client has this already."""
    asked = request.headers.get("if-none-match", "")
    tags = {tag.strip().removeprefix("W/") for tag in asked.split(",")}
    return headers["ETag"] in tags or "*" in tags


def not_modified(headers: dict[str, str]) -> Response:
    """Say that what the client has is right."""
    return Response(status_code=int(HTTPStatus.NOT_MODIFIED), headers=headers)
