"""The routes that Label Studio calls, and what they do to the workspace."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from evergrow.workspace import Workspace
from tests.harness.pictures import picture
from tests.service.conftest import Served
from tests.service.label_studio.fake import CONFIG, TOKEN, FakeLabelStudio

pytestmark = pytest.mark.slow

PREFIX = "/v1/integrations/label-studio"
UID = "1.1793527200"


def labels(served: Served) -> dict[int, str]:
    items = served.get("/v1/examples").json()["items"]
    return {one["id"]: one["label"] for one in items}


def tell(served: Served, studio: FakeLabelStudio, action: str, task: int | None = None) -> Any:
    """Send a webhook and wait until it was read; the first image waits for the decoders."""
    answer = served.post(f"{PREFIX}/webhook", studio.webhook(action, task))
    assert answer.json()["status"] in ("done", "queued"), answer.text
    for announced in served.service.label_studio.announced:
        announced.result(30)
    return answer


def n_events(served: Served) -> int:
    """Changes of examples; the model records some itself."""
    kinds = [one["kind"] for one in served.get("/v1/events").json()["items"]]
    return sum(kind not in ("choose", "forest", "guess") for kind in kinds)


def test_an_annotation_teaches_moves_and_takes_back(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert labels(connected) == {1: "cup"}
    studio.correct(1, "pen")
    tell(connected, studio, "ANNOTATION_UPDATED", 1)
    assert labels(connected) == {1: "pen"}
    studio.delete_annotations(1)
    tell(connected, studio, "ANNOTATIONS_DELETED")
    assert labels(connected) == {}
    events = connected.get("/v1/events").json()["items"]
    assert {one["actor"] for one in events if one["kind"] in ("teach", "relabel", "remove")} == {
        "Label Studio"
    }


def test_repeated_and_late_webhooks_change_nothing(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    for _ in range(3):
        tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert n_events(connected) == 1
    studio.delete_annotations(1)
    # That of the creation comes after the deletion.
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert labels(connected) == {}


def test_skipped_tasks_and_ties_teach_nothing(connected: Served, studio: FakeLabelStudio) -> None:
    studio.annotate(studio.add_task(1), "cup", was_cancelled=True)
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert labels(connected) == {}
    studio.annotate(studio.add_task(2), "cup", person=1)
    tell(connected, studio, "ANNOTATION_CREATED", 2)
    studio.annotate(2, "pen", person=2)
    tell(connected, studio, "ANNOTATION_CREATED", 2)
    assert labels(connected) == {}
    studio.annotate(2, "pen", person=3)
    tell(connected, studio, "ANNOTATION_CREATED", 2)
    assert list(labels(connected).values()) == ["pen"]


def test_deleted_tasks_are_taken_back_and_deleted_projects_are_not(
    connected: Served, studio: FakeLabelStudio
) -> None:
    for number in (1, 2):
        studio.annotate(studio.add_task(number), "cup")
        tell(connected, studio, "ANNOTATION_CREATED", number)
    del studio.tasks[1]
    body = {"action": "TASKS_DELETED", "tasks": [{"id": 1}]}
    assert connected.post(f"{PREFIX}/webhook", body).json() == {"status": "done"}
    assert labels(connected) == {2: "cup"}
    studio.tasks.clear()
    studio.projects.clear()
    assert connected.post(f"{PREFIX}/sync").json()["problems"]
    assert labels(connected) == {2: "cup"}


def test_everything_is_compared_on_request(connected: Served, studio: FakeLabelStudio) -> None:
    for number in range(1, 40):
        studio.annotate(studio.add_task(number), ["cup", "pen"][number % 2])
    tell(connected, studio, "PROJECT_UPDATED")
    assert len(labels(connected)) == 39
    studio.correct(1, "watch")
    del studio.tasks[2]
    studio.annotate(studio.add_task(40), "cup")
    assert connected.post(f"{PREFIX}/sync").json() == {
        "n_tasks": 39,
        "n_taught": 1,
        "n_moved": 1,
        "n_removed": 1,
        "problems": [],
    }
    assert connected.post(f"{PREFIX}/sync").json()["n_taught"] == 0


def test_what_happened_while_the_service_was_down_is_learnt_at_the_start(
    folder: Path, connected: Served, studio: FakeLabelStudio, settings: Settings
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    connected.service.close()
    studio.correct(1, "pen")
    studio.annotate(studio.add_task(2), "watch")
    with Service(folder, settings) as service:
        report = service.label_studio.synchronise().result(30)
    # The first pass did it, before the one that was asked for.
    assert (report.n_taught, report.n_moved) in ((0, 0), (1, 1))
    with Workspace.open(folder) as workspace:
        found = {one.id: one.label for one in workspace.examples().items}
    assert found == {1: "pen", 2: "watch"}


def test_what_was_changed_in_the_workspace_is_left_alone(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    connected.post("/v1/rename", {"label": "cup", "to": "mug"})
    connected.post(f"{PREFIX}/sync")
    assert labels(connected) == {1: "mug"}
    connected.post("/v1/remove", {"examples": [1]})
    connected.post(f"{PREFIX}/sync")
    assert labels(connected) == {}
    studio.correct(1, "pen")
    connected.post(f"{PREFIX}/sync")
    assert list(labels(connected).values()) == ["pen"]


def test_an_image_that_was_taught_otherwise_stays(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    files = {"image": ("a.jpg", picture(seed=1), "image/jpeg")}
    connected.post("/v1/examples", data={"label": "pen"}, files=files)
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert labels(connected) == {1: "cup"}
    studio.delete_annotations(1)
    tell(connected, studio, "ANNOTATIONS_DELETED")
    assert labels(connected) == {1: "cup"}


def test_an_image_of_two_tasks_is_taken_back_with_the_last(
    connected: Served, studio: FakeLabelStudio
) -> None:
    for number in (1, 2):
        studio.add_task(number, image="/data/upload/1/same.jpg")
        studio.annotate(number, "cup")
        tell(connected, studio, "ANNOTATION_CREATED", number)
    assert labels(connected) == {1: "cup"}
    for number in (1, 2):
        studio.delete_annotations(number)
        tell(connected, studio, "ANNOTATIONS_DELETED")
        assert labels(connected) == ({1: "cup"} if number == 1 else {})


def test_bad_images_are_reported_and_the_others_are_learnt(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.add_task(1, image="http://evil.example/a.jpg")
    studio.images["/data/upload/1/2.jpg"] = b"not a picture"
    for number in (2, 3):
        studio.add_task(number)
    for number in (1, 2, 3):
        studio.annotate(number, "cup")
    tell(connected, studio, "PROJECT_UPDATED")
    problems = connected.post(f"{PREFIX}/sync").json()["problems"]
    assert ["task 1" in problems[0], "task 2" in problems[1], len(problems)] == [True, True, 2]
    assert labels(connected) == {1: "cup"}


def test_a_label_studio_that_is_down_is_asked_again(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.annotate(studio.add_task(1), "cup")
    studio.is_down = True
    answer = connected.post(f"{PREFIX}/webhook", studio.webhook("ANNOTATION_CREATED", 1))
    assert (answer.status_code, answer.json()) == (202, {"status": "queued"})
    assert connected.post(f"{PREFIX}/sync").status_code == 503
    studio.is_down = False
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    assert labels(connected) == {1: "cup"}


def predict(served: Served, *tasks: int, config: str = CONFIG, **options: Any) -> Any:
    sent = [{"id": n, "data": {"image": f"/data/upload/1/{n}.jpg"}, "project": 1} for n in tasks]
    body = {"tasks": sent, "project": UID, "label_config": config, "params": {"context": None}}
    return served.post(f"{PREFIX}/predict", body, **options)


def test_predictions_have_choices_scores_and_the_version_of_the_model(
    connected: Served, studio: FakeLabelStudio
) -> None:
    for number, label in ((1, "cup"), (2, "pen"), (3, "cup")):
        studio.annotate(studio.add_task(number), label)
    (empty,) = predict(connected, 1).json()["results"]
    assert (empty["result"], empty["score"]) == ([], 0.0)
    tell(connected, studio, "PROJECT_UPDATED")
    found = predict(connected, 1, 2).json()
    chosen = [one["result"][0]["value"]["choices"] for one in found["results"]]
    assert all(one in (["cup"], ["pen"]) for one in chosen)
    first = found["results"][0]
    assert first["model_version"] == found["model_version"] != empty["model_version"]
    assert 0 <= first["score"] <= 1
    assert 0 < first["result"][0]["score"] <= 1
    assert (first["result"][0]["from_name"], first["result"][0]["to_name"]) == ("class", "image")


def test_only_choices_of_the_project_are_predicted(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.add_task(1)
    files = {"image": ("a.jpg", picture(seed=1), "image/jpeg")}
    connected.post("/v1/examples", data={"label": "elephant"}, files=files)
    (found,) = predict(connected, 1).json()["results"]
    assert (found["result"], found["score"]) == ([], 0.0)
    with_unknown = CONFIG.replace("</Choices>", '<Choice value="unknown"/></Choices>')
    (found,) = predict(connected, 1, config=with_unknown).json()["results"]
    assert found["result"][0]["value"]["choices"] == ["unknown"]


def test_a_missing_image_is_an_empty_prediction(connected: Served, studio: FakeLabelStudio) -> None:
    studio.annotate(studio.add_task(1), "cup")
    tell(connected, studio, "ANNOTATION_CREATED", 1)
    found = predict(connected, 1, 404).json()["results"]
    assert [bool(one["result"]) for one in found] == [True, False]


def test_images_are_fetched_once_for_predictions(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.add_task(1)
    for _ in range(3):
        predict(connected, 1)
    assert [path for _, path in studio.requests].count("/data/upload/1/1.jpg") == 1


def test_setup_refuses_other_configurations_with_a_reason(connected: Served) -> None:
    body = {"project": UID, "schema": CONFIG, "hostname": "", "access_token": "x"}
    assert connected.post(f"{PREFIX}/setup", body).json() == {"model_version": "evergrow-0"}
    text = '<View><Text name="t" value="$t"/></View>'
    answer = connected.post(f"{PREFIX}/setup", {**body, "schema": text})
    assert answer.status_code == 422
    assert "one <Choices>" in answer.json()["detail"]


def test_health_and_versions(connected: Served) -> None:
    health = connected.get(f"{PREFIX}/health").json()
    assert health == {"status": "UP", "model_class": "Evergrow", "model_version": "evergrow-0"}
    versions = connected.get(f"{PREFIX}/versions?project=1.2").json()
    assert versions == {"versions": ["evergrow-0"]}


def basic(user: str, password: str) -> dict[str, str]:
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def test_a_token_may_be_the_password_of_basic_authentication_here_only(connected: Served) -> None:
    health = f"{PREFIX}/health"
    headers = basic("label-studio", connected.teach)
    assert connected.get(health, token=None, headers=headers).status_code == 200
    assert connected.get("/v1/status", token=None, headers=headers).status_code == 401
    for wrong in (basic("", connected.teach), basic("x", ""), basic("x", "y")):
        assert connected.get(health, token=None, headers=wrong).status_code == 401
    broken = {"Authorization": "Basic !"}
    assert connected.get(health, token=None, headers=broken).status_code == 401


def test_a_token_that_only_reads_predicts_and_teaches_nothing(
    connected: Served, studio: FakeLabelStudio
) -> None:
    studio.add_task(1)
    assert predict(connected, 1, token="read").status_code == 200
    for path in ("webhook", "setup", "sync"):
        assert connected.post(f"{PREFIX}/{path}", {}, token="read").status_code == 403


@pytest.mark.parametrize("path", ["setup", "predict", "webhook"])
def test_other_bodies_are_refused(connected: Served, path: str) -> None:
    for body in ([], {}, "text", {"tasks": 3, "action": []}):
        assert connected.post(f"{PREFIX}/{path}", body).status_code == 422
    headers = {"Content-Type": "application/json"}
    answer = connected.ask("POST", f"{PREFIX}/{path}", content=b"[" * 600_000, headers=headers)
    assert answer.status_code == 422


def test_without_configuration_nothing_is_there(folder: Path) -> None:
    from tests.service.conftest import _served

    for served in _served(folder, Settings()):
        answer = served.get(f"{PREFIX}/health")
        assert answer.status_code == 404
        assert "--label-studio" in answer.json()["detail"]


def test_a_workspace_of_embeddings_is_refused(folder: Path) -> None:
    Workspace.create(folder, features=None, n_features=4).close()
    settings = Settings(label_studio="http://127.0.0.1:9", label_studio_token=TOKEN)
    with pytest.raises(InvalidInputError, match="takes images"), Service(folder, settings):
        pass


def test_the_token_of_label_studio_is_not_shown() -> None:
    settings = Settings(label_studio="http://127.0.0.1:9", label_studio_token="very-secret")
    assert "very-secret" not in repr(settings)
    with pytest.raises(InvalidInputError, match="label_studio_token"):
        Settings(label_studio="http://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match="label_studio"):
        Settings(label_studio="not an address", label_studio_token="x")


def test_the_next_tasks_get_the_lowest_scores(connected: Served, studio: FakeLabelStudio) -> None:
    studio.projects[1]["sampling"] = "Uncertainty sampling"
    for number in range(1, 31):
        studio.add_task(number)
    studio.annotate(1, "cup")
    studio.annotate(2, "pen")
    tell(connected, studio, "PROJECT_UPDATED")
    ranked = _wait_for_places(studio)
    # Tasks with annotations have none, and there is one for each of the others.
    assert sorted(ranked) == list(range(3, 31))
    places = sorted(score for score in ranked.values() if score < 1)
    assert places == pytest.approx([place / 28 for place in range(20)])


def _wait_for_places(studio: FakeLabelStudio, seconds: float = 20.0) -> dict[int, float]:
    import time

    end = time.monotonic() + seconds
    while not studio.predictions and time.monotonic() < end:
        time.sleep(0.01)
    assert {one["model_version"] for one in studio.predictions.values()} == {"Evergrow"}
    return {one["task"]: one["score"] for one in list(studio.predictions.values())}
