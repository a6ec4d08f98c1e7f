"""predict, evaluate, status, classes: what a workspace knows, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import evergrow
from evergrow import Client
from evergrow.workspace import NewExample, Workspace
from evergrow.workspace.tokens import Tokens
from tests.cli.conftest import terminal
from tests.cli.workspace.conftest import N_PICTURES
from tests.harness.http_client import Caller, pictures_body
from tests.harness.process import ServiceProcess
from tests.vision.classifier.pictures import encode_png, folder_of, picture


@pytest.fixture
def strange(tmp_path):
    """A picture of something that was never taught."""
    path = tmp_path / "strange.png"
    Image.fromarray(np.full((24, 32, 3), (0, 0, 255), np.uint8)).save(path)
    return path


def test_a_workspace_answers_like_a_model_file(run, trained_workspace, photos):
    result = run.ok(f"predict {trained_workspace} {photos}")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[1] for line in lines] == ["green"] * 3 + ["red"] * 3
    assert all(0.5 < float(line[2]) <= 1 for line in lines)


def test_a_workspace_answers_while_it_is_served(run, things, photos):
    with Workspace.open(things):
        run.ok(f"predict {things}", photos / "red")
        run.ok(f"status {things}")
        run.ok(f"classes {things}")
        run.ok(f"check {things}")
        run.ok(f"export {things} -o model.evergrow")
        run.ok(f"backup {things} copy")


def test_what_fits_no_class_is_unknown(run, trained_workspace, strange):
    assert run(f"predict {trained_workspace} {strange}").stdout == f"{strange}\tunknown\t\n"
    found = json.loads(run(f"predict {trained_workspace} {strange} --json --top 9").stdout)
    assert (found["label"], found["known"]) == (None, False)
    assert len(found["top"]) == 2


def test_csv_of_a_workspace_has_a_column_for_finer_names(run, trained_workspace, photos):
    result = run(f"predict {trained_workspace}", photos / "red" / "100.png", "--csv", "--top", 2)
    header, row = csv.reader(io.StringIO(result.stdout, newline=""))
    columns = ["image", "label", "probability", "known", "label_2", "probability_2", "fine"]
    assert header == columns
    assert (row[1], row[3], row[4], row[6]) == ("red", "true", "green", "")


def test_what_a_workspace_calls_unknown_is_explained(run, trained_workspace, strange, tmp_path):
    (tmp_path / "test" / "red").mkdir(parents=True)
    strange.rename(tmp_path / "test" / "red" / "1.png")
    result = run.ok(f"evaluate {trained_workspace} test")
    assert result.stdout.startswith("accuracy\t0.0000\t0\t1\t1\n")
    assert '1 image of known classes answered "unknown"' in result.stderr
    assert "about 1% of the things it knows" in result.stderr
    assert "evergrow fit --unknown" in result.stderr


def test_status_and_classes_are_for_people_on_a_terminal(run, trained_workspace, monkeypatch):
    terminal(monkeypatch, 80)
    status = run.ok(f"status {trained_workspace}").stdout
    for name in ("forest_lacks", "n_bytes", "event", "\t"):
        assert name not in status
    assert re.search(r"^Examples +\d+$", status, re.MULTILINE)
    assert re.search(r"^Accuracy +[\d.]+% \(likely between [\d.]+% and [\d.]+%\)$", status, re.M)
    assert re.search(r"^Size on disk +[\d.]+ [kM]B$", status, re.MULTILINE)
    heading, _, green, _ = run.ok(f"classes {trained_workspace}").stdout.splitlines()
    assert heading.split()[:4] == ["class", "examples", "state", "accuracy"]
    assert "100.0%" in green


def test_an_old_accuracy_is_said_to_be_old(run, things, tmp_path, monkeypatch):
    terminal(monkeypatch, 80)
    assert "before the last" not in run.ok(f"status {things}").stdout
    assert run.ok(f"classes {things}").stderr == ""
    # So few are no reason to measure again.
    photos = folder_of(tmp_path / "photos", "red", n=N_PICTURES + 3)
    run.ok(f"learn {things} {photos}")
    assert "before the last 3 changes" in run.ok(f"status {things}").stdout
    said = run.ok(f"classes {things}").stderr
    assert said == "Accuracy measured before the last 3 changes.\n"


def test_tokens_and_findings_have_headings_on_a_terminal(run, things, monkeypatch):
    run.ok(f"token add {things} robot")
    next(path for path in (things / "images").rglob("*") if path.is_file()).unlink()
    terminal(monkeypatch, 80)
    heading, _, *rows = run.ok(f"token list {things}").stdout.splitlines()
    assert heading.split() == ["name", "scope", "state", "created", "expires"]
    assert rows[-1].split()[:3] == ["robot", "read", "valid"]
    heading, _, row, *_ = run.fails(f"check {things}").stdout.splitlines()
    assert heading.split() == ["severity", "finding", "repair"]
    assert row.startswith("damage ")


def test_a_workspace_that_knows_nothing_says_so(run, network, photos):
    run(f"init empty --features {network}")
    run.fails(f"predict empty {photos}", says="has no classes yet")


def test_a_workspace_of_embeddings_answers_no_images(run, photos):
    run("init numbers --features none")
    run.fails(f"predict numbers {photos}", says="takes embeddings, not images")


@pytest.mark.parametrize("arguments", [["add", "{}", "."], ["info", "{}"]])
def test_commands_of_model_files_point_to_those_of_workspaces(run, trained_workspace, arguments):
    run.fails(
        *(one.format(trained_workspace) for one in arguments),
        says="use 'evergrow learn' to teach it",
    )
    assert not trained_workspace.with_name(".things.lock").exists()


def test_status_reports_the_content(run, trained_workspace):
    lines = dict(
        line.split("\t", 1) for line in run(f"status {trained_workspace}").stdout.splitlines()
    )
    assert (lines["n_classes"], lines["n_examples"], lines["takes_images"]) == (
        "2",
        str(2 * N_PICTURES),
        "True",
    )
    rate, low, high = (float(part) for part in lines["accuracy"].split("\t"))
    assert low <= rate <= high
    found = json.loads(run(f"status {trained_workspace} --json").stdout)
    assert found["n_features"] == 5
    assert found["accuracy"]["n"] == 2 * N_PICTURES


def test_classes_are_listed_with_their_signs(run, trained_workspace):
    rows = [line.split("\t") for line in run(f"classes {trained_workspace}").stdout.splitlines()]
    assert [row[:2] for row in rows] == [["green", str(N_PICTURES)], ["red", str(N_PICTURES)]]
    assert all(row[2] in ("more", "enough") for row in rows)
    entries = [
        json.loads(line) for line in run(f"classes {trained_workspace} --json").stdout.splitlines()
    ]
    assert [entry["name"] for entry in entries] == ["green", "red"]


def test_all_pages_of_classes_are_listed(run, tmp_path, monkeypatch):
    monkeypatch.setattr("evergrow.cli.workspace.access._PAGE", 2)
    with Workspace.create(tmp_path / "many", features=None) as workspace:
        workspace.teach([NewExample(np.eye(5)[i], f"class {i}") for i in range(5)])
    lines = run("classes many").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"class {i}" for i in range(5)]


def test_an_empty_folder_is_not_a_workspace(run, tmp_path):
    folder_of(tmp_path / "photos", "red", n=1)
    for command in ("status", "classes", "check", "undo"):
        run.fails(command, "photos", says="is not a workspace")
        run.fails(command, "nowhere", says="nowhere' does not exist")


def test_evaluate_says_how_many_images_of_new_classes_are_noticed(run, things, tmp_path):
    folder_of(tmp_path / "test", "red", "blue", n=3, seed=70)
    found = json.loads(run.ok(f"evaluate {things} test --json").stdout)
    assert found["unknown_classes"] == {"blue": 3}
    assert found["noticed"] == {"blue": 3}
    told = run.ok(f"evaluate {things} test").stderr
    listed = 'its 3 images are not counted; 3 were answered "unknown"'
    assert f"Note: the model does not know 'blue': {listed}" in told
    assert "Note" not in run.ok(f"evaluate {things} test --quiet").stderr


def test_evaluate_warns_of_images_that_were_taught(run, things, tmp_path):
    folder_of(tmp_path / "test", "red", n=3, seed=70)
    assert "learnt" not in run.ok(f"evaluate {things} test").stderr
    run.ok(f"learn {things} test")
    told = run.ok(f"evaluate {things} test").stderr
    assert "Warning: the model has learnt 3 of the 3 images, so the accuracy" in told


KNOWN, STRANGE = "known.png", "strange.png"


class Said(NamedTuple):
    """What is said of a picture: its class or None, and the names of the best classes."""

    label: str | None
    known: bool
    best: list[str]


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    """A red picture, and one of something that was never taught."""
    (tmp_path / KNOWN).write_bytes(encode_png(picture("red", 100)))
    Image.fromarray(np.full((24, 32, 3), (0, 0, 255), np.uint8)).save(tmp_path / STRANGE)
    return [str(tmp_path / KNOWN), str(tmp_path / STRANGE)]


def asked_in_text(run: Any, model: Any, pictures: list[str]) -> list[tuple[str, bool]]:
    """The word for each picture, and whether there is a probability."""
    lines = run.ok(f"predict {model}", *pictures).stdout.split("\n")[:2]
    fields = [line.split("\t") for line in lines]
    return [(label, share != "") for _, label, share, *_ in fields]


def asked_in_csv(run: Any, model: Any, pictures: list[str]) -> list[tuple[str, str]]:
    written = run.ok(f"predict {model} --csv", *pictures).stdout
    return [(row["label"], row["known"]) for row in csv.DictReader(io.StringIO(written))]


def asked_in_json(run: Any, model: Any, pictures: list[str]) -> list[Said]:
    lines = run.ok(f"predict {model} --json --top 2", *pictures).stdout.splitlines()
    return [read(json.loads(line)) for line in lines]


def read(answer: dict[str, Any]) -> Said:
    return Said(answer["label"], answer["known"], [one["name"] for one in answer["top"]])


def asked_over_http(folder: Path, pictures: list[str]) -> tuple[list[Said], list[Said]]:
    """What the service and the client say."""
    token = Tokens(folder).add("reader", "read")
    with ServiceProcess(folder) as service:
        with Client(f"http://127.0.0.1:{service.port}", token) as client:
            answers = client.predict(pictures)
        contents = [Path(one).read_bytes() for one in pictures]
        with closing(Caller(service.port, token)) as caller:
            body = caller.predict(pictures_body(contents)).json()
    told = [Said(one.label, one.known, [name.name for name in one.top]) for one in answers]
    return [read(one) for one in body["predictions"]], told


@pytest.mark.slow
def test_an_unknown_picture_is_the_same_everywhere(
    run: Any, things: Path, pictures: list[str]
) -> None:
    expected = [Said("red", True, ["red", "green"]), Said(None, False, ["green", "red"])]
    run.ok(f"export {things} -o exported.evergrow")
    with Workspace.open(things, read_only=True) as workspace:
        assert workspace.embedder is not None
        rows = workspace.embedder.transform(pictures)
        answers = workspace.predict(rows, top=2)
        assert [Said(one.label, one.known, [name for name, _ in one.top]) for one in answers] == (
            expected
        )
    for model in (things, "exported.evergrow"):
        assert asked_in_text(run, model, pictures) == [("red", True), ("unknown", False)]
        assert asked_in_csv(run, model, pictures) == [("red", "true"), ("unknown", "false")]
        assert asked_in_json(run, model, pictures) == expected
    said = run.ok("info exported.evergrow").stdout
    assert 'learner\tRLSClassifier, answers "unknown" (RejectingClassifier)\n' in said
    exported = evergrow.load("exported.evergrow")
    assert exported.predict(pictures).tolist() == ["red", "unknown"]
    assert exported.answer(pictures).known.tolist() == [True, False]
    assert exported.learner_.is_known(rows).tolist() == [True, False]
    assert exported.learner_.predict(rows).tolist() == ["red", "unknown"]
    assert asked_over_http(things, pictures) == (expected, expected)


def test_a_class_may_be_called_unknown(run: Any, things: Path, pictures: list[str]) -> None:
    run.ok(f"rename {things} red unknown -q")
    run.ok(f"export {things} -o exported.evergrow")
    for model in (things, "exported.evergrow"):
        assert asked_in_text(run, model, pictures) == [("unknown", True), ("unknown", False)]
        assert asked_in_csv(run, model, pictures) == [("unknown", "true"), ("unknown", "false")]
        answers = asked_in_json(run, model, pictures)
        assert [(one.label, one.known) for one in answers] == [("unknown", True), (None, False)]


def test_a_class_may_be_called_unknown_where_it_is_measured(
    run: Any, things: Path, pictures: list[str], tmp_path: Path
) -> None:
    run.ok(f"rename {things} red unknown -q")
    for path in pictures:
        target = tmp_path / "test" / "unknown" / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(path).rename(target)
    found = json.loads(run.ok(f"evaluate {things} test --json").stdout)
    assert (found["n_right"], found["n_rejected"]) == (1, 1)
