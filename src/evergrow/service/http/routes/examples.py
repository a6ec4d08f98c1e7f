"""Routes of examples: teach, list, read, correct and remove them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service import wire
from evergrow.service.http.bodies import LARGEST_NUMBER, Name, RelabelBody, TeachBody
from evergrow.service.http.images import ImagePipeline
from evergrow.service.http.openapi import (
    IMAGE_TYPES,
    form_schema,
    refusals,
    request_body,
    with_etag,
)
from evergrow.service.http.requests import (
    FORM_TYPE,
    Key,
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
)
from evergrow.service.http.service import Service
from evergrow.workspace import records
from evergrow.workspace.names import NAME_PATTERN, normalise_name
from evergrow.workspace.records import ConflictError, Example, NewExample, TeachResult
from evergrow.workspace.records import Request as ChangeRequest
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1/examples", tags=["examples"])

Id = Annotated[int, Path(ge=1, le=LARGEST_NUMBER, description="Id of an example.")]

_NAME = {"type": "string", "pattern": NAME_PATTERN}
_FORM = form_schema(
    {"image": {"type": "string", "format": "binary"}, "label": _NAME, "fine": _NAME},
    ["image", "label"],
)
_DUPLICATE: dict[int | str, Any] = {
    200: {
        "description": "The class already has this picture, which is not learnt twice. The example"
        " takes the fine class that was sent, if it had none.",
        "model": wire.TeachResult,
    }
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CHANGE = refusals(404, 409, 507, body=True)
# The content of an id never changes; private, because it needs a token.
_CACHE_ONE_HOUR = "private, max-age=3600"


@router.post(
    "",
    status_code=201,
    response_model=wire.TeachResult,
    responses={**refusals(409, 507, body=True), **_DUPLICATE},
    openapi_extra=request_body(TeachBody, **_FORM),
)
async def teach(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Teach one example; it is stored on disk when the response is sent."""
    service = service_of(request)
    # Checked before the body is read: a client that must retry need not send all of it.
    service.writer.check_open()
    kind = content_type_of(request)
    if kind == JSON_TYPE:
        result = await _teach_embedding(request, service, key)
    elif kind == FORM_TYPE and service.images is not None:
        result = await _teach_image(request, service, service.images, key)
    else:
        allowed = (JSON_TYPE,) if service.images is None else (FORM_TYPE, JSON_TYPE)
        raise wrong_content_type(request, *allowed)
    if not (result.duplicate or result.replayed):
        service.metrics.taught.inc()
    status = HTTPStatus.OK if result.duplicate else HTTPStatus.CREATED
    headers = {"Location": f"/v1/examples/{result.example.id}"}
    return json_response(_to_wire(result), status, headers)


async def _teach_embedding(request: Request, service: Service, key: str | None) -> TeachResult:
    max_bytes = max_embeddings_bytes(service.workspace.n_features)
    sent = await read_json(request, TeachBody, max_bytes)
    embedding = np.asarray(sent.embedding, dtype=np.float32)
    label, fine = _normalise_names(sent.label, sent.fine)
    change_request = make_change_request(request, key, label, fine, content=embedding.tobytes())
    example = NewExample(embedding, label, fine, request=change_request)
    return await asyncio.wrap_future(service.writer.teach(example))


async def _teach_image(
    request: Request, service: Service, images: ImagePipeline, key: str | None
) -> TeachResult:
    content, sent_label, sent_fine = await read_teach_form(request)
    label, fine = _normalise_names(sent_label, sent_fine)
    change_request = make_change_request(
        request, key, label, fine, hashlib.sha256(content).hexdigest()
    )
    earlier = await _find_earlier_result(service, change_request)
    if earlier is not None:
        return earlier
    embedding, picture = await images.embed_example(request, content)
    example = NewExample(embedding, label, fine, picture=picture, request=change_request)
    return await asyncio.wrap_future(service.writer.teach(example))


async def _find_earlier_result(
    service: Service, change_request: ChangeRequest
) -> TeachResult | None:
    """Return the result of an earlier request with this key: its image need not be decoded."""
    if change_request.key is None:
        return None
    workspace = service.workspace
    found = await service.read(lambda: workspace.stored_answer(change_request))
    return found if isinstance(found, TeachResult) else None


def _normalise_names(label: str, fine: str | None) -> tuple[str, str | None]:
    return normalise_name(label), None if fine is None else normalise_name(fine, "fine")


def _to_wire(result: TeachResult) -> wire.TeachResult:
    return wire.TeachResult(
        example=result.example,
        event=result.event,
        duplicate=result.duplicate,
        of_class=wire.TaughtClass(result.example.label, result.n_examples, result.new_class),
        known_fine=result.known_fine,
    )


class _FilterQuery(PageQuery):
    label: Name | None = Field(None, description="Only examples of this class.")
    fine: Name | None = Field(None, description="Only examples of this fine class of the class.")
    guessed: bool | None = Field(
        None, description="Only examples whose fine class is, or is not, a guess."
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
async def relabel(request: Request, example: Id, _: NoQuery, key: Key = None) -> Response:
    """Correct the class of an example, or confirm its class or its guessed fine class."""
    sent = await read_json(request, RelabelBody)
    label, fine, clear_fine = sent.arguments
    change_request = make_change_request(request, key, label, fine, clear_fine)
    return await apply_change(
        request,
        lambda workspace: workspace.relabel(
            example, label=label, fine=fine, clear_fine=clear_fine, request=change_request
        ),
    )


@router.delete("/{example}", response_model=records.Change, responses=refusals(404, 409, 507))
async def remove(request: Request, example: Id, _: NoQuery, key: Key = None) -> Response:
    """Remove one example; this can be undone."""
    change_request = make_change_request(request, key)
    return await apply_change(
        request, lambda workspace: workspace.remove(example, request=change_request)
    )


@router.get(
    "/{example}/thumbnail",
    response_class=Response,
    responses=with_etag({**refusals(404, 409), 200: {"content": {"image/jpeg": _BINARY}}}),
)
async def thumbnail(request: Request, example: Id, _: NoQuery) -> Response:
    """Return the thumbnail of an example."""

    def respond(workspace: Workspace, _: Example, headers: dict[str, str]) -> Response:
        return Response(workspace.thumbnail(example), media_type="image/jpeg", headers=headers)

    return await _image_response(request, example, respond)


@router.get(
    "/{example}/image",
    response_class=Response,
    responses=with_etag(
        {**refusals(404, 409), 200: {"content": dict.fromkeys(IMAGE_TYPES, _BINARY)}}
    ),
)
async def image(request: Request, example: Id, _: NoQuery) -> Response:
    """Return the image of an example as it was sent."""

    def respond(workspace: Workspace, found: Example, headers: dict[str, str]) -> Response:
        # In a browser tab of its own the image may load nothing and run nothing.
        headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return Response(workspace.picture(example), media_type=found.media_type, headers=headers)

    return await _image_response(request, example, respond)


async def _image_response(
    request: Request,
    number: int,
    respond: Callable[[Workspace, Example, dict[str, str]], Response],
) -> Response:
    service = service_of(request)
    workspace = service.workspace

    def read() -> Response:
        found = workspace.example(number)
        if found.image is None:
            raise ConflictError(f"example {number} was taught as an embedding and has no image")
        headers = {**etag_headers(request, found.image), "Cache-Control": _CACHE_ONE_HOUR}
        if client_has_etag(request, headers):
            return not_modified(headers)
        return respond(workspace, found, headers)

    return await service.read(read)
