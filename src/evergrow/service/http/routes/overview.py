"""Routes that read the workspace as a whole: classes, review, events, status, model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from evergrow.service.http.exports import Export, Exports
from evergrow.service.http.middleware import Actor
from evergrow.service.http.openapi import refusals, with_etag
from evergrow.service.http.requests import LimitQuery, NoQuery, PageQuery, service_of
from evergrow.service.http.responses import cached_response, json_response
from evergrow.service.wire import ClassPage, Confusion, EventPage, ReviewList, Status
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1", tags=["overview"])

_MODEL_TYPE = "application/octet-stream"


def _state(workspace: Workspace) -> Callable[[], object]:
    """Everything that listings with accuracies depend on."""

    def state() -> object:
        assessment = workspace.assessment
        return workspace.version, None if assessment is None else assessment.event

    return state


@router.get("/classes", response_model=ClassPage, responses=with_etag(refusals()))
async def classes(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """List classes in the order of their first examples, and how well each is recognised."""
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request,
        _state(workspace),
        lambda: workspace.classes(after=query.after, limit=query.limit),
    )


@router.get("/review", response_model=ReviewList, responses=with_etag(refusals()))
async def review(request: Request, query: Annotated[LimitQuery, Query()]) -> Response:
    """List examples that a user should check, most urgent first."""
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request,
        _state(workspace),
        lambda: {"items": workspace.review(query.limit)},
    )


@router.get("/events", response_model=EventPage, responses=with_etag(refusals()))
async def events(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """List all changes with their actor and time, the newest first."""
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request,
        lambda: workspace.version,
        lambda: workspace.events(after=query.after, limit=query.limit),
    )


@router.get("/confusion", response_model=Confusion, responses=with_etag(refusals()))
async def confusion(request: Request, query: Annotated[LimitQuery, Query()]) -> Response:
    """Return the confusion matrix of predictions by a model of the other examples.

    If there are many classes, those with the most mistakes are returned.
    """
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request, _state(workspace), lambda: _confusion(workspace, query.limit)
    )


def _confusion(workspace: Workspace, max_classes: int) -> Confusion:
    assessment = workspace.assessment
    if assessment is None:
        return Confusion(classes=(), counts=(), n_classes=0, event=None)
    names = workspace.snapshot.names
    # Classes may have been removed since.
    cells = [cell for cell in assessment.confusion if cell[0] in names and cell[1] in names]
    shown = sorted(_most_mistaken(cells, max_classes))
    places = {number: place for place, number in enumerate(shown)}
    counts = [[0] * len(shown) for _ in shown]
    for true, predicted, n_times in cells:
        if true in places and predicted in places:
            counts[places[true]][places[predicted]] += n_times
    return Confusion(
        classes=tuple(names[number] for number in shown),
        counts=tuple(tuple(row) for row in counts),
        n_classes=len({number for cell in cells for number in cell[:2]}),
        event=assessment.event,
    )


def _most_mistaken(cells: list[tuple[int, int, int]], max_classes: int) -> list[int]:
    mistakes: Counter[int] = Counter()
    for true, predicted, n_times in cells:
        wrong = n_times if true != predicted else 0
        mistakes[true] += wrong
        mistakes[predicted] += wrong
    return [number for number, _ in mistakes.most_common(max_classes)]


@router.get("/status", response_model=Status, responses=refusals())
async def status(request: Request, _: NoQuery) -> Response:
    """Return the state of the workspace, the scopes of the token, and the limits of a request."""
    service = service_of(request)
    workspace = service.workspace
    found = await service.read(workspace.status)
    actor: Actor = request.scope["actor"]
    return json_response(
        {
            **vars(found),
            "scopes": sorted(actor.scopes),
            "max_request_bytes": service.settings.max_request_bytes,
            "max_images": service.settings.max_images,
        }
    )


@router.get(
    "/model",
    response_class=Response,
    responses={
        **refusals(409, 507),
        200: {"content": {_MODEL_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
    },
)
async def model(request: Request, _: NoQuery) -> Response:
    """Download the model as a file that ``evergrow.load`` reads."""
    exports = service_of(request).exports
    return _ModelResponse(exports, await exports.borrow())


class _ModelResponse(StreamingResponse):
    """A download that releases its file however the transfer ends, even if it never starts."""

    def __init__(self, exports: Exports, export: Export) -> None:
        headers = {
            "Content-Length": str(export.n_bytes),
            "Content-Disposition": 'attachment; filename="model.evergrow"',
        }
        super().__init__(exports.read_chunks(export), media_type=_MODEL_TYPE, headers=headers)
        self._release = partial(exports.release, export)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()
