"""evergrow export, label-issues and next-to-label: what they write, and what they refuse."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import evergrow
from evergrow import Embedder, ImageClassifier, NCMClassifier
from evergrow.export.onnx.comparison import OnnxAnswers
from evergrow.vision import OnnxModel
from tests.cli.conftest import terminal
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    """A model file of red and green, with a network of one layer inside."""
    folder = tmp_path_factory.mktemp("colours")
    photos = folder_of(folder / "photos", "red", "green", n=12)
    embedder = Embedder(OnnxModel(onnx_model().SerializeToString()), cache=False)
    ImageClassifier(embedder, NCMClassifier()).fit(photos).save(folder / "model.evergrow")
    return folder / "model.evergrow"


def test_a_model_file_becomes_an_onnx_file_that_answers_the_same(run, colours, photos):
    said = run.ok(f"export {colours} -o model.onnx").stderr
    assert "model.onnx: written, " in said
    answers = OnnxAnswers("model.onnx")
    paths = sorted(photos.glob("*/*"))
    found = np.array(answers.classes)[answers.run(paths)[0]]
    assert found.tolist() == evergrow.load(colours).predict(paths).tolist()


def test_a_check_shows_what_was_lost(run, colours, photos, monkeypatch):
    shown = run.ok(f"export {colours} -o model.onnx --weights int8 --check {photos} --json").stdout
    found = json.loads(shown)
    assert found["n_images"] == 6
    assert found["points_lost"] == 100 * (found["accuracy"] - found["accuracy_exported"])
    lines = run.ok(f"export {colours} -o model.onnx --check {photos} --force").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(found)
    terminal(monkeypatch, 80)
    table = run.ok(f"export {colours} -o model.onnx --check {photos} --force").stdout
    assert "Points lost" in table


def test_images_of_unknown_classes_are_left_out_of_a_check(run, colours, tmp_path):
    folder = folder_of(tmp_path / "more", "red", "blue", n=2)
    result = run.ok(f"export {colours} -o model.onnx --check {folder} --json")
    assert json.loads(result.stdout)["n_images"] == 2
    assert "2 images of classes that the model does not know left out" in result.stderr
    only = folder_of(tmp_path / "others", "blue", "grey", n=2)
    run.fails(f"export {colours} -o other.onnx --check {only}", says="knows none of the classes")


def test_an_export_replaces_nothing_unless_forced(run, colours):
    Path("model.onnx").write_text("old")
    run.fails(f"export {colours} -o model.onnx", says="use --force")
    assert Path("model.onnx").read_text() == "old"
    run.ok(f"export {colours} -o model.onnx --force")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (
            "export {model} -o model.pt",
            1,
            "must end in .evergrow, .html, .onnx, .zip, .csv, .jsonl or a slash",
        ),
        (
            "export {model} -o copy.evergrow --weights int8",
            1,
            "only files that end in .html or .onnx",
        ),
        ("export {model} -o model.onnx --weights int4", 2, "'int4' is not one of"),
        ("export {model} -o copy.evergrow --check .", 2, "only .onnx files can be checked"),
        ("export nothing.evergrow -o model.onnx", 1, "nothing.evergrow"),
        ("export {model}", 2, "Missing option '-o'"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_written(run, colours, line, code, says):
    run.fails(line.format(model=colours), code=code, says=says)
    assert not [path for path in Path().iterdir() if path.suffix in (".onnx", ".evergrow")]


@pytest.mark.parametrize("content", [b"", b"no model", None])
def test_a_corrupt_or_foreign_model_is_one_clear_error(run, colours, content):
    damaged = colours.read_bytes()[:-50] if content is None else content
    Path("damaged.evergrow").write_bytes(damaged)
    result = run.fails("export damaged.evergrow -o model.onnx")
    assert result.stderr.startswith("Error: ")
    assert not Path("model.onnx").exists()


def test_a_model_without_a_network_says_what_can_be_exported(run, model):
    run.fails(f"export {model} -o model.onnx", says="features='auto' or 'embed'")


def test_a_model_of_numbers_is_exported_but_cannot_be_checked_on_images(run, photos):
    NCMClassifier().fit(np.eye(3), ["a", "b", "c"]).save("numbers.evergrow")
    run.ok("export numbers.evergrow -o numbers.onnx")
    run.fails(f"export numbers.evergrow -o other.onnx --check {photos}", says="compare_onnx")


@pytest.fixture
def table(tmp_path):
    """Two clusters; row 3 has the wrong label, row 9 is a copy of row 8."""
    rng = np.random.default_rng(0)
    y = np.array(["cat", "dog"] * 40)
    X = rng.standard_normal((80, 5)) + 6 * (y == "dog")[:, None]
    X[9], y[9] = X[8], y[8]
    y[3] = "cat"
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    return tmp_path / "a.npz"


def test_issues_of_a_table_are_listed(run, table):
    result = run.ok(f"label-issues {table} --similarity 0.9999")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0][:4] == ["label", "3", "cat", "dog"]
    assert float(lines[0][4]) >= 0.5
    assert [line[:4] for line in lines if line[0] == "duplicate"] == [
        ["duplicate", "8", "cat", "1"],
        ["duplicate", "9", "cat", "1"],
    ]
    assert next(line[1] for line in lines if line[0] == "harm") == "3"
    assert "80 examples: 1 label probably wrong, 1 group of near-duplicates" in result.stderr


def test_issues_as_json_and_csv(run, table):
    objects = [
        json.loads(line) for line in run.ok(f"label-issues {table} --json").stdout.split("\n")[:-1]
    ]
    assert objects[0]["suggestion"] == "dog"
    assert "group" not in objects[0]
    rows = [
        *csv.DictReader(io.StringIO(run.ok("label-issues X.npy --labels y.npy --csv -q").stdout))
    ]
    assert [*rows[0]] == ["issue", "image", "label", "suggestion", "certainty", "group", "harm"]
    assert rows[0]["image"] == "3"
    assert len(rows) == len(objects)


def test_issues_of_a_folder_name_the_images(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=4)
    Image.open(photos / "red" / sorted(p.name for p in (photos / "red").iterdir())[0]).save(
        photos / "green" / "copy.png"
    )
    (photos / "green" / "broken.jpg").write_text("no image")
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    result = run.fails(
        f"label-issues {photos} --network small.onnx --similarity 0.99999 --json", says="broken.jpg"
    )
    copies = [
        one for one in map(json.loads, result.stdout.splitlines()) if one["issue"] == "duplicate"
    ]
    assert {one["label"] for one in copies if one["group"] == 1} == {"red", "green"}
    assert any(one["image"].endswith("copy.png") for one in copies)


def test_the_next_to_label_are_ranked(run, table, tmp_path):
    with np.load(table) as arrays:
        np.savez(tmp_path / "few.npz", X=arrays["X"][:6], y=arrays["y"][:6])
    result = run.ok("next-to-label X.npy -n 3")
    ranks, rows = zip(*(line.split("\t") for line in result.stdout.splitlines()), strict=True)
    assert ranks == ("1", "2", "3")
    assert len(set(rows)) == 3
    objects = run.ok("next-to-label X.npy --labelled few.npz -n 2 --json").stdout.splitlines()
    assert [json.loads(line)["rank"] for line in objects] == [1, 2]
    assert run.ok("next-to-label X.npy -n 1 --csv").stdout.splitlines()[0] == "rank,image"


def test_unlabelled_images_are_named(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    result = run.ok(f"next-to-label {photos} --labelled {photos} --network small.onnx -n 2")
    assert all(str(photos) in line for line in result.stdout.splitlines())


def test_a_table_without_labels_is_refused(run, table):
    run.fails("label-issues X.npy", says="has no labels")


def test_labels_of_a_folder_are_refused(run, table, tmp_path):
    run.fails(f"label-issues {tmp_path} --labels y.npy", code=2, says="--labels is for .npy")


def test_a_missing_file_is_reported(run):
    run.fails("label-issues nothing.npz", says="no such file")


def test_harm_is_in_percent_already():
    from evergrow.cli.curation import _shown

    shown = [_shown("harm", 0.8), _shown("certainty", 0.8), _shown("harm", None)]
    assert shown == ["0.8%", "80.0%", None]
