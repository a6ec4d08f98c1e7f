"""learn: class folders become lessons, again and again, and Ctrl-C loses nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from evergrow.workspace import Workspace
from tests.cli.conftest import Run
from tests.vision.classifier.pictures import folder_of


def counts(folder: Path) -> dict[str, int]:
    with Workspace.open(folder, read_only=True) as workspace:
        return {entry.name: entry.n_examples for entry in workspace.classes().items}


def test_folders_become_classes(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", "red", n=3, seed=50)
    result = run("learn", things, photos)
    assert result.exit_code == 0, result.output
    assert counts(things) == {"green": 12, "red": 15, "blue": 3}
    said = result.stderr.splitlines()
    assert said[0].startswith("Taught 6 images in ")
    assert said[1] == f"To undo all of it: evergrow undo {things} --since 26"
    assert said[2] == f"{things}: 3 classes, 30 examples."


def test_learning_again_learns_nothing_twice(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=3)
    run("learn", things, photos)
    folder_of(photos, "blue", n=4)
    result = run("learn", things, photos)
    assert "Taught 1 image in" in result.stderr
    assert "3 already known" in result.stderr
    assert counts(things)["blue"] == 4


def test_pictures_are_kept_as_they_are(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=1)
    run("learn", things, photos)
    with Workspace.open(things, read_only=True) as workspace:
        (example,) = workspace.examples(label="blue").items
        assert workspace.picture(example.id) == (photos / "blue" / "0.png").read_bytes()
        assert workspace.thumbnail(example.id).startswith(b"\xff\xd8")
    assert (example.media_type, example.width, example.height) == ("image/png", 32, 24)


def test_folders_within_are_finer_names(run: Run, things: Path, tmp_path: Path) -> None:
    folder_of(tmp_path / "photos" / "colour", "blue", "grey", n=2)
    folder_of(tmp_path / "photos", "colour", n=0)
    assert run("learn", things, tmp_path / "photos", "--fine").exit_code == 0
    with Workspace.open(things, read_only=True) as workspace:
        entry = workspace.class_named("colour")
    assert {fine.name: fine.n_given for fine in entry.fine} == {"blue": 2, "grey": 2}


def test_a_mistaken_learn_is_taken_back_at_once(run: Run, things: Path, tmp_path: Path) -> None:
    before = counts(things)
    result = run("learn", things, folder_of(tmp_path / "photos", "blue", "red", n=3, seed=50))
    (way_back,) = [line for line in result.stderr.splitlines() if "evergrow undo" in line]
    result = run(*way_back.split("evergrow ")[1].split())
    assert result.exit_code == 0, result.output
    assert "undid 6 changes: 6 examples moved back" in result.stderr
    assert counts(things) == before


def test_nothing_new_needs_no_way_back(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=1)
    run("learn", things, photos)
    assert "undo" not in run("learn", things, photos).stderr


def test_known_pictures_get_finer_names(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=5)
    run("learn", things, photos)
    for n in range(4):
        folder = photos / "blue" / ("sky" if n < 2 else "sea")
        folder.mkdir(exist_ok=True)
        (photos / "blue" / f"{n}.png").rename(folder / f"{n}.png")
    result = run("learn", things, photos, "--fine")
    assert "Taught 0 images in" in result.stderr
    assert "5 already known, 4 of them with a new finer class." in result.stderr
    assert run("split", things, "blue").exit_code == 0
    (photos / "blue" / "sky").rename(photos / "blue" / "ice")
    result = run("learn", things, photos, "--fine")
    assert "2 images already had another finer class and kept it" in result.stderr
    with Workspace.open(things, read_only=True) as workspace:
        fine = workspace.class_named("blue").fine
    assert {one.name: one.n_given for one in fine} == {"sky": 2, "sea": 2}


def test_a_bad_image_stops_and_keeps_what_was_taught(
    run: Run, things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.workspace.changes.image_batches._MOST_IMAGES", 2)
    photos = folder_of(tmp_path / "photos", "blue", n=4)
    (photos / "blue" / "2.png").write_text("no image")
    result = run("learn", things, photos, "--jobs", 1)
    assert result.exit_code == 1
    assert "2.png" in result.stderr
    assert "Taught 2 images" in result.stderr
    assert counts(things)["blue"] == 2


def test_bad_images_can_be_left_out(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=3)
    (photos / "blue" / "bad.jpg").write_text("no image")
    content = (photos / "blue" / "1.png").read_bytes()
    (photos / "blue" / "1.png").write_bytes(content[: len(content) // 2])
    result = run("learn", things, photos, "--on-error", "skip")
    assert result.exit_code == 0
    assert counts(things)["blue"] == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines()].count("Warning") == 2
    assert "2 skipped" in result.stderr


def test_ctrl_c_keeps_what_was_taught(
    run: Run, things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.workspace.changes.image_batches._MOST_IMAGES", 2)
    photos = folder_of(tmp_path / "photos", "blue", n=6)
    real, calls = Workspace.teach, []

    def interrupted(self: Workspace, lessons: Any, **options: Any) -> Any:
        calls.append(len(lessons))
        if len(calls) == 2:
            # It comes in the middle of a change, and waits for its end.
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, lessons, **options)

    monkeypatch.setattr(Workspace, "teach", interrupted)
    result = run("learn", things, photos)
    assert result.exit_code == 130
    assert "Taught 4 images" in result.stderr
    assert counts(things)["blue"] == 4
    assert run("check", things).exit_code == 0


def test_a_folder_with_a_name_that_cannot_be_is_refused_at_once(
    run: Run, things: Path, tmp_path: Path
) -> None:
    folder_of(tmp_path / "photos", "blue", n=1)
    (tmp_path / "photos" / "blue").rename(tmp_path / "photos" / ("x" * 201))
    result = run("learn", things, tmp_path / "photos")
    assert result.exit_code == 1
    assert "at most 200 characters" in result.stderr


def test_a_workspace_of_embeddings_takes_no_folder(run: Run, tmp_path: Path) -> None:
    run("init", "numbers", "--features", "none")
    folder_of(tmp_path / "photos", "blue", n=1)
    result = run("learn", "numbers", "photos")
    assert result.exit_code == 1
    assert "takes embeddings, not images" in result.stderr


def test_what_a_service_has_is_left_to_the_service(run: Run, things: Path, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "blue", n=1)
    with Workspace.open(things):
        for arguments in (
            ["learn", things, photos],
            ["rename", things, "red", "rot"],
            ["merge", things, "red", "green"],
            ["split", things, "red"],
            ["unsplit", things, "red"],
            ["undo", things],
            ["forget", things, "red"],
            ["check", things, "--mend"],
        ):
            result = run(*arguments)
            assert result.exit_code == 1, arguments
            assert "or stop that process first" in result.stderr
            assert str(os.getpid()) in result.stderr
    assert counts(things) == {"green": 12, "red": 12}
