"""Correcting, removing and confirming examples over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from tests.service.conftest import A, B, Served
from tests.service.http.test_routes import names


def test_several_examples_are_one_change_with_one_undo(served: Served) -> None:
    for label, embedding in (("mug", A), ("pen", B), ("pen", B)):
        served.teach_one(label, embedding)
    change = served.post("/v1/relabel", {"examples": [1, 2], "label": "cup", "fine": "red"}).json()
    assert (change["kind"], change["n_examples"]) == ("relabel", 2)
    assert names(served) == {"pen": 1, "cup": 2}
    assert served.post("/v1/relabel", {"examples": [1, 2], "fine": None}).json()["n_examples"] == 2
    assert served.post("/v1/remove", {"examples": [1, 3]}).json()["n_examples"] == 2
    assert names(served) == {"cup": 1}
    for _ in range(3):
        served.post("/v1/undo", {})
    assert names(served) == {"mug": 1, "pen": 2}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("relabel", {"examples": [1]}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ("relabel", {"examples": [], "label": "a"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ("relabel", {"examples": [1, 9], "label": "a"}, HTTPStatus.NOT_FOUND),
        ("relabel", {"label": "a"}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ("remove", {"examples": [*range(1, 502)]}, HTTPStatus.UNPROCESSABLE_ENTITY),
        ("remove", {"examples": [1, 9]}, HTTPStatus.NOT_FOUND),
    ],
)
def test_several_examples_are_all_changed_or_none(
    served: Served, path: str, body: Any, status: HTTPStatus
) -> None:
    served.teach_one("mug")
    assert served.post(f"/v1/{path}", body).status_code == status
    assert names(served) == {"mug": 1}


def test_the_label_that_an_example_has_is_confirmed(served: Served) -> None:
    served.teach_one("mug")
    answer = served.ask("PATCH", "/v1/examples/1", json={"label": "mug"}).json()
    assert (answer["kind"], answer["n_examples"]) == ("confirm", 0)
