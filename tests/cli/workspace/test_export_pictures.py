"""Export of pictures and of the audit log, and pictures that are learnt again elsewhere."""

import csv
import json
import zipfile
from collections import Counter

import pytest

import evergrow
from tests.cli.workspace.conftest import N_PICTURES, counts

HOSTILE = ["left/right", "NUL", "..", "Mug", "mug", "labels.csv", "=1+1", "قهوة ☕", "m" * 200]


@pytest.fixture
def hostile(run, tmp_path, network, photos):
    """A workspace of classes that no file system likes, with two pictures each."""
    from tests.vision.classifier.pictures import encode_png, picture

    run.ok(f"init hostile --features {network} -q")
    from evergrow.workspace import Workspace

    with Workspace.open(tmp_path / "hostile") as workspace:
        for number, label in enumerate(HOSTILE):
            for more in range(2):
                path = tmp_path / "one.png"
                path.write_bytes(encode_png(picture("red", 2 * number + more)))
                workspace.teach_images([path], label, fine="fine" if more else None)
    return tmp_path / "hostile"


def unpack(tmp_path, name="pictures.zip"):
    with zipfile.ZipFile(tmp_path / name) as archive:
        archive.extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_pictures_are_learnt_again_by_a_new_workspace(run, things, tmp_path, network):
    said = run.ok(f"export {things} -o pictures.zip").stderr
    assert said == f"pictures.zip: {2 * N_PICTURES} pictures of 2 classes.\n"
    folder = unpack(tmp_path)
    run.ok(f"init again --features {network} -q")
    said = run.ok(f"learn again {folder}").stderr
    assert "Warning" not in said
    assert counts(tmp_path / "again") == counts(things)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["pictures.zip", "pictures/"])
def test_classes_of_any_name_and_their_fine_classes_come_back(
    run, hostile, tmp_path, network, output
):
    run.ok(f"export {hostile} -o {output}")
    folder = tmp_path / "pictures" if output.endswith("/") else unpack(tmp_path)
    run.ok(f"init again --features {network} -q")
    # As it is; two names differ only by case.
    run.ok(f"learn again {output} --fine --yes")
    assert counts(tmp_path / "again") == counts(hostile) == dict.fromkeys(HOSTILE, 2)
    run.ok("export again -o again/../second/")
    tables = []
    for place in (folder, tmp_path / "second"):
        with open(place / "labels.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        tables.append(Counter((row["label"], row["fine"], row["image"]) for row in rows))
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_pictures_are_learnt_by_a_model_file(run, hostile, tmp_path):
    run.ok(f"export {hostile} -o pictures.zip -q")
    run.ok("fit pictures.zip -o model.evergrow --features hsl -q")
    assert set(evergrow.load("model.evergrow").classes_) == set(HOSTILE)


def test_a_zip_file_of_something_else_is_an_error(run, things, tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no zip file")
    run.fails(f"learn {things} a.zip", says="'a.zip' cannot be unpacked")
    run.fails(f"learn {things} b.zip", says="no such file or folder")


def test_an_export_of_pictures_replaces_nothing_unless_forced(run, things, tmp_path):
    (tmp_path / "pictures.zip").write_text("mine")
    run.fails(f"export {things} -o pictures.zip", says="use --force")
    assert (tmp_path / "pictures.zip").read_text() == "mine"
    run.ok(f"export {things} -o pictures.zip --force")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/mine.txt").write_text("mine")
    run.fails(f"export {things} -o pictures/ --force", says="is not empty")
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["mine.txt"]


def test_missing_pictures_are_reported(run, things, tmp_path):
    lost = next(path for path in (things / "images").rglob("*") if path.is_file())
    lost.unlink()
    said = run.ok(f"export {things} -o pictures.zip").stderr
    assert f"{2 * N_PICTURES - 1} pictures of 2 classes" in said
    assert "Warning: the files of 1 picture are missing" in said


def test_the_audit_log_has_a_line_for_each_change(run, things, tmp_path):
    run(f"rename {things} red rot")
    said = run.ok(f"export {things} -o log.jsonl").stderr
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert said == f"log.jsonl: {len(events)} changes.\n"
    assert (events[0]["kind"], events[-1]["kind"]) == ("teach", "rename")


@pytest.mark.parametrize("output", ["pictures.zip", "pictures/", "log.jsonl"])
def test_a_model_file_has_no_pictures_and_no_log(run, things, output, tmp_path):
    run.ok(f"export {things} -o model.evergrow")
    run.fails(f"export model.evergrow -o {output}", says="is not a workspace")
    assert not (tmp_path / output).exists()


@pytest.mark.parametrize("option", ["--weights int8", "--check photos"])
def test_options_of_models_are_refused_for_pictures(run, things, option):
    run.fails(f"export {things} -o pictures.zip {option}", code=2, says="are for models")


def test_an_empty_workspace_has_nothing_to_export(run, network, tmp_path):
    run.ok(f"init empty --features {network} -q")
    run.fails("export empty -o pictures.zip", says="no examples yet")
    assert not (tmp_path / "pictures.zip").exists()
