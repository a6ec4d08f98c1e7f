"""The page of the HTTP routes, from the OpenAPI document of a service."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from evergrow.service import Service, create_app
from evergrow.service.http.openapi import make_document

_INTRODUCTION = """HTTP
====

The routes of :doc:`the service <service>`, with the parameters of each. Send the token as
``Authorization: Bearer TOKEN``. A *teach* token may also do what a *read* token may.
:doc:`service` has examples with ``curl``, limits, retries, downloads and the Python client.

A running service sends the same information as an OpenAPI document, ``GET /openapi.json``.
"""
_STATUS_TITLE = """Status codes
------------

A refused request gets ``application/problem+json``. Its member ``detail`` tells the reason.
"""
# A workspace as new: its embeddings, and images are accepted.
_STATUS = SimpleNamespace(n_features=1904, takes_images=True)


def routes_page() -> str:
    """Return the page in reStructuredText."""
    service = Service("unopened")
    workspace = SimpleNamespace(status=lambda: _STATUS)
    document = make_document(
        create_app(service),
        SimpleNamespace(workspace=workspace, settings=service.settings),  # type: ignore[arg-type]
    )
    return "\n".join((_INTRODUCTION, *_routes(document), *_status_codes(document)))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path}", operation


def _routes(document: dict[str, Any]) -> Iterator[str]:
    sections: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for title, operation in _operations(document):
        (tag,) = operation["tags"]
        sections.setdefault(tag.capitalize(), []).append((title, operation))
    for section, operations in sections.items():
        yield from (section, "-" * len(section), "")
        for title, operation in operations:
            yield from (title, "~" * len(title), "")
            yield from (operation["description"], "")
            yield from _facts(operation, document)


def _facts(operation: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    yield from (f":Token: {operation.get('x-evergrow-scope', 'none')}",)
    codes = sorted(code for code in operation["responses"] if int(code) < 400)
    yield from (f":Success: {', '.join(codes)}", "")
    fields = [
        (one["name"], f"{one['in']}, {_kind(one['schema'])}", one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(content["schema"], document)
        where = "JSON" if media_type == "application/json" else "form"
        required = schema.get("required", ())
        for name, one in schema.get("properties", {}).items():
            kind = f"{where}, {_kind(_resolved(one, document))}"
            if name in required:
                kind += ", required"
            fields.append((name, kind, one.get("description", "")))
    if fields:
        yield from _table(("name", "where, and type", "meaning"), fields)


# Limits of this size only say what a computer can store.
_ANY = 2**53


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    kind = str(schema.get("type", "object"))
    if kind == "array":
        kind = f"array of {_kind(schema['items'])}"
    limits = (("minimum", "from"), ("maximum", "to"))
    words = [f"{word} {schema[key]}" for key, word in limits if abs(schema.get(key, _ANY)) < _ANY]
    if "default" in schema and schema["default"] is not None:
        words.append(f"default {schema['default']}")
    return " ".join((kind if schema.get("format") != "binary" else "file", *words))


def _status_codes(document: dict[str, Any]) -> Iterator[str]:
    codes: dict[str, str] = {}
    for _, operation in _operations(document):
        for code, response in operation["responses"].items():
            if int(code) >= 300:
                codes.setdefault(code, response["description"])
    yield from (_STATUS_TITLE,)
    yield from _table(("code", "meaning"), sorted(codes.items()))


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "   :class: narrow", "")
    for row in (header, *((f"``{first}``", *rest) for first, *rest in rows)):
        yield f"   * - {row[0]}"
        yield from (f"     - {cell}" for cell in row[1:])
    yield ""
