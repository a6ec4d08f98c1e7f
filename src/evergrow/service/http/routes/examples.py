"""Examples: looking at them, mending what they are called, taking them away."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.asking import (
    Key,
    NoQuery,
    changed,
    clears_fine,
    json_body,
    service_of,
    signed,
)
from evergrow.service.http.bodies import (
    LARGEST_NUMBER,
    ChangeBody,
    ExampleBody,
    ExamplePage,
    Name,
    RelabelBody,
)
from evergrow.service.http.listings import is_known, listed, not_modified, tagged
from evergrow.service.http.openapi import IMAGE_TYPES, refusals, takes, with_tag
from evergrow.service.http.paging import Listing
from evergrow.workspace.errors import ConflictError
from evergrow.workspace.records import Example
from evergrow.workspace.workspace import Workspace

__all__ = ["router"]

router = APIRouter(prefix="/v1/examples", tags=["examples"])

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="Number of an example.")]

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_IMAGES = dict.fromkeys(IMAGE_TYPES, _BINARY)
_CHANGE = refusals(404, 409, 507, body=True)
# Content that is named by its hash; kept by one browser only, since it needs a token.
_KEPT = "private, max-age=3600"


def _with_image(workspace: Workspace, number: int) -> Example:
    found = workspace.example(number)
    if found.image is None:
        raise ConflictError(f"example {number} was taught as an embedding and has no image")
    return found


class _Filter(Listing):
    label: Name | None = Field(None, description="Only examples of this class.")
    fine: Name | None = Field(None, description="Only examples of this finer class of the class.")
    guessed: bool | None = Field(None, description="Only examples with, or without, a guess.")


@router.get("", response_model=ExamplePage, responses=with_tag(refusals(404)))
async def examples(request: Request, asked: Annotated[_Filter, Query()]) -> Response:
    """Examples in the order in which they were taught."""
    service = service_of(request)
    workspace = service.workspace

    def make() -> ExamplePage:
        found = workspace.examples(
            label=asked.label,
            fine=asked.fine,
            guessed=asked.guessed,
            after=asked.after,
            limit=asked.limit,
        )
        return ExamplePage.model_validate(found)

    return await listed(request, service.read, lambda: workspace.version, make)


@router.get("/{example}", response_model=ExampleBody, responses=with_tag(refusals(404)))
async def example(request: Request, example: Id, _: NoQuery) -> Response:
    """One example."""
    service = service_of(request)
    workspace = service.workspace
    return await listed(
        request,
        service.read,
        lambda: workspace.version,
        lambda: ExampleBody.model_validate(workspace.example(example)),
    )


@router.patch(
    "/{example}", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(RelabelBody)
)
async def relabel(request: Request, example: Id, _: NoQuery, key: Key = None) -> Response:
    """Say what an example really is, or that its guess or its label is right."""
    sent = await json_body(request, RelabelBody)
    clear = clears_fine(sent)
    who = signed(request, key, sent.label, sent.fine, clear)
    return await changed(
        request,
        lambda space: space.relabel(
            example, label=sent.label, fine=sent.fine, clear_fine=clear, request=who
        ),
    )


@router.delete("/{example}", response_model=ChangeBody, responses=refusals(404, 409, 507))
async def remove(request: Request, example: Id, _: NoQuery, key: Key = None) -> Response:
    """Take one example away; can be undone."""
    who = signed(request, key)
    return await changed(request, lambda space: space.remove(example, request=who))


@router.get(
    "/{example}/thumbnail",
    response_class=Response,
    responses=with_tag({**refusals(404, 409), 200: {"content": {"image/jpeg": _BINARY}}}),
)
async def thumbnail(request: Request, example: Id, _: NoQuery) -> Response:
    """A small picture of an example."""
    service = service_of(request)
    workspace = service.workspace

    def ask() -> Response:
        found = _with_image(workspace, example)
        headers = {**tagged(request, found.image), "Cache-Control": _KEPT}
        if is_known(request, headers):
            return not_modified(headers)
        content = workspace.thumbnail(example)
        return Response(content, media_type="image/jpeg", headers=headers)

    return await service.read(ask)


@router.get(
    "/{example}/image",
    response_class=Response,
    responses=with_tag(
        {**refusals(404, 409), 200: {"content": dict.fromkeys(IMAGE_TYPES, _BINARY)}}
    ),
)
async def image(request: Request, example: Id, _: NoQuery) -> Response:
    """The image of an example as it was sent."""
    service = service_of(request)
    workspace = service.workspace

    def ask() -> Response:
        found = _with_image(workspace, example)
        headers = {**tagged(request, found.image), "Cache-Control": _KEPT}
        if is_known(request, headers):
            return not_modified(headers)
        content = workspace.picture(example)
        # Opened in a tab of its own it may do nothing but be seen.
        headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return Response(content, media_type=found.media_type, headers=headers)

    return await service.read(ask)
