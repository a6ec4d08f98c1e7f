"""Routes of examples: teach, list, read, correct and remove them."""

from __future__ import annotations

import asyncio
import hashlib
from http import HTTPStatus
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service import wire
from evergrow.service.http.bodies import LARGEST_NUMBER, Name, RelabelBody, TeachBody
from evergrow.service.http.fairness import Actor
from evergrow.service.http.images import ImagePipeline
from evergrow.service.http.openapi import (
    form_schema,
    refusals,
    request_body,
    with_etag,
)
from evergrow.service.http.requests import (
    FORM_TYPE,
    ChangeHeaders,
    NoQuery,
    PageQuery,
    apply_change,
    content_type_of,
    make_change_request,
    max_embeddings_bytes,
    read_json,
    read_teach_form,
    service_of,
    wrong_content_type,
)
from evergrow.service.http.responses import (
    JSON_TYPE,
    cached_response,
    client_has_etag,
    etag_headers,
    json_response,
    not_modified,
    problem,
)
from evergrow.service.http.service import Service
from evergrow.vision.images.decoder import MEDIA_TYPES
from evergrow.workspace import records
from evergrow.workspace.names import NAME_PATTERN, normalise_name
from evergrow.workspace.records import ConflictError, Example, NewExample, TeachResult
from evergrow.workspace.records import Request as ChangeRequest
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1/examples", tags=["examples"])

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="Id of an example.")]

_NAME = {"type": "string", "pattern": NAME_PATTERN}
_FORM = form_schema(
    {
        "image": {"type": "string", "format": "binary", "description": "The image file."},
        "label": {**_NAME, "description": "The class, known or new."},
        "fine": {**_NAME, "description": "The fine class within the class."},
        "move": {
            "type": "boolean",
            "description": "Whether a picture of another class moves to this class; otherwise it is"
            " refused with 409.",
        },
    },
    ["image", "label"],
)
_DUPLICATE: dict[int | str, Any] = {
    200: {
        "description": "The class already has this picture, which is not learnt twice; the example"
        " takes the fine class that was sent, if it had none. Or the picture was moved from another"
        " class.",
        "model": wire.TeachResult,
    }
}
_KNOWN_ELSEWHERE: dict[int | str, Any] = {
    409: {
        **refusals(409)[409],
        "description": "The request conflicts with the current state of the workspace. If another"
        " class has the picture, the members example and label say which; sent with move, the"
        " picture moves to the new class.",
    }
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CHANGE = refusals(404, 409, 507, body=True)
# The content of an id never changes; private, because it needs a token.
_CACHE_ONE_HOUR = "private, max-age=3600"
_THUMBNAIL_TYPE = "image/jpeg"


@router.post(
    "",
    status_code=201,
    response_model=wire.TeachResult,
    responses={**refusals(409, 507, body=True), **_DUPLICATE, **_KNOWN_ELSEWHERE},
    openapi_extra=request_body(TeachBody, **_FORM),
)
async def teach(request: Request, _: NoQuery, headers: ChangeHeaders) -> Response:
    """Teach one example; it is stored on disk when the response is sent."""
    service = service_of(request)
    # Checked before the body is read: a client that must retry need not send all of it.
    service.writer.check_open()
    if service.images is not None:
        service.images.expect(request.scope["actor"])
    kind = content_type_of(request)
    if kind == JSON_TYPE:
        result = await _teach_embedding(request, service, headers)
    elif kind == FORM_TYPE and service.images is not None:
        result = await _teach_image(request, service, service.images, headers)
    else:
        allowed = (JSON_TYPE,) if service.images is None else (FORM_TYPE, JSON_TYPE)
        raise wrong_content_type(request, *allowed)
    if result.known_as is not None:
        return _known_elsewhere(result.example)
    if not (result.duplicate or result.replayed or result.moved_from):
        service.metrics.taught.inc()
    is_new = not (result.duplicate or result.moved_from)
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    location = {"Location": f"/v1/examples/{result.example.id}"}
    return json_response(_to_wire(result), status, location)


async def _teach_embedding(
    request: Request, service: Service, headers: ChangeHeaders
) -> TeachResult:
    max_bytes = max_embeddings_bytes(service.workspace.n_features)
    sent = await read_json(request, TeachBody, max_bytes)
    embedding = np.asarray(sent.embedding, dtype=np.float32)
    label, fine = _normalise_names(sent.label, sent.fine)
    change_request = make_change_request(request, headers, label, fine, content=embedding.tobytes())
    example = NewExample(embedding, label, fine, request=change_request)
    return await asyncio.wrap_future(service.writer.teach(example))


async def _teach_image(
    request: Request, service: Service, images: ImagePipeline, headers: ChangeHeaders
) -> TeachResult:
    await images.check_open(request.scope["actor"])
    sent = await read_teach_form(request)
    label, fine = _normalise_names(sent.label, sent.fine)
    facts = (label, fine, hashlib.sha256(sent.image).hexdigest(), *(["move"] if sent.move else []))
    change_request = make_change_request(request, headers, *facts)
    earlier = await _find_earlier_result(service, request.scope["actor"], change_request)
    if earlier is not None:
        return earlier
    embedding, picture = await images.embed_example(request, sent.image)
    example = NewExample(embedding, label, fine, picture, change_request, sent.move)
    return await asyncio.wrap_future(service.writer.teach(example))


async def _find_earlier_result(
    service: Service, actor: Actor, change_request: ChangeRequest
) -> TeachResult | None:
    """Return the result of an earlier request with this key: its image need not be decoded."""
    if change_request.key is None:
        return None
    workspace = service.workspace
    found = await service.read(actor, lambda: workspace.stored_answer(change_request))
    return found if isinstance(found, TeachResult) else None


def _normalise_names(label: str, fine: str | None) -> tuple[str, str | None]:
    return normalise_name(label), None if fine is None else normalise_name(fine, "fine")


def _known_elsewhere(example: Example) -> Response:
    """Refuse an image that another class has; the members name the example and its class."""
    return problem(
        HTTPStatus.CONFLICT,
        f"this picture is already taught as {example.label!r} (example {example.id}): send it with "
        "move=true to move it to the new class",
        members={"example": example.id, "label": example.label},
    )


def _to_wire(result: TeachResult) -> wire.TeachResult:
    return wire.TeachResult(
        example=result.example,
        event=result.event,
        duplicate=result.duplicate,
        of_class=wire.TaughtClass(result.example.label, result.n_examples, result.new_class),
        known_fine=result.known_fine,
        moved_from=result.moved_from,
    )


class _FilterQuery(PageQuery):
    label: Name | None = Field(None, description="Only examples of this class.")
    fine: Name | None = Field(None, description="Only examples of this fine class.")
    guessed: bool | None = Field(
        None, description="Only examples whose fine class is (true) or is not (false) a guess."
    )


@router.get("", response_model=wire.ExamplePage, responses=with_etag(refusals(404)))
async def examples(request: Request, query: Annotated[_FilterQuery, Query()]) -> Response:
    """List examples in the order in which they were taught."""
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request,
        lambda: workspace.version,
        lambda: workspace.examples(**query.model_dump()),
    )


@router.get("/{example}", response_model=records.Example, responses=with_etag(refusals(404)))
async def example(request: Request, example: Id, _: NoQuery) -> Response:
    """Return one example."""
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request,
        lambda: workspace.version,
        lambda: workspace.example(example),
    )


@router.patch(
    "/{example}",
    response_model=records.Change,
    responses=_CHANGE,
    openapi_extra=request_body(RelabelBody),
)
async def relabel(request: Request, example: Id, _: NoQuery, headers: ChangeHeaders) -> Response:
    """Correct the class of an example, or confirm its class or its guessed fine class."""
    sent = await read_json(request, RelabelBody)
    label, fine, clear_fine = sent.arguments
    change_request = make_change_request(request, headers, label, fine, clear_fine)
    return await apply_change(
        request,
        lambda workspace: workspace.relabel(
            example, label=label, fine=fine, clear_fine=clear_fine, request=change_request
        ),
    )


@router.delete("/{example}", response_model=records.Change, responses=refusals(404, 409, 507))
async def remove(request: Request, example: Id, _: NoQuery, headers: ChangeHeaders) -> Response:
    """Remove one example; this can be undone."""
    change_request = make_change_request(request, headers)
    return await apply_change(
        request, lambda workspace: workspace.remove(example, request=change_request)
    )


@router.get(
    "/{example}/thumbnail",
    response_class=Response,
    responses=with_etag({**refusals(404, 409), 200: {"content": {_THUMBNAIL_TYPE: _BINARY}}}),
)
async def thumbnail(request: Request, example: Id, _: NoQuery) -> Response:
    """Return the thumbnail of an example."""
    service = service_of(request)
    workspace = service.workspace

    def read() -> Response | tuple[bytes, dict[str, str]]:
        headers = _image_headers(request, _with_image(workspace, example))
        if client_has_etag(request, headers):
            return not_modified(headers)
        stored = workspace.thumbnail(example)
        if stored is not None:
            return Response(stored, media_type=_THUMBNAIL_TYPE, headers=headers)
        return workspace.picture(example), headers

    found = await service.read(request.scope["actor"], read)
    if isinstance(found, Response):
        return found
    picture, headers = found
    if service.images is None:
        raise ConflictError(f"example {example} has no thumbnail, and no images are decoded here")
    content = await service.images.make_thumbnail(request, picture)
    await service.read(request.scope["actor"], lambda: workspace.write_thumbnail(example, content))
    return Response(content, media_type=_THUMBNAIL_TYPE, headers=headers)


@router.get(
    "/{example}/image",
    response_class=Response,
    responses=with_etag(
        {**refusals(404, 409), 200: {"content": dict.fromkeys(MEDIA_TYPES, _BINARY)}}
    ),
)
async def image(request: Request, example: Id, _: NoQuery) -> Response:
    """Return the image of an example as it was sent."""
    service = service_of(request)
    workspace = service.workspace

    def read() -> Response:
        found = _with_image(workspace, example)
        headers = _image_headers(request, found)
        if client_has_etag(request, headers):
            return not_modified(headers)
        # In a browser tab of its own the image may load nothing and run nothing.
        headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return Response(workspace.picture(example), media_type=found.media_type, headers=headers)

    return await service.read(request.scope["actor"], read)


def _with_image(workspace: Workspace, number: int) -> Example:
    found = workspace.example(number)
    if found.image is None:
        raise ConflictError(f"example {number} was taught as an embedding and has no image")
    return found


def _image_headers(request: Request, found: Example) -> dict[str, str]:
    return {**etag_headers(request, str(found.image)), "Cache-Control": _CACHE_ONE_HOUR}
