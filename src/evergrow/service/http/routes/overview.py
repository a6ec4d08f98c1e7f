"""Looking at the whole: classes, how well they are known, what was changed, the model itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from evergrow.service.http.access import Actor
from evergrow.service.http.asking import NoQuery, service_of
from evergrow.service.http.bodies import ClassPage, ConfusionBody, EventPage, ReviewList, StatusBody
from evergrow.service.http.confusing import confusion_of
from evergrow.service.http.exports import Export, Exports
from evergrow.service.http.listings import json_response, listed
from evergrow.service.http.openapi import refusals, with_tag
from evergrow.service.http.paging import Limited, Listing
from evergrow.workspace.workspace import Workspace

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["looking"])

_MODEL_TYPE = "application/octet-stream"


def _state(workspace: Workspace) -> Callable[[], object]:
    """What listings that tell of accuracy depend on."""

    def state() -> object:
        assessment = workspace.assessment
        return workspace.version, None if assessment is None else assessment.event

    return state


@router.get("/classes", response_model=ClassPage, responses=with_tag(refusals()))
async def classes(request: Request, asked: Annotated[Listing, Query()]) -> Response:
    """Classes in the order in which they were first taught, and how well each is known."""
    service = service_of(request)
    workspace = service.workspace

    def make() -> ClassPage:
        return ClassPage.model_validate(workspace.classes(after=asked.after, limit=asked.limit))

    return await listed(request, service.read, _state(workspace), make)


@router.get("/review", response_model=ReviewList, responses=with_tag(refusals()))
async def review(request: Request, asked: Annotated[Limited, Query()]) -> Response:
    """Examples that someone should look at, most urgent first."""
    service = service_of(request)
    workspace = service.workspace

    def make() -> ReviewList:
        return ReviewList.model_validate({"items": workspace.review(asked.limit)})

    return await listed(request, service.read, _state(workspace), make)


@router.get("/events", response_model=EventPage, responses=with_tag(refusals()))
async def events(request: Request, asked: Annotated[Listing, Query()]) -> Response:
    """All changes, the newest first: who changed what, and when."""
    service = service_of(request)
    workspace = service.workspace

    def make() -> EventPage:
        return EventPage.model_validate(workspace.events(after=asked.after, limit=asked.limit))

    return await listed(request, service.read, lambda: workspace.version, make)


@router.get("/confusion", response_model=ConfusionBody, responses=with_tag(refusals()))
async def confusion(request: Request, asked: Annotated[Limited, Query()]) -> Response:
    """How often examples of each class were taken for another, by what was learnt of the others.

    Of many classes those with the most mistakes are shown.
    """
    service = service_of(request)
    workspace = service.workspace
    return await listed(
        request, service.read, _state(workspace), lambda: confusion_of(workspace, asked.limit)
    )


@router.get("/status", response_model=StatusBody, responses=refusals())
async def status(request: Request, _: NoQuery) -> Response:
    """The workspace at a glance, and what this token and one request may do."""
    service = service_of(request)
    workspace = service.workspace
    found = await service.read(workspace.status)
    actor: Actor = request.scope["actor"]
    body = StatusBody.model_validate(
        {
            **vars(found),
            "scopes": sorted(actor.scopes),
            "max_request_bytes": service.settings.max_request_bytes,
            "max_images": service.settings.max_images,
        }
    )
    return json_response(body)


@router.get(
    "/model",
    response_class=Response,
    responses={
        **refusals(409, 507),
        200: {"content": {_MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
    },
)
async def model(request: Request, _: NoQuery) -> Response:
    """The model as a file that ``evergrow.load`` reads."""
    exports = service_of(request).exports
    return _ModelResponse(exports, await exports.take())


class _ModelResponse(StreamingResponse):
    """Gives the file back however the transfer ends, and if it never begins."""

    def __init__(self, exports: Exports, export: Export) -> None:
        headers = {
            "Content-Length": str(export.n_bytes),
            "Content-Disposition": 'attachment; filename="model.evergrow"',
        }
        super().__init__(exports.pieces(export), media_type=_MODEL_TYPE, headers=headers)
        self._release = partial(exports.release, export)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
