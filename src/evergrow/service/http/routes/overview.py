"""Routes that read the workspace as a whole: classes, review, events, status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import Name, RequestBody
from evergrow.service.http.fairness import Actor
from evergrow.service.http.openapi import refusals, with_etag
from evergrow.service.http.requests import (
    LimitQuery,
    NoQuery,
    PageQuery,
    service_of,
)
from evergrow.service.http.responses import cached_response, json_response
from evergrow.service.wire import ClassPage, Confusion, EventPage, ExampleList, ReviewList, Status
from evergrow.vision.classifier.confusion import most_confused
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1", tags=["overview"])


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
    """List examples that a person should check, the most urgent first."""
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
    """Return the confusion matrix, in which each example is predicted by a model of the others.

    If there are many classes, those of the most frequent mistakes are returned.
    """
    service = service_of(request)
    workspace = service.workspace
    return await cached_response(
        request, _state(workspace), lambda: _confusion(workspace, query.limit)
    )


def _confusion(workspace: Workspace, max_classes: int) -> Confusion:
    # Read once: a new assessment may be adopted at any time.
    assessment, snapshot = workspace.assessment, workspace.snapshot
    if assessment is None:
        return Confusion(classes=(), counts=(), unknown=None, n_classes=0, event=None)
    # Classes may have been removed since.
    current = set(snapshot.class_ids.tolist())
    cells = [cell for cell in assessment.confusion if current.issuperset(cell[:2])]
    measured = sorted({number for cell in cells for number in cell[:2]})
    shown = _shown_classes(cells, measured, max_classes)
    places = {number: place for place, number in enumerate(shown)}
    counts = [[0] * len(shown) for _ in shown]
    for true, predicted, n in cells:
        if true in places and predicted in places:
            counts[places[true]][places[predicted]] += n
    unknown = assessment.unknown
    return Confusion(
        classes=tuple(snapshot.names[number] for number in shown),
        counts=tuple(tuple(row) for row in counts),
        unknown=None if unknown is None else tuple(unknown.get(number, 0) for number in shown),
        n_classes=len(measured),
        event=assessment.event,
    )


def _shown_classes(
    cells: list[tuple[int, int, int]], measured: list[int], max_classes: int
) -> list[int]:
    """All classes if they fit, else those of the most frequent mistakes."""
    chosen = most_confused(cells, max_classes)
    if len(measured) <= max_classes or not chosen:
        return measured[:max_classes]
    return sorted(chosen)


class _CellQuery(RequestBody):
    label: Name = Field(description="The class of the examples.")
    predicted: Name | None = Field(
        None, description="The predicted class. Left out for those answered as unknown."
    )


@router.get("/confusion/examples", response_model=ExampleList, responses=with_etag(refusals()))
async def confused_examples(request: Request, query: Annotated[_CellQuery, Query()]) -> Response:
    """List up to 100 examples of one cell of the confusion matrix."""
    workspace = service_of(request).workspace
    return await cached_response(
        request,
        _state(workspace),
        lambda: ExampleList(tuple(workspace.confused_examples(query.label, query.predicted))),
    )


@router.get("/status", response_model=Status, responses=refusals())
async def status(request: Request, _: NoQuery) -> Response:
    """Return the state of the workspace, the scopes of the token, and the limits of a request."""
    service = service_of(request)
    workspace = service.workspace
    found = await service.read(request.scope["actor"], workspace.status)
    actor: Actor = request.scope["actor"]
    return json_response(
        {
            **vars(found),
            "scopes": sorted(actor.scopes),
            "max_request_bytes": service.settings.max_request_bytes,
            "max_images": service.settings.max_images,
        }
    )
