"""evergrow export of a workspace for other software."""

import csv
import json
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evergrow.export.html import runtime
from evergrow.export.onnx.comparison import OnnxAnswers
from evergrow.vision import find_labelled
from tests.cli.test_formats import SOURCES, rows_of, source
from tests.cli.workspace.conftest import N_PICTURES, counts
from tests.vision.images.videos import write_video


def test_a_workspace_becomes_an_onnx_file_that_answers_the_same(run, things, photos):
    run.ok(f"export {things} -o model.onnx")
    answers = OnnxAnswers("model.onnx")
    paths = sorted(photos.glob("*/*"))
    index, shares, score, is_unknown = answers.run(paths)
    lines = run.ok(f"predict {things} {photos} --json").stdout.splitlines()
    for k, told in enumerate(map(json.loads, lines)):
        assert told["known"] == (not is_unknown[k])
        assert told["top"][0]["name"] == answers.classes[index[k]]
        np.testing.assert_allclose(told["top"][0]["probability"], shares[k].max(), atol=1e-5)
        np.testing.assert_allclose(told["novelty"], score[k], atol=1e-3)
    assert answers.metadata["unknown_label"] == "unknown"


def test_a_workspace_without_examples_has_nothing_to_export(run, network):
    run.ok(f"init empty --features {network} -q")
    run.fails("export empty -o model.onnx", says="no examples yet")


@pytest.fixture
def has_runtime():
    try:
        runtime.load_runtime()
    except runtime.RuntimeMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def lacks_runtime(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "INCLUDED", tmp_path / "included")
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_workspace_and_its_model_file_become_pages(run, has_runtime, things, tmp_path):
    model, page = tmp_path / "things.evergrow", tmp_path / "things.html"
    assert "MB." in run.ok(f"export {things} -o {page}").stderr
    run.ok(f"export {things} -o {model}")
    run.ok(f"export {model} -o {tmp_path / 'model.html'} --weights int8")
    for path in (page, tmp_path / "model.html"):
        assert path.read_bytes().startswith(b"<!doctype html>")


def test_without_runtime_and_npm_the_error_says_what_to_do(
    run, lacks_runtime, things, monkeypatch, tmp_path
):
    monkeypatch.setattr(runtime.shutil, "which", lambda _: None)
    result = run(f"export {things} -o {tmp_path / 'things.html'}")
    assert result.exit_code == 1
    assert "install Node.js" in result.stderr
    assert not (tmp_path / "things.html").exists()


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


def test_a_workspace_learns_every_format_and_gives_it_back(run, things, tmp_path):
    before = json.loads(run.ok(f"status {things} --json").stdout)["n_examples"]
    for k, kind in enumerate(SOURCES):
        path, more = source(kind, tmp_path / kind, seed=200 + 10 * k)
        assert "Taught 6 images" in run.ok(f"learn {things} {path}{more}").stderr
    run.ok(f"export {things} -o pictures/ --coco")
    run.ok(f"export {things} -o labels.csv")
    expected = find_labelled("pictures")
    assert len(expected.sources) == before + 6 * len(SOURCES)
    for name in ("labels.csv", "annotations.json"):
        found = find_labelled(f"pictures/{name}")
        assert sorted(found.paths) == sorted(expected.paths)
        run.ok(f"evaluate {things} pictures/{name}")
    assert len(rows_of(Path("labels.csv").read_text())) == len(expected.sources)
    run.fails(f"export {things} -o x.evergrow --coco", code=2, says="--coco goes with pictures")
    run.fails(f"export {things} -o labels.csv", says="use --force")


def test_a_workspace_answers_frames(run, trained_workspace, tmp_path):
    write_video(tmp_path / "clip.avi", "red", "green")
    result = run.ok(f"predict {trained_workspace} clip.avi --csv")
    assert len(rows_of(result.stdout)) == 4
    assert [row["label"] for row in rows_of(result.stdout)] == ["red"] * 2 + ["green"] * 2
