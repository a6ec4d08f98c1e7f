"""evergrow label-issues and next-to-label, by exit code and output."""

import csv
import io
import json

import numpy as np
import pytest
from PIL import Image

from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


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
