"""Answers that clients may keep until something changes."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.requests import Request

__all__ = ["JSON_TYPE", "is_known", "json_response", "listing_tag", "not_modified"]

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


def listing_tag(request: Request, *state: object) -> dict[str, str]:
    """Headers that name what a listing shows: the query and the state it was read at.

    The state must be read before the listing: a change between the two then gives a new listing an
    old name, which is asked for once more, and never an old listing a new one.
    """
    facts = repr((request.url.path, sorted(request.query_params.multi_items()), *state))
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
