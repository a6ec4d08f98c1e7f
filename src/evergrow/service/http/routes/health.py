"""Routes for monitoring: health, readiness, metrics, and the OpenAPI document."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evergrow.service.http.openapi import make_document, refusals
from evergrow.service.http.requests import NoQuery, service_of
from evergrow.service.http.responses import ProblemError, json_response, problem
from evergrow.service.http.service import Service
from evergrow.service.wire import Health

router = APIRouter(tags=["service"])


def _alive(_: Service) -> Response:
    return json_response(Health(status="alive"))


def _ready(service: Service) -> Response:
    if service.phase != "ready":
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, f"the service is {service.phase}")
    try:
        service.writer.check_alive()
        service.require_folder()
    except ProblemError as error:
        return problem(error.status, error.detail)
    return json_response(Health(status="ready"))


_HEALTH = {"/healthz": _alive, "/readyz": _ready}


def health_response(service: Service, path: str) -> Response | None:
    """Return the response to a health check; None for other paths."""
    check = _HEALTH.get(path)
    return None if check is None else check(service)


@router.get("/healthz", response_model=Health, responses=refusals(public=True))
async def health(request: Request, _: NoQuery) -> Response:
    """Report that the process is alive."""
    return _alive(service_of(request))


@router.get("/readyz", response_model=Health, responses=refusals(503, public=True))
async def readiness(request: Request, _: NoQuery) -> Response:
    """Report whether the service can answer requests: not while it starts or stops."""
    return _ready(service_of(request))


@router.get(
    "/metrics",
    responses={
        **refusals(),
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    },
    response_class=Response,
)
async def metrics(request: Request, _: NoQuery) -> Response:
    """Return metrics for Prometheus."""
    service = service_of(request)
    text = await service.read(request.scope["actor"], service.metrics.text)
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
    """Return the OpenAPI document of this service."""
    service = service_of(request)
    document = await service.read(
        request.scope["actor"], lambda: make_document(request.app, service)
    )
    return JSONResponse(document)
