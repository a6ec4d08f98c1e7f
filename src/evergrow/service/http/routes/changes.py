"""Changes of classes and of several examples at once, and taking changes back."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.asking import Key, NoQuery, changed, clears_fine, json_body, signed
from evergrow.service.http.bodies import (
    ChangeBody,
    ExamplesBody,
    ForgetBody,
    LabelBody,
    MergeBody,
    RelabelManyBody,
    RenameBody,
    UndoBody,
)
from evergrow.service.http.openapi import refusals, takes

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["changing"])

_CHANGE = refusals(404, 409, 507, body=True)


@router.post(
    "/relabel", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(RelabelManyBody)
)
async def relabel(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Say what several examples really are: one change, which is undone at once."""
    sent = await json_body(request, RelabelManyBody)
    clear = clears_fine(sent)
    who = signed(request, key, sent.examples, sent.label, sent.fine, clear)
    return await changed(
        request,
        lambda space: space.relabel(
            sent.examples, label=sent.label, fine=sent.fine, clear_fine=clear, request=who
        ),
    )


@router.post(
    "/remove", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(ExamplesBody)
)
async def remove(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Take several examples away: one change, which is undone at once."""
    sent = await json_body(request, ExamplesBody)
    who = signed(request, key, sent.examples)
    return await changed(request, lambda space: space.remove(sent.examples, request=who))


@router.post(
    "/forget", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(ForgetBody)
)
async def forget(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Forget a class; can be undone unless it is erased."""
    sent = await json_body(request, ForgetBody)
    who = signed(request, key, sent.label, sent.erase)
    return await changed(
        request, lambda space: space.forget(sent.label, erase=sent.erase, request=who)
    )


@router.post(
    "/rename", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(RenameBody)
)
async def rename(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Give a class another name."""
    sent = await json_body(request, RenameBody)
    who = signed(request, key, sent.label, sent.to)
    return await changed(request, lambda space: space.rename(sent.label, sent.to, request=who))


@router.post("/merge", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(MergeBody))
async def merge(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Give all examples of one class to another."""
    sent = await json_body(request, MergeBody)
    who = signed(request, key, sent.label, sent.into)
    return await changed(request, lambda space: space.merge(sent.label, sent.into, request=who))


@router.post("/split", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(LabelBody))
async def split(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Tell the finer classes of a class apart."""
    sent = await json_body(request, LabelBody)
    who = signed(request, key, sent.label)
    return await changed(request, lambda space: space.split(sent.label, request=who))


@router.post(
    "/unsplit", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(LabelBody)
)
async def unsplit(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Stop telling the finer classes of a class apart."""
    sent = await json_body(request, LabelBody)
    who = signed(request, key, sent.label)
    return await changed(request, lambda space: space.unsplit(sent.label, request=who))


@router.post("/undo", response_model=ChangeBody, responses=_CHANGE, openapi_extra=takes(UndoBody))
async def undo(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Take the newest change back; asked again, the one before it."""
    sent = await json_body(request, UndoBody)
    who = signed(request, key, sent.event)
    return await changed(request, lambda space: space.undo(event=sent.event, request=who))
