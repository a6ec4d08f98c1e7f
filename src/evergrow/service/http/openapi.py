"""The OpenAPI document: requests, responses and refusals."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from evergrow.service.http import bodies
from evergrow.service.http.middleware import needed_scope
from evergrow.service.http.requests import FORM_TYPE
from evergrow.service.http.responses import JSON_TYPE, PROBLEM_TYPE
from evergrow.service.wire import Problem
from evergrow.vision.images.decoder import MEDIA_TYPES

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

    from evergrow.service.http.service import Service

_REF = "#/components/schemas/{model}"

_DESCRIPTIONS = {
    400: "The request is not valid HTTP.",
    401: "The token is missing, wrong, expired or revoked.",
    403: "The token lacks the needed scope.",
    404: "The resource does not exist.",
    405: "The method is not allowed; the header Allow lists the allowed ones.",
    408: "The request was not complete in time.",
    409: "The request conflicts with the current state of the workspace.",
    413: "The request, or an image in it, is too large.",
    415: "The media type of the body is not supported.",
    422: "Something in the request is not valid; the detail says what.",
    429: "Too many requests with one token; the header Retry-After says when to retry.",
    500: "Internal error.",
    501: "This service lacks a package for it; the detail says what to install.",
    503: "The service is starting, stopping or busy; the header Retry-After says when to retry.",
    507: "The disk is full; nothing was changed.",
}
_ALWAYS = (400, 405, 422, 500)
_WITH_TOKEN = (401, 403, 429, 503)
_WITH_BODY = (408, 413, 415)
_RETRY_AFTER = {
    "description": "Seconds to wait before retrying.",
    "schema": {"type": "string", "pattern": "^[0-9]+$"},
    "required": True,
}
_CHALLENGE = {
    "description": "The authentication scheme.",
    "schema": {"type": "string"},
    "required": True,
}
_HEADERS = {
    401: {"WWW-Authenticate": _CHALLENGE},
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
}


def _ref(model: type) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def refusals(*more: int, public: bool = False, body: bool = False) -> dict[int | str, Any]:
    """Describe the refusals of a route, for FastAPI's ``responses``."""
    statuses = {*_ALWAYS, *more}
    statuses.update(() if public else _WITH_TOKEN)
    statuses.update(_WITH_BODY if body else ())
    return {status: _refusal(status) for status in sorted(statuses)}


def _refusal(status: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": _DESCRIPTIONS[status],
        "content": {PROBLEM_TYPE: {"schema": _ref(Problem)}},
    }
    if status in _HEADERS:
        found["headers"] = _HEADERS[status]
    return found


def with_etag(responses: dict[int | str, Any]) -> dict[int | str, Any]:
    """Add the 304 response of routes with an ETag."""
    return {**responses, 304: {"description": "The client's copy is current."}}


def request_body(model: type[BaseModel], **others: dict[str, Any]) -> dict[str, Any]:
    """Describe a body that a route reads itself, for FastAPI's ``openapi_extra``."""
    content = {JSON_TYPE: {"schema": _ref(model)}, **others}
    return {"requestBody": {"required": True, "content": content}}


def form_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Describe a form with images."""
    return {
        FORM_TYPE: {
            "schema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            "encoding": {"image": {"contentType": ", ".join(MEDIA_TYPES)}},
        }
    }


def make_document(app: FastAPI, service: Service) -> dict[str, Any]:
    """Make the document of one service, with its length of embeddings and types of bodies."""
    from fastapi.openapi.utils import get_openapi

    status = service.workspace.status()
    made = copy.deepcopy(
        get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(_component_schemas())
    _set_embedding_limits(schemas, status.n_features, service.settings.max_images)
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            needed = needed_scope(method.upper(), path)
            operation["security"] = [] if needed is None else [{"token": []}]
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
            if needed is not None:
                operation["x-evergrow-scope"] = needed
            _set_form_limits(
                operation, service.settings.max_images, takes_images=status.takes_images
            )
    return made


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from a parameter: it may be left out, but null cannot be sent."""
    if "anyOf" not in schema:
        return schema
    (kind,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **kind}


def _component_schemas() -> dict[str, Any]:
    found = [one for one in vars(bodies).values() if isinstance(one, type)]
    models = [one for one in found if issubclass(one, bodies.RequestBody)]
    models.remove(bodies.RequestBody)
    _, schemas = TypeAdapter.json_schemas(
        [(model, "validation", TypeAdapter(model)) for model in (*models, Problem)],
        ref_template=_REF,
    )
    return dict(schemas["$defs"])


def _set_embedding_limits(schemas: dict[str, Any], n_features: int | None, max_images: int) -> None:
    one = schemas["TeachBody"]["properties"]["embedding"]
    many = schemas["PredictBody"]["properties"]["embeddings"]
    many["maxItems"] = max_images
    if n_features is not None:
        for schema in (one, many["items"]):
            schema["minItems"] = schema["maxItems"] = n_features


def _set_form_limits(operation: dict[str, Any], max_images: int, *, takes_images: bool) -> None:
    content = operation.get("requestBody", {}).get("content", {})
    if not takes_images:
        content.pop(FORM_TYPE, None)
    image = content.get(FORM_TYPE, {}).get("schema", {}).get("properties", {}).get("image", {})
    if image.get("type") == "array":
        image["maxItems"] = max_images
