"""Teaching, predictions and changes over HTTP."""

from __future__ import annotations

import csv
import io
import re
import warnings
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from evergrow.service.http.app import create_app
from evergrow.service.http.service import Service
from tests.harness.pictures import picture
from tests.service.conftest import URL, A, B, Served, TestClient


def names(served: Served) -> dict[str, int]:
    items = served.get("/v1/classes").json()["items"]
    return {item["name"]: item["n_examples"] for item in items}


def test_a_taught_class_is_predicted(served: Served) -> None:
    assert served.teach_one("mug", A).status_code == HTTPStatus.CREATED
    assert served.teach_one("pen", B).status_code == HTTPStatus.CREATED
    answer = served.post("/v1/predictions", {"embeddings": [A, B]}, token="read").json()
    assert [one["label"] for one in answer["predictions"]] == ["mug", "pen"]
    assert answer["event"] >= 2


def test_the_response_to_teaching_has_the_example_and_its_class(served: Served) -> None:
    answer = served.teach_one(" mug ", A, body={"fine": "red"})
    body = answer.json()
    assert body["class"] == {"name": "mug", "n_examples": 1, "new": True}
    assert (body["example"]["label"], body["example"]["fine"]) == ("mug", "red")
    assert body["example"]["actor"] == "teacher"
    assert served.get(answer.headers["location"]).json() == body["example"]


def test_nothing_can_be_predicted_before_anything_is_taught(served: Served) -> None:
    answer = served.post("/v1/predictions", {"embeddings": [A]})
    assert answer.status_code == HTTPStatus.CONFLICT


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"label": "mug"}, "embedding"),
        ({"embedding": A}, "label"),
        ({"embedding": A[:3], "label": "mug"}, "4"),
        ({"embedding": [*A[:3], "1"], "label": "mug"}, "embedding.3"),
        ({"embedding": [*A[:3], 1e30], "label": "mug"}, "embedding.3"),
        ({"embedding": A, "label": ""}, "empty"),
        ({"embedding": A, "label": "a" * 201}, "200"),
        ({"embedding": A, "label": "a\u202eb"}, "U+202E"),
        ({"embedding": A, "label": "a\x00b"}, "U+0000"),
        ({"embedding": A, "label": 5}, "label"),
        ({"embedding": A, "label": "mug", "colour": "red"}, "colour"),
    ],
)
def test_an_invalid_example_is_refused_with_the_reason(
    served: Served, body: dict, message: str
) -> None:
    answer = served.post("/v1/examples", body)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert message in answer.json()["detail"]
    assert names(served) == {}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"embedding": [NaN], "label": "a"}', b"\xff"]
)
def test_a_body_that_is_not_json_is_refused(served: Served, content: bytes) -> None:
    answer = served.ask(
        "POST", "/v1/examples", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_another_media_type_is_refused(served: Served) -> None:
    answer = served.ask("POST", "/v1/examples", data={"label": "mug"})
    assert answer.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    answer = served.ask("POST", "/v1/examples", files={"image": b"x"}, data={"label": "mug"})
    assert answer.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


def test_markup_in_a_label_stays_text(served: Served) -> None:
    served.teach_one("<script>alert(1)</script>")
    assert list(names(served)) == ["<script>alert(1)</script>"]


def test_a_key_teaches_once(served: Served) -> None:
    headers = {"Idempotency-Key": "k1"}
    first, again = (served.teach_one("mug", A, headers=headers) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert names(served) == {"mug": 1}


def test_a_key_with_another_request_is_refused(served: Served) -> None:
    headers = {"Idempotency-Key": "k1"}
    served.teach_one("mug", A, headers=headers)
    answer = served.teach_one("pen", A, headers=headers)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "key" in answer.json()["detail"]


def test_a_key_undoes_once(served: Served) -> None:
    served.teach_one("mug", A)
    served.teach_one("mug", B)
    for _ in range(2):
        served.post("/v1/undo", {}, headers={"Idempotency-Key": "u"})
    assert names(served) == {"mug": 1}


def test_keys_of_different_tokens_are_independent(served: Served) -> None:
    from evergrow.workspace.tokens import Tokens

    other = Tokens(served.service.folder).add("other", "teach")
    for token in ("teach", other):
        served.teach_one("mug", A, token=token, headers={"Idempotency-Key": "k"})
    assert names(served) == {"mug": 2}


@pytest.mark.parametrize("key", ["", "a b", "a" * 256, "\xe9"])
def test_an_invalid_key_is_refused(served: Served, key: str) -> None:
    answer = served.teach_one("mug", A, headers={"Idempotency-Key": key.encode("latin-1")})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_changes_of_classes(served: Served) -> None:
    for label, embedding in (("mug", A), ("pen", B), ("pencil", B)):
        served.teach_one(label, embedding)
    assert served.post("/v1/rename", {"label": "mug", "to": "cup"}).status_code == HTTPStatus.OK
    assert served.post("/v1/merge", {"label": "pencil", "into": "pen"}).json()["n_examples"] == 1
    assert names(served) == {"cup": 1, "pen": 2}
    assert served.post("/v1/forget", {"label": "pen"}).json()["kind"] == "forget"
    assert names(served) == {"cup": 1}
    assert served.post("/v1/undo", {}).status_code == HTTPStatus.OK
    assert names(served) == {"cup": 1, "pen": 2}


def test_a_class_that_was_forgotten_can_be_erased(served: Served) -> None:
    served.teach_one("mug", A)
    served.teach_one("pen", B)
    served.post("/v1/forget", {"label": "mug"})
    answer = served.post("/v1/forget", {"label": "mug", "erase": True})
    assert (answer.status_code, answer.json()["n_examples"]) == (HTTPStatus.OK, 1)
    assert served.post("/v1/undo", {}).status_code == HTTPStatus.CONFLICT
    answer = served.post("/v1/forget", {"label": "cup", "erase": True})
    assert answer.status_code == HTTPStatus.NOT_FOUND


def test_renaming_into_an_existing_class_is_a_conflict(served: Served) -> None:
    served.teach_one("mug", A)
    served.teach_one("pen", B)
    answer = served.post("/v1/rename", {"label": "mug", "to": "pen"})
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "merge" in answer.json()["detail"]


def test_an_unknown_class_is_not_found(served: Served) -> None:
    for path, more in (("forget", {}), ("rename", {"to": "x"}), ("split", {})):
        answer = served.post(f"/v1/{path}", {"label": "nobody", **more})
        assert answer.status_code == HTTPStatus.NOT_FOUND, path


def test_undoing_nothing_is_a_conflict(served: Served) -> None:
    assert served.post("/v1/undo", {}).status_code == HTTPStatus.CONFLICT


def test_undoing_another_change_than_the_newest_is_a_conflict(served: Served) -> None:
    older = served.teach_one("mug", A).json()["event"]
    newest = served.teach_one("pen", B).json()["event"]
    assert served.post("/v1/undo", {"event": older}).status_code == HTTPStatus.CONFLICT
    assert served.post("/v1/undo", {"event": newest}).status_code == HTTPStatus.OK
    assert names(served) == {"mug": 1}


def test_a_class_is_split_once_its_finer_names_have_examples(served: Served) -> None:
    served.teach_one("mug", A, body={"fine": "red"})
    assert served.post("/v1/split", {"label": "mug"}).status_code == HTTPStatus.CONFLICT
    rng = np.random.default_rng(0)
    for fine, middle in (("red", [1, 0, 1, 0]), ("blue", [1, 0, 0, 1])):
        for _ in range(3):
            embedding = (np.array(middle) + rng.normal(scale=0.05, size=4)).tolist()
            served.teach_one("mug", embedding, body={"fine": fine})
    assert served.post("/v1/split", {"label": "mug"}).status_code == HTTPStatus.OK
    (mug,) = served.get("/v1/classes").json()["items"]
    assert mug["split"]
    assert {one["name"] for one in mug["fine"]} == {"red", "blue"}
    assert served.post("/v1/unsplit", {"label": "mug"}).status_code == HTTPStatus.OK


def test_an_example_is_corrected_and_removed(served: Served) -> None:
    number = served.teach_one("mug", A, body={"fine": "red"}).json()["example"]["id"]
    path = f"/v1/examples/{number}"
    assert served.ask("PATCH", path, json={"fine": None}).status_code == HTTPStatus.OK
    assert served.get(path).json()["fine"] is None
    assert served.ask("PATCH", path, json={"label": "pen"}).status_code == HTTPStatus.OK
    assert served.get(path).json()["label"] == "pen"
    for nothing in ({}, {"label": None}):
        answer = served.ask("PATCH", path, json=nothing)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert served.ask("DELETE", path).status_code == HTTPStatus.OK
    assert served.get(path).status_code == HTTPStatus.NOT_FOUND
    assert served.ask("DELETE", path).status_code == HTTPStatus.NOT_FOUND


def test_an_example_without_an_image_has_no_thumbnail(served: Served) -> None:
    number = served.teach_one("mug", A).json()["example"]["id"]
    for what in ("thumbnail", "image"):
        answer = served.get(f"/v1/examples/{number}/{what}")
        assert answer.status_code == HTTPStatus.CONFLICT


def test_every_page_of_a_listing_is_reached_once(served: Served) -> None:
    for number in range(7):
        served.teach_one("mug", [*A[:3], number])
    found, after = [], None
    while True:
        query = {"limit": 3} | ({} if after is None else {"after": after})
        page = served.get("/v1/examples", params=query).json()
        found += [item["id"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert found == sorted(set(found))
    assert len(found) == 7


def test_examples_can_be_filtered(served: Served) -> None:
    served.teach_one("mug", A)
    served.teach_one("pen", B)
    items = served.get("/v1/examples", params={"label": "pen"}).json()["items"]
    assert [item["label"] for item in items] == ["pen"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "after=!", "colour=red", "limit=2&page=1"]
)
def test_wrong_parameters_are_refused(served: Served, query: str) -> None:
    assert served.get(f"/v1/examples?{query}").status_code == HTTPStatus.UNPROCESSABLE_ENTITY


@pytest.mark.parametrize("path", ["status", "openapi.json", "classes", "review", "confusion"])
def test_unknown_parameters_are_refused(served: Served, path: str) -> None:
    prefix = "/" if "." in path else "/v1/"
    answer = served.get(f"{prefix}{path}?colour=red")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_references_in_the_openapi_document_resolve(served: Served) -> None:
    answer = served.get("/openapi.json")
    asked = re.findall(r'"#/components/schemas/([^"]+)"', answer.text)
    assert set(asked) <= answer.json()["components"]["schemas"].keys()


@pytest.mark.parametrize("path", ["/v1/classes", "/v1/examples", "/v1/events", "/v1/review"])
def test_a_listing_that_did_not_change_is_not_sent_again(served: Served, path: str) -> None:
    served.teach_one("mug", A)
    served.service.workspace.assess()
    tag = served.get(path).headers["etag"]
    again = served.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (HTTPStatus.NOT_MODIFIED, b"")
    served.teach_one("mug", B)
    assert served.get(path, headers={"If-None-Match": tag}).status_code == HTTPStatus.OK


def test_an_etag_is_not_valid_after_a_restart(served: Served, tmp_path) -> None:
    served.service.workspace.backup(tmp_path / "copy")
    served.teach_one("mug", A)
    tag = served.get("/v1/examples").headers["etag"]
    with Service(tmp_path / "copy") as service, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = TestClient(create_app(service), base_url=URL)
        restored = Served(service, client, served.teach, served.read)
        restored.teach_one("pen", A)
        answer = restored.get("/v1/examples", headers={"If-None-Match": tag})
    assert answer.status_code == HTTPStatus.OK


def test_two_keys_are_refused(served: Served) -> None:
    keys = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    headers = [("Authorization", f"Bearer {served.teach}"), *keys]
    body = {"embedding": A, "label": "mug"}
    answer = served.client.post("/v1/examples", json=body, headers=headers)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Idempotency-Key" in answer.json()["detail"]


def test_etags_of_different_pages_differ(served: Served) -> None:
    tags = {served.get(f"/v1/classes?limit={n}").headers["etag"] for n in (1, 2)}
    assert len(tags) == 2


def test_events_have_an_actor_and_a_kind(served: Served) -> None:
    served.teach_one("mug", A)
    served.post("/v1/rename", {"label": "mug", "to": "cup"})
    newest = served.get("/v1/events").json()["items"][0]
    assert (newest["kind"], newest["actor"]) == ("rename", "teacher")


def test_status_has_the_scopes_of_the_token(served: Served) -> None:
    assert served.get("/v1/status").json()["scopes"] == ["read", "teach"]
    assert served.get("/v1/status", token="read").json()["scopes"] == ["read"]


def test_the_model_comes_as_a_file_that_can_be_loaded(served: Served, tmp_path) -> None:
    import evergrow

    for label, embedding in (("mug", A), ("pen", B)):
        for _ in range(3):
            served.teach_one(label, embedding)
    answer = served.get("/v1/model")
    assert answer.status_code == HTTPStatus.OK
    path = tmp_path / "model.evergrow"
    path.write_bytes(answer.content)
    assert len(answer.content) == int(answer.headers["content-length"])
    assert list(evergrow.load(path).classes_) == ["mug", "pen"]


def test_confusion_and_review_answer_before_any_assessment(served: Served) -> None:
    assert served.get("/v1/confusion").json()["classes"] == []
    assert served.get("/v1/review").json() == {"items": []}


def test_confusion_counts_the_examples_of_the_assessment(served: Served) -> None:
    for label, embedding in (("mug", A), ("pen", B)):
        for i in range(4):
            # Not equal ones: near-duplicates are left out together.
            served.teach_one(label, [value + 0.1 * (i == k) for k, value in enumerate(embedding)])
    served.service.workspace.assess(force=True)
    body = served.get("/v1/confusion").json()
    assert body["classes"] == ["mug", "pen"]
    assert body["counts"] == [[4, 0], [0, 4]]
    # Too few to tell.
    assert body["unknown"] is None


def confused(served: Served, n_classes: int) -> None:
    """Teach pairs of classes that look the same, the last pair with most examples."""
    rng = np.random.default_rng(0)
    for number in range(n_classes):
        centre = np.zeros(4)
        centre[number // 2 % 4] = 8.0
        for _ in range(12 if number < n_classes - 2 else 24):
            served.teach_one(f"class {number}", (centre + rng.normal(size=4)).tolist())
    served.service.workspace.assess(force=True)


@pytest.mark.slow
def test_the_matrix_of_some_classes_has_the_most_frequent_mistakes(served: Served) -> None:
    confused(served, 8)
    whole = served.get("/v1/confusion").json()
    assert whole["n_classes"] == len(whole["classes"]) == 8
    cells = {
        (row, column): n
        for row, counts in zip(whole["classes"], whole["counts"], strict=True)
        for column, n in zip(whole["classes"], counts, strict=True)
        if row != column
    }
    most = max(cells, key=lambda pair: cells[pair] + cells[pair[::-1]])
    part = served.get("/v1/confusion?limit=2").json()
    assert set(part["classes"]) == set(most)
    assert part["n_classes"] == 8


def test_the_examples_of_a_cell_are_listed(served: Served) -> None:
    confused(served, 4)
    body = served.get("/v1/confusion").json()
    for row, counts in zip(body["classes"], body["counts"], strict=True):
        for column, n in zip(body["classes"], counts, strict=True):
            if row != column:
                query = urlencode({"label": row, "predicted": column})
                items = served.get(f"/v1/confusion/examples?{query}").json()["items"]
                assert len(items) == n
                assert {one["label"] for one in items} <= {row}
    for row, n in zip(body["classes"], body["unknown"], strict=True):
        query = urlencode({"label": row})
        assert len(served.get(f"/v1/confusion/examples?{query}").json()["items"]) == n
    assert sum(body["unknown"]) > 0


def test_labels_are_downloaded_as_csv(served: Served) -> None:
    for number in range(3):
        served.teach_one(f'a "class", {number}', body={"fine": "red"})
    answer = served.get("/v1/labels", token="read")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["label"] for row in rows] == [f'a "class", {number}' for number in range(3)]
    assert {(row["fine"], row["fine_kind"], row["image"]) for row in rows} == {("red", "given", "")}
    served.teach_one("=1+1")
    assert "'=1+1" in served.get("/v1/labels").text


def test_the_status_names_the_workspace(served: Served) -> None:
    assert served.get("/v1/status").json()["name"] == served.service.folder.name


def test_more_embeddings_than_allowed_are_refused(served: Served) -> None:
    served.teach_one("mug", A)
    answer = served.post("/v1/predictions", {"embeddings": [A] * 33})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY


def test_head_is_get_without_a_body(served: Served) -> None:
    answer = served.ask("HEAD", "/v1/classes")
    assert (answer.status_code, answer.content) == (HTTPStatus.OK, b"")


def test_other_methods_get_the_allowed_ones(served: Served) -> None:
    answer = served.ask("PUT", "/v1/examples/1")
    assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH"


def test_an_unknown_path_is_a_problem(served: Served) -> None:
    answer = served.get("/v1/nothing")
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) == {"type", "title", "status", "detail"}


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
