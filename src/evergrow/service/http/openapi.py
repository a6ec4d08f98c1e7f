"""The OpenAPI document: all that can be sent and all that can come back, refusals included."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from evergrow.service.http import bodies
from evergrow.service.http.access import needed_scope
from evergrow.service.http.listings import JSON_TYPE
from evergrow.service.http.multipart import FORM_TYPE
from evergrow.service.http.problems import PROBLEM_TYPE

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

    from evergrow.service.http.state import Service

__all__ = ["IMAGE_TYPES", "document", "form", "refusals", "takes", "with_tag"]

IMAGE_TYPES = (
    "image/jpeg",
    "image/png",
    "image/webp",
    "image/bmp",
    "image/gif",
    "image/tiff",
    "image/x-portable-anymap",
)
_REF = "#/components/schemas/{model}"

_SAID = {
    400: "The request is no HTTP that can be read.",
    401: "No token, or one that is wrong, expired or revoked.",
    403: "The token may not do this.",
    404: "There is no such thing.",
    405: "Not possible here; the header Allow says what is.",
    408: "The request did not arrive whole in time.",
    409: "It does not fit what is there now.",
    413: "The request, or an image in it, is too large.",
    415: "A body of a kind that is not taken.",
    422: "Something in the request is not valid; the detail says what.",
    429: "Too many requests of one token; the header Retry-After says when to come again.",
    500: "The service made a mistake.",
    503: "Not now: opening, stopping or busy; the header Retry-After says when to come again.",
    507: "The disk is full; nothing was changed.",
}
_ALWAYS = (400, 405, 422, 500)
_WITH_TOKEN = (401, 403, 429, 503)
_WITH_BODY = (408, 413, 415)
_RETRY_AFTER = {
    "description": "Seconds until it may work.",
    "schema": {"type": "string", "pattern": "^[0-9]+$"},
    "required": True,
}
_CHALLENGE = {"description": "What is needed.", "schema": {"type": "string"}, "required": True}
_HEADERS = {
    401: {"WWW-Authenticate": _CHALLENGE},
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def refusals(*more: int, public: bool = False, body: bool = False) -> dict[int | str, Any]:
    """Refusals that a route can give, for FastAPI's ``responses``."""
    statuses = {*_ALWAYS, *more}
    statuses.update(() if public else _WITH_TOKEN)
    statuses.update(_WITH_BODY if body else ())
    return {status: _refusal(status) for status in sorted(statuses)}


def _refusal(status: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": _SAID[status],
        "content": {PROBLEM_TYPE: {"schema": _ref(bodies.ProblemBody)}},
    }
    if status in _HEADERS:
        found["headers"] = _HEADERS[status]
    return found


def with_tag(responses: dict[int | str, Any]) -> dict[int | str, Any]:
    """Add what listings with a tag can answer."""
    return {**responses, 304: {"description": "What the client has is still right."}}


def takes(model: type[BaseModel], **others: dict[str, Any]) -> dict[str, Any]:
    """A body that a route reads itself, for FastAPI's ``openapi_extra``."""
    content = {JSON_TYPE: {"schema": _ref(model)}, **others}
    return {"requestBody": {"required": True, "content": content}}


def form(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """A form with images."""
    return {
        FORM_TYPE: {
            "schema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            "encoding": {"image": {"contentType": ", ".join(IMAGE_TYPES)}},
        }
    }


def document(app: FastAPI, service: Service) -> dict[str, Any]:
    """The document of one service: lengths of embeddings and kinds of bodies are those it takes."""
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
    _fit_embeddings(schemas, status.n_features, service.settings.max_images)
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            needed = needed_scope(method.upper(), path)
            operation["security"] = [] if needed is None else [{"token": []}]
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
            if needed is not None:
                operation["x-evergrow-scope"] = needed
            _fit_form(operation, service.settings.max_images, takes_images=status.takes_images)
    return made


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is there or not; there is no way to send that it is nothing."""
    if "anyOf" not in schema:
        return schema
    (kind,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **kind}


def _component_schemas() -> dict[str, Any]:
    asked: list[type[BaseModel]] = [
        bodies.EmbeddingLesson,
        bodies.Embeddings,
        bodies.RelabelBody,
        bodies.RelabelManyBody,
        bodies.ExamplesBody,
        bodies.LabelBody,
        bodies.ForgetBody,
        bodies.RenameBody,
        bodies.MergeBody,
        bodies.UndoBody,
    ]
    asked.append(bodies.ProblemBody)
    _, found = models_json_schema([(model, "validation") for model in asked], ref_template=_REF)
    definitions: dict[str, Any] = found["$defs"]
    return definitions


def _fit_embeddings(schemas: dict[str, Any], n_features: int | None, max_images: int) -> None:
    one = schemas["EmbeddingLesson"]["properties"]["embedding"]
    many = schemas["Embeddings"]["properties"]["embeddings"]
    many["maxItems"] = max_images
    if n_features is not None:
        for schema in (one, many["items"]):
            schema["minItems"] = schema["maxItems"] = n_features


def _fit_form(operation: dict[str, Any], max_images: int, *, takes_images: bool) -> None:
    content = operation.get("requestBody", {}).get("content", {})
    if not takes_images:
        content.pop(FORM_TYPE, None)
    image = content.get(FORM_TYPE, {}).get("schema", {}).get("properties", {}).get("image", {})
    if image.get("type") == "array":
        image["maxItems"] = max_images
