"""Routes that change classes or several examples, and undo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

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
from evergrow.service.http.openapi import refusals, request_body
from evergrow.service.http.requests import (
    Key,
    NoQuery,
    apply_change,
    clears_fine,
    identify,
    read_json,
)
from evergrow.service.wire import Change

router = APIRouter(prefix="/v1", tags=["changes"])

Route = Callable[..., Awaitable[Response]]


def _change_route(path: str, body: type[RequestBody]) -> Callable[[Route], Route]:
    return router.post(
        path,
        response_model=Change,
        responses=refusals(404, 409, 507, body=True),
        openapi_extra=request_body(body),
    )


@_change_route("/relabel", RelabelManyBody)
async def relabel(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Correct the classes of several examples, as one change."""
    sent = await read_json(request, RelabelManyBody)
    clear = clears_fine(sent)
    identity = identify(request, key, sent.examples, sent.label, sent.fine, clear)
    return await apply_change(
        request,
        lambda workspace: workspace.relabel(
            sent.examples, label=sent.label, fine=sent.fine, clear_fine=clear, request=identity
        ),
    )


@_change_route("/remove", ExamplesBody)
async def remove(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Remove several examples, as one change."""
    sent = await read_json(request, ExamplesBody)
    identity = identify(request, key, sent.examples)
    return await apply_change(
        request, lambda workspace: workspace.remove(sent.examples, request=identity)
    )


@_change_route("/forget", ForgetBody)
async def forget(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Forget a class; this can be undone unless it is erased."""
    sent = await read_json(request, ForgetBody)
    identity = identify(request, key, sent.label, sent.erase)
    return await apply_change(
        request, lambda workspace: workspace.forget(sent.label, erase=sent.erase, request=identity)
    )


@_change_route("/rename", RenameBody)
async def rename(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Rename a class."""
    sent = await read_json(request, RenameBody)
    identity = identify(request, key, sent.label, sent.to)
    return await apply_change(
        request, lambda workspace: workspace.rename(sent.label, sent.to, request=identity)
    )


@_change_route("/merge", MergeBody)
async def merge(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Merge a class into another one."""
    sent = await read_json(request, MergeBody)
    identity = identify(request, key, sent.label, sent.into)
    return await apply_change(
        request, lambda workspace: workspace.merge(sent.label, sent.into, request=identity)
    )


@_change_route("/split", LabelBody)
async def split(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Start predicting the finer classes of a class."""
    sent = await read_json(request, LabelBody)
    identity = identify(request, key, sent.label)
    return await apply_change(
        request, lambda workspace: workspace.split(sent.label, request=identity)
    )


@_change_route("/unsplit", LabelBody)
async def unsplit(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Stop predicting the finer classes of a class."""
    sent = await read_json(request, LabelBody)
    identity = identify(request, key, sent.label)
    return await apply_change(
        request, lambda workspace: workspace.unsplit(sent.label, request=identity)
    )


@_change_route("/undo", UndoBody)
async def undo(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Undo the newest change that is not undone yet."""
    sent = await read_json(request, UndoBody)
    identity = identify(request, key, sent.event)
    return await apply_change(
        request, lambda workspace: workspace.undo(event=sent.event, request=identity)
    )
