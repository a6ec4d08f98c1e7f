"""rename, merge, split, forget, undo, export, check, backup: one command, one change, one word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evergrow
from evergrow.workspace import Workspace
from tests.cli.conftest import Run
from tests.vision.classifier.pictures import folder_of


def counts(folder: Any) -> dict[str, int]:
    with Workspace.open(folder, read_only=True) as workspace:
        return {entry.name: entry.n_examples for entry in workspace.classes().items}


def test_a_class_gets_another_name(run: Run, things: Path) -> None:
    result = run("rename", things, "red", "rot", "--json")
    assert result.exit_code == 0, result.output
    assert counts(things) == {"green": 12, "rot": 12}
    assert json.loads(result.stdout)["kind"] == "rename"
    assert result.stderr.splitlines()[-1] == f"{things}: 2 classes, 24 examples."


def test_a_name_that_is_taken_points_to_merge(run: Run, things: Path) -> None:
    result = run("rename", things, "red", "green")
    assert result.exit_code == 1
    assert "merge" in result.stderr
    assert run("merge", things, "red", "green").exit_code == 0
    assert counts(things) == {"green": 24}


def test_changes_are_taken_back_one_by_one(run: Run, things: Path) -> None:
    run("rename", things, "red", "rot")
    run("merge", things, "rot", "green")
    assert run("undo", things).exit_code == 0
    assert counts(things) == {"green": 12, "rot": 12}
    assert run("undo", things).exit_code == 0
    assert counts(things) == {"green": 12, "red": 12}


def test_an_undo_of_something_older_is_refused(run: Run, things: Path) -> None:
    run("rename", things, "red", "rot")
    assert run("undo", things, "--event", 1).exit_code == 1
    assert counts(things) == {"green": 12, "rot": 12}


def test_forgotten_classes_come_back_unless_they_are_erased(run: Run, things: Path) -> None:
    assert run("forget", things, "red").exit_code == 0
    assert counts(things) == {"green": 12}
    run("undo", things)
    assert counts(things) == {"green": 12, "red": 12}
    n_before = sum(path.is_file() for path in (things / "images").rglob("*"))
    assert run("forget", things, "red", "--erase").exit_code == 0
    assert sum(path.is_file() for path in (things / "images").rglob("*")) == n_before - 12
    assert run("check", things).exit_code == 0


def test_classes_that_were_forgotten_before_can_be_erased(run: Run, things: Path) -> None:
    assert run("forget", things, "red", "green").exit_code == 0
    result = run("forget", things, "red", "green", "--erase")
    assert result.exit_code == 0, result.stderr
    assert "'red' was forgotten before; 24 removed examples erased now" in result.stderr
    assert not any(path.is_file() for path in (things / "images").rglob("*"))


def test_a_misspelt_class_forgets_none(run: Run, things: Path) -> None:
    result = run("forget", things, "red", "gren")
    assert result.exit_code == 1
    assert "gren" in result.stderr
    assert counts(things) == {"green": 12, "red": 12}


@pytest.mark.parametrize(
    "arguments", [["things", "red", "-o", "x"], ["m.evergrow", "a", "--erase"]]
)
def test_options_of_the_other_kind_are_refused(
    run: Run, things: Path, arguments: list[str]
) -> None:
    assert run("forget", *arguments).exit_code == 2


def test_a_class_is_split_and_joined(run: Run, things: Path, tmp_path: Path) -> None:
    folder_of(tmp_path / "photos" / "colour", "blue", "grey", n=6)
    (tmp_path / "photos" / "colour" / "blue" / "0.png").rename(
        tmp_path / "photos" / "colour" / "0.png"
    )
    run("learn", things, "photos", "--fine")
    result = run("split", things, "colour")
    assert result.exit_code == 0, result.output
    listed = run("classes", things).stdout.splitlines()
    assert "\tblue\t5\t1" in listed
    asked = run("predict", things, "photos/colour/grey/1.png").stdout.rstrip("\n").split("\t")
    assert asked[1] == "colour"
    assert asked[3:] in ([], ["grey"])
    assert run("unsplit", things, "colour").exit_code == 0


def test_a_class_without_finer_names_cannot_be_split(run: Run, things: Path) -> None:
    result = run("split", things, "red")
    assert result.exit_code == 1
    assert "finer" in result.stderr or "fine" in result.stderr


def test_an_exported_model_answers_like_the_workspace(run: Run, things: Path, photos: Path) -> None:
    assert run("export", things, "-o", "model.evergrow").exit_code == 0
    ours = run("predict", things, photos, "--json", "--top", 2).stdout.splitlines()
    theirs = run("predict", "model.evergrow", photos, "--json", "--top", 2).stdout.splitlines()
    for one, other in zip(map(json.loads, ours), map(json.loads, theirs), strict=True):
        assert one["label"] == other["label"]
        assert one["top"][0]["probability"] == pytest.approx(other["top"][0]["probability"])
    assert type(evergrow.load("model.evergrow")).__name__ == "ImageClassifier"


def test_an_export_replaces_nothing_unless_forced(run: Run, things: Path) -> None:
    Path("model.evergrow").write_text("old")
    assert run("export", things, "-o", "model.evergrow").exit_code == 1
    assert Path("model.evergrow").read_text() == "old"
    assert run("export", things, "-o", "model.evergrow", "--force").exit_code == 0


def test_a_sound_workspace_is_called_so(run: Run, things: Path) -> None:
    result = run("check", things)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{things}: no damage found.\n"


def test_damage_is_named_with_what_mends_it(run: Run, things: Path) -> None:
    image = next(path for path in (things / "images").rglob("*") if path.is_file())
    image.unlink()
    result = run("check", things)
    assert result.exit_code == 1
    state, what, mend = result.stdout.splitlines()[0].split("\t")
    assert state == "damage"
    assert image.name[:8] in what
    assert mend
    assert json.loads(run("check", things, "--json").stdout.splitlines()[0])["what"] == what


def test_a_workspace_that_cannot_be_opened_can_be_checked(run: Run, things: Path) -> None:
    (things / "examples.sqlite").write_bytes(b"not a database" * 1000)
    result = run("check", things)
    assert result.exit_code == 1
    assert result.stdout.startswith("damage\t")


def test_leftovers_are_harmless_and_removed_on_request(run: Run, things: Path) -> None:
    (things / "images" / "ab").mkdir(exist_ok=True)
    (things / "images" / "ab" / ("ab" * 32)).write_bytes(b"left over by a crash")
    result = run("check", things)
    assert result.exit_code == 0
    assert result.stdout.startswith("harmless\t")
    assert run("check", things, "--mend").stdout.startswith("mended\t")
    assert run("check", things).stdout == ""


def test_a_backup_names_what_was_missing(run: Run, things: Path) -> None:
    image = next(path for path in (things / "images").rglob("*") if path.is_file())
    image.unlink()
    result = run("backup", things, "copy")
    assert result.exit_code == 1
    assert image.name in result.stderr


def test_a_backup_is_a_workspace(run: Run, things: Path) -> None:
    assert run("backup", things, "copy").exit_code == 0
    assert counts("copy") == counts(things)
    assert run("check", "copy").exit_code == 0
    again = run("backup", things, "copy")
    assert again.exit_code == 1
    assert "copy" in again.stderr


def test_several_changes_are_taken_back_in_one_go(run: Run, things: Path) -> None:
    run("rename", things, "red", "rouge")
    run("rename", things, "rouge", "rot")
    result = run("undo", things, "--count", 2)
    assert "undid 2 changes" in result.stderr
    assert "red" in run("classes", things).stdout
    result = run("undo", things, "--count", 2, "--since", 3)
    assert result.exit_code == 2
    assert "use only one of --event, --since and --count" in result.stderr
