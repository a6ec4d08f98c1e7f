"""Whether the service is there, and whether it can work; for whoever watches it."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evergrow.service.http.asking import NoQuery, service_of
from evergrow.service.http.bodies import HealthBody
from evergrow.service.http.listings import json_response
from evergrow.service.http.openapi import document, refusals
from evergrow.service.http.problems import problem

__all__ = ["router"]

router = APIRouter(tags=["service"])


@router.get("/healthz", response_model=HealthBody, responses=refusals(public=True))
async def health(_: NoQuery) -> Response:
    """Say that the process answers."""
    return json_response(HealthBody(status="alive"))


@router.get("/readyz", response_model=HealthBody, responses=refusals(503, public=True))
async def readiness(request: Request, _: NoQuery) -> Response:
    """Say whether requests can be served: not while opening, not while stopping."""
    service = service_of(request)
    if service.phase != "ready":
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, f"the service is {service.phase}")
    service.writer.check_working()
    return json_response(HealthBody(status="ready"))


@router.get(
    "/metrics",
    responses={
        **refusals(),
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    },
    response_class=Response,
)
async def metrics(request: Request, _: NoQuery) -> Response:
    """Numbers for Prometheus."""
    service = service_of(request)
    text = await service.read(service.metrics.text)
    return Response(text, media_type=service.metrics.content_type)


@router.get(
    "/openapi.json",
    responses={
        **refusals(),
        200: {"content": {"application/json": {"schema": {"type": "object"}}}},
    },
    response_class=JSONResponse,
)
async def openapi(request: Request, _: NoQuery) -> Response:
    """All that can be asked, as an OpenAPI document."""
    service = service_of(request)
    return JSONResponse(await service.read(lambda: document(request.app, service)))
