"""Routes that read the workspace as a whole: classes, review, events, status, model."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from evergrow.foundation.confusion import most_confused
from evergrow.service.http.bodies import Name, RequestBody
from evergrow.service.http.exports import Export, Exports
from evergrow.service.http.fairness import Actor
from evergrow.service.http.openapi import refusals, with_etag
from evergrow.service.http.requests import (
    MAX_PAGE_SIZE,
    LimitQuery,
    NoQuery,
    PageQuery,
    service_of,
)
from evergrow.service.http.responses import cached_response, json_response
from evergrow.service.wire import ClassPage, Confusion, EventPage, ExampleList, ReviewList, Status
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1", tags=["overview"])

_MODEL_TYPE = "application/octet-stream"
_CSV_TYPE = "text/csv"
_LABEL_COLUMNS = ("id", "label", "fine", "fine_kind", "image", "media_type", "at", "actor")


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
        None, description="The class that they were taken for; left out for something unknown."
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


@router.get(
    "/labels",
    response_class=Response,
    responses={
        **refusals(),
        200: {"content": {_CSV_TYPE: {"schema": {"type": "string"}}}},
    },
)
async def labels(request: Request, _: NoQuery) -> Response:
    """Download the labels of all examples as CSV; images are named by their SHA-256.

    Text that a spreadsheet would compute as a formula begins with a single quote.
    """
    headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
    return StreamingResponse(_label_lines(request), media_type=_CSV_TYPE, headers=headers)


async def _label_lines(request: Request) -> AsyncIterator[str]:
    service = service_of(request)
    workspace = service.workspace
    yield _csv([_LABEL_COLUMNS])
    after: str | None = None
    while True:
        read = partial(workspace.examples, after=after, limit=MAX_PAGE_SIZE)
        page = await service.read(request.scope["actor"], read)
        yield _csv([[getattr(one, name) for name in _LABEL_COLUMNS] for one in page.items])
        after = page.next
        if after is None:
            return


def _csv(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_without_formula(field) for field in row] for row in rows)
    return text.getvalue()


def _without_formula(field: object) -> object:
    """Quote a text that a spreadsheet would compute: other users choose names."""
    is_formula = isinstance(field, str) and field.startswith(("=", "+", "-", "@"))
    return f"'{field}" if is_formula else field


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
