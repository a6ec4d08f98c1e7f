"""Routes that change classes or several examples, and undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import (
    ExamplesBody,
    ForgetBody,
    LabelBody,
    MergeBody,
    RelabelManyBody,
    RenameBody,
    RequestBody,
    UndoBody,
)
from evergrow.service.http.openapi import refusals, request_body, with_etag
from evergrow.service.http.requests import (
    ChangeHeaders,
    NoQuery,
    apply_change,
    make_change_request,
    read_json,
    service_of,
)
from evergrow.service.http.responses import cached_response
from evergrow.workspace import records
from evergrow.workspace.records import Change
from evergrow.workspace.records import Request as ChangeRequest
from evergrow.workspace.workspace import Workspace

router = APIRouter(prefix="/v1", tags=["changes"])

# Makes a change of the workspace as the body of a request says.
_Make = Callable[[Workspace, Any, ChangeRequest], Change]


def _change_route(path: str, body: type[RequestBody]) -> Callable[[_Make], _Make]:
    """Add a route that reads a body and makes the change of the decorated function."""

    def add(make: _Make) -> _Make:
        async def route(request: Request, _: NoQuery, headers: ChangeHeaders) -> Response:
            sent = await read_json(request, body)
            change_request = make_change_request(request, headers, *sent.arguments)
            return await apply_change(
                request, lambda workspace: make(workspace, sent, change_request)
            )

        router.post(
            path,
            name=make.__name__,
            description=make.__doc__,
            response_model=records.Change,
            responses=refusals(404, 409, 507, body=True),
            openapi_extra=request_body(body),
        )(route)
        return make

    return add


@_change_route("/relabel", RelabelManyBody)
def relabel(workspace: Workspace, sent: RelabelManyBody, request: ChangeRequest) -> Change:
    """Correct the classes of several examples; one undo takes all of them back."""
    examples, label, fine, clear_fine = sent.arguments
    return workspace.relabel(
        examples, label=label, fine=fine, clear_fine=clear_fine, request=request
    )


@_change_route("/remove", ExamplesBody)
def remove(workspace: Workspace, sent: ExamplesBody, request: ChangeRequest) -> Change:
    """Remove several examples; one undo brings all of them back."""
    return workspace.remove(sent.examples, request=request)


@_change_route("/forget", ForgetBody)
def forget(workspace: Workspace, sent: ForgetBody, request: ChangeRequest) -> Change:
    """Remove a class with all its examples; this can be undone unless it is erased."""
    return workspace.forget(sent.label, erase=sent.erase, request=request)


@_change_route("/rename", RenameBody)
def rename(workspace: Workspace, sent: RenameBody, request: ChangeRequest) -> Change:
    """Rename a class."""
    return workspace.rename(sent.label, sent.to, request=request)


@_change_route("/merge", MergeBody)
def merge(workspace: Workspace, sent: MergeBody, request: ChangeRequest) -> Change:
    """Merge a class into another one."""
    return workspace.merge(sent.label, sent.into, request=request)


@_change_route("/split", LabelBody)
def split(workspace: Workspace, sent: LabelBody, request: ChangeRequest) -> Change:
    """Start predicting the fine classes of a class."""
    return workspace.split(sent.label, request=request)


@_change_route("/unsplit", LabelBody)
def unsplit(workspace: Workspace, sent: LabelBody, request: ChangeRequest) -> Change:
    """Stop predicting the fine classes of a class."""
    return workspace.unsplit(sent.label, request=request)


@_change_route("/undo", UndoBody)
def undo(workspace: Workspace, sent: UndoBody, request: ChangeRequest) -> Change:
    """Undo the newest change that is not undone yet, and the others of the same action."""
    return workspace.undo(event=sent.event, request=request)


@router.get("/undo", response_model=records.UndoStep, responses=with_etag(refusals()))
async def undoable(request: Request, _: NoQuery) -> Response:
    """Return what the next undo would take back; ``event`` is null if there is nothing."""
    workspace = service_of(request).workspace
    return await cached_response(request, lambda: workspace.version, workspace.undoable)
