"""The records that the server sends, and the client reads, are those of the workspace."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from evergrow.service import wire
from evergrow.service.client.transport import parse_record
from evergrow.workspace import records
from tests.service.conftest import A, B, Served


def field_names(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


def test_a_status_adds_the_limits_of_the_service() -> None:
    added = {"scopes", "max_images", "max_request_bytes"}
    assert field_names(wire.Status) == field_names(records.Status) | added


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/classes", records.ClassEntry),
        ("/v1/examples", records.Example),
        ("/v1/events", records.Event),
    ],
)
def test_listings_can_be_parsed(served: Served, path: str, kind: Any) -> None:
    served.teach_one("mug", A, body={"fine": "red"})
    served.teach_one("pen", B)
    items = served.get(path).json()["items"]
    assert len(items) == 2
    for item in items:
        assert item.keys() == field_names(kind)
        if kind is not records.Event:
            parse_record(kind, item)


def test_other_responses_can_be_parsed(served: Served) -> None:
    # Nothing has been assessed yet.
    assert parse_record(wire.Confusion, served.get("/v1/confusion").json()).event is None
    taught = parse_record(wire.TeachResult, served.teach_one("mug", A).json())
    assert taught.of_class == wire.TaughtClass("mug", 1, True)
    served.teach_one("pen", B)
    assert parse_record(wire.Status, served.get("/v1/status").json()).n_examples == 2
    body = served.post("/v1/predictions", {"embeddings": [A]}).json()
    assert parse_record(wire.Predictions, body).predictions[0].label == "mug"
    assert parse_record(records.Change, served.post("/v1/undo", {}).json()).kind == "undo"


def test_bounds_are_documented(served: Served) -> None:
    schemas = served.get("/openapi.json").json()["components"]["schemas"]
    probability = schemas["Candidate"]["properties"]["probability"]
    assert (probability["minimum"], probability["maximum"]) == (0, 1)
    assert schemas["Example"]["additionalProperties"] is False
    assert set(schemas["Example"]["required"]) == field_names(records.Example)


def test_the_client_reads_every_type_of_field() -> None:
    kinds = [kind for kind in vars(wire).values() if isinstance(kind, type)]
    hints = [hint for kind in kinds for hint in get_type_hints(kind, include_extras=True).values()]
    annotated = [hint for hint in hints if get_origin(hint) is Annotated]
    assert {get_args(hint)[0] for hint in annotated} == {int, float}


def test_listings_have_readable_names_in_the_openapi_document(served: Served) -> None:
    schemas = served.get("/openapi.json").json()["components"]["schemas"]
    assert {"ClassPage", "EventPage", "ExamplePage"} <= schemas.keys()
    assert schemas["ClassPage"]["properties"]["items"]["items"]["$ref"].endswith("/ClassEntry")
    assert not [name for name in schemas if "_" in name]
