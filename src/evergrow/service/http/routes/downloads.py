"""Routes that send files: the model, the pictures, the labels and the audit log."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import DownloadBody, RequestBody
from evergrow.service.http.downloads import FILES, DownloadResponse
from evergrow.service.http.middleware import USED_LINK, token_of
from evergrow.service.http.openapi import refusals, request_body
from evergrow.service.http.requests import NoQuery, read_json, service_of
from evergrow.service.http.responses import ProblemError, json_response
from evergrow.service.wire import DownloadLink, File

router = APIRouter(prefix="/v1", tags=["downloads"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_MODEL_FILES: dict[str, File] = {"evergrow": "model", "onnx": "onnx", "html": "html"}


def _responses(file: File, *more: int) -> dict[int | str, Any]:
    return {**refusals(*more), 200: {"content": {FILES[file][1]: _BINARY}}}


async def _send(request: Request, file: File) -> Response:
    downloads = service_of(request).downloads
    return DownloadResponse(downloads, await downloads.prepare(request.scope["actor"], file))


class _ModelQuery(RequestBody):
    format: Literal["evergrow", "onnx", "html"] = Field(
        "evergrow",
        description="A file for evergrow.load, an ONNX file, or a page that works offline.",
    )


@router.get(
    "/model",
    response_class=Response,
    responses={
        **refusals(409, 501, 507),
        200: {"content": {FILES[file][1]: _BINARY for file in _MODEL_FILES.values()}},
    },
)
async def model(request: Request, query: Annotated[_ModelQuery, Query()]) -> Response:
    """Download the model as one file."""
    return await _send(request, _MODEL_FILES[query.format])


@router.get("/pictures", response_class=Response, responses=_responses("pictures", 409, 507))
async def pictures(request: Request, _: NoQuery) -> Response:
    """Download all labelled pictures as a zip file with class folders and ``labels.csv``.

    Pictures are the files that were taught. Those taught during the download are not included.
    """
    return await _send(request, "pictures")


@router.get("/labels", response_class=Response, responses=_responses("labels"))
async def labels(request: Request, _: NoQuery) -> Response:
    """Download the labels of all examples as CSV, with the SHA-256 of each image.

    Text that a spreadsheet would read as a formula begins with a single quote.
    """
    return await _send(request, "labels")


@router.get("/audit-log", response_class=Response, responses=_responses("audit-log"))
async def audit_log(request: Request, _: NoQuery) -> Response:
    """Download all changes with their actor and time as JSON lines, the oldest first."""
    return await _send(request, "audit-log")


@router.post(
    "/downloads",
    status_code=201,
    response_model=DownloadLink,
    responses=refusals(409, 501, 507, body=True),
    openapi_extra=request_body(DownloadBody),
)
async def prepare(request: Request, _: NoQuery) -> Response:
    """Prepare a file, and return a link from which a browser can download it.

    ``GET /v1/downloads/{ticket}`` sends the file once, within a minute, and needs no token.
    """
    sent = await read_json(request, DownloadBody)
    downloads = service_of(request).downloads
    download = await downloads.prepare(request.scope["actor"], sent.file)
    link = downloads.make_link(token_of(request.scope) or "", download)
    return json_response(link, HTTPStatus.CREATED)


# Not in the document: its security is that of a link, not that of a token.
@router.get("/downloads/{ticket}", include_in_schema=False)
async def follow_link(request: Request, ticket: Annotated[str, Path()], _: NoQuery) -> Response:
    """Send the file of a link, which is valid in place of a token, once."""
    downloads = service_of(request).downloads
    download = downloads.follow_link(ticket)
    if download is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, USED_LINK)
    return DownloadResponse(downloads, download)
