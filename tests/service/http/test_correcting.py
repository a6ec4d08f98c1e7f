"""Correcting, removing and confirming examples over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from tests.harness.pictures import picture
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


def test_the_changes_of_one_action_have_one_undo(served: Served) -> None:
    assert served.get("/v1/undo").json()["event"] is None
    served.teach_one("pen", B)
    for _ in range(3):
        served.teach_one("mug", A, headers={"Evergrow-Action": "drop-1"})
    step = served.get("/v1/undo", token="read").json()
    # Its number is not known: assessments are events as well.
    assert (step["kind"], step["n_changes"], step["n_examples"]) == ("teach", 3, 3)
    assert step["body"]["label"] == "mug"
    assert step["labels"] == ["mug"]
    change = served.post("/v1/undo", {"event": step["event"]}).json()
    assert (change["n_changes"], change["n_examples"]) == (3, 3)
    assert names(served) == {"pen": 1}


def test_a_step_before_an_undone_one_names_its_own_classes(served: Served) -> None:
    for label in ("pen", "mug", "pen"):
        served.teach_one(label, B, headers={"Evergrow-Action": "drop-1"})
    for _ in range(5):
        served.teach_one("cup", A, headers={"Evergrow-Action": "drop-2"})
    served.post("/v1/undo", {})
    step = served.get("/v1/undo").json()
    assert (step["n_examples"], step["labels"]) == (3, ["pen", "mug"])


@pytest.mark.parametrize("action", ["", "a b", "x" * 65, "é"])
def test_other_names_of_actions_are_refused(served: Served, action: str) -> None:
    answer = served.teach_one("mug", headers={"Evergrow-Action": action.encode()})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Evergrow-Action" in answer.json()["detail"]


def test_two_actions_are_refused(served: Served) -> None:
    headers = [("Authorization", f"Bearer {served.teach}"), *[("Evergrow-Action", "a")] * 2]
    answer = served.client.post(
        "/v1/examples", json={"embedding": A, "label": "mug"}, headers=headers
    )
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_a_picture_of_another_class_is_refused_or_moved(served_images: Served) -> None:
    def teach(label: str, **fields: str) -> Any:
        return served_images.ask(
            "POST",
            "/v1/examples",
            data={"label": label, **fields},
            files={"image": picture()},
        )

    assert teach("mug").status_code == HTTPStatus.CREATED
    refused = teach("cup")
    assert refused.status_code == HTTPStatus.CONFLICT
    body = refused.json()
    assert (body["example"], body["label"]) == (1, "mug")
    assert "move=true" in body["detail"]
    assert names(served_images) == {"mug": 1}
    moved = teach("cup", move="true")
    assert moved.status_code == HTTPStatus.OK
    assert moved.json()["moved_from"] == "mug"
    assert names(served_images) == {"cup": 1}
    assert teach("cup", move="perhaps").status_code == HTTPStatus.UNPROCESSABLE_ENTITY
