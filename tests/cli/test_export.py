"""evergrow export: a model file for other software, and what the export has lost."""

import json
from pathlib import Path

import numpy as np
import pytest

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
