"""predict, evaluate, status, classes: what a workspace knows, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evergrow.workspace import NewExample, Workspace
from tests.cli.conftest import Run
from tests.vision.classifier.pictures import folder_of


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A picture of something that was never taught."""
    path = tmp_path / "strange.png"
    Image.fromarray(np.full((24, 32, 3), (0, 0, 255), np.uint8)).save(path)
    return path


def test_a_workspace_answers_like_a_model_file(run: Run, made: Path, photos: Path) -> None:
    result = run("predict", made, photos)
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[1] for line in lines] == ["green"] * 3 + ["red"] * 3
    assert all(0.5 < float(line[2]) <= 1 for line in lines)


def test_a_workspace_answers_while_it_is_served(run: Run, things: Path, photos: Path) -> None:
    with Workspace.open(things):
        assert run("predict", things, photos / "red").exit_code == 0
        assert run("status", things).exit_code == 0
        assert run("classes", things).exit_code == 0
        assert run("check", things).exit_code == 0
        assert run("export", things, "-o", "model.evergrow").exit_code == 0
        assert run("backup", things, "copy").exit_code == 0


def test_what_fits_no_class_is_unknown(run: Run, made: Path, strange: Path) -> None:
    assert run("predict", made, strange).stdout == f"{strange}\tunknown\t\n"
    found = json.loads(run("predict", made, strange, "--json", "--top", 9).stdout)
    assert (found["label"], found["known"]) == (None, False)
    assert len(found["top"]) == 2


def test_csv_of_a_workspace_has_a_column_for_finer_names(
    run: Run, made: Path, photos: Path
) -> None:
    result = run("predict", made, photos / "red" / "100.png", "--csv", "--top", 2)
    header, row = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header == ["image", "label", "probability", "label_2", "probability_2", "fine"]
    assert (row[1], row[3], row[5]) == ("red", "green", "")


def test_bad_images_are_named(run: Run, made: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_text("no image")
    result = run("predict", made, "bad.jpg", photos / "red")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3
    assert "bad.jpg" in result.stderr
    assert run("predict", made, "bad.jpg").stdout == ""


def test_a_workspace_is_measured_like_a_model_file(run: Run, made: Path, photos: Path) -> None:
    result = run("evaluate", made, photos)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("accuracy\t1.0000\t6\t6\n")


def test_a_workspace_that_knows_nothing_says_so(run: Run, network: Path, photos: Path) -> None:
    run("init", "empty", "--features", network)
    result = run("predict", "empty", photos)
    assert result.exit_code == 1
    assert "has no classes yet" in result.stderr


def test_a_workspace_of_embeddings_answers_no_images(run: Run, photos: Path) -> None:
    run("init", "numbers", "--features", "none")
    result = run("predict", "numbers", photos)
    assert result.exit_code == 1
    assert "takes embeddings, not images" in result.stderr


@pytest.mark.parametrize("arguments", [["add", "{}", "."], ["info", "{}"]])
def test_commands_of_model_files_point_to_those_of_workspaces(
    run: Run, made: Path, arguments: list[str]
) -> None:
    result = run(*(one.format(made) for one in arguments))
    assert result.exit_code == 1
    assert "use 'evergrow learn' to teach it" in result.stderr
    assert not made.with_name(".things.lock").exists()


def test_status_tells_what_is_there(run: Run, made: Path) -> None:
    lines = dict(line.split("\t", 1) for line in run("status", made).stdout.splitlines())
    assert (lines["n_classes"], lines["n_examples"], lines["takes_images"]) == ("2", "24", "True")
    rate, low, high = (float(part) for part in lines["accuracy"].split("\t"))
    assert low <= rate <= high
    found = json.loads(run("status", made, "--json").stdout)
    assert found["n_features"] == 5
    assert found["accuracy"]["n"] == 24


def test_classes_are_listed_with_their_signs(run: Run, made: Path) -> None:
    rows = [line.split("\t") for line in run("classes", made).stdout.splitlines()]
    assert [row[:2] for row in rows] == [["green", "12"], ["red", "12"]]
    assert all(row[2] in ("more", "enough") for row in rows)
    entries = [json.loads(line) for line in run("classes", made, "--json").stdout.splitlines()]
    assert [entry["name"] for entry in entries] == ["green", "red"]


def test_all_pages_of_classes_are_listed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.cli.workspace.status._PAGE", 2)
    with Workspace.create(tmp_path / "many", features=None) as workspace:
        workspace.teach([NewExample(np.eye(5)[i], f"class {i}") for i in range(5)])
    lines = run("classes", "many").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"class {i}" for i in range(5)]


def test_an_empty_folder_is_no_workspace(run: Run, tmp_path: Path) -> None:
    folder_of(tmp_path / "photos", "red", n=1)
    for command in ("status", "classes", "check", "undo"):
        result = run(command, "photos")
        assert result.exit_code == 1
        assert "is not a workspace" in result.stderr
