"""Teaching image files: folders of classes, or files with one label."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evergrow import BadImageWarning, ImageError, InvalidInputError, WorkspaceError
from evergrow.vision import Embedder, OnnxModel
from evergrow.workspace import Workspace
from evergrow.workspace.changes import image_batches
from tests.vision.embedding.models import onnx_model, staged_model
from tests.workspace.builders import counts, labels, new_workspace


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    network = tmp_path_factory.mktemp("network") / "network.onnx"
    network.write_bytes(onnx_model().SerializeToString())
    return Embedder(network, cache=False)


@pytest.fixture
def workspace(tmp_path, embedder):
    with Workspace.create(tmp_path / "workspace", features=embedder) as workspace:
        yield workspace


def draw(path: Path, seed: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def photos(tmp_path):
    for seed, name in enumerate(["cat/1.png", "cat/2.png", "dog/beagle/1.png", "dog/2.png"]):
        draw(tmp_path / "photos" / name, seed)
    return tmp_path / "photos"


def test_sub_folders_are_classes(workspace, photos):
    taught = workspace.teach_images(photos)
    assert counts(workspace) == {"cat": 2, "dog": 2}
    assert [one.example.id for one in taught.results] == [1, 2, 3, 4]
    assert taught.problems == []


def test_a_workspace_keeps_the_stages_of_its_embedder(tmp_path, photos):
    network = OnnxModel(staged_model().SerializeToString())
    embedder = Embedder(network, stages=(2,), cache=False)
    with Workspace.create(tmp_path / "staged", features=embedder) as workspace:
        workspace.teach_images(photos)
    with Workspace.open(tmp_path / "staged") as workspace:
        assert workspace.embedder.blocks_ == {"head": 5, "stage2": 3}
        expected = embedder.transform([photos / "cat" / "1.png"])[0]
        np.testing.assert_array_equal(workspace.embedding(1), expected)


def test_an_example_has_the_vector_the_file_and_the_thumbnail_of_its_image(
    workspace, photos, embedder
):
    workspace.teach_images(photos)
    content = (photos / "cat" / "1.png").read_bytes()
    example = workspace.example(1)
    assert (example.media_type, example.width, example.height) == ("image/png", 12, 9)
    assert workspace.picture(1) == content
    assert workspace.thumbnail(1).startswith(b"\xff\xd8")
    assert np.array_equal(workspace.embedding(1), embedder.transform([content])[0])
    assert workspace.check() == []


def test_folders_within_classes_can_be_fine_names(workspace, photos):
    workspace.teach_images(photos, fine_folders=True)
    assert labels(workspace)[3] == ("dog", None)
    assert labels(workspace)[4] == ("dog", "beagle")


def test_files_and_folders_can_share_one_label(workspace, photos):
    workspace.teach_images([photos / "cat", photos / "dog" / "2.png"], "pet", fine="small")
    assert counts(workspace) == {"pet": 3}
    assert set(labels(workspace).values()) == {("pet", "small")}
    workspace.teach_images(str(photos / "dog" / "beagle" / "1.png"), "pet")
    assert counts(workspace) == {"pet": 4}


def test_known_images_are_not_taught_twice(workspace, photos):
    workspace.teach_images(photos)
    again = workspace.teach_images(photos)
    assert all(one.duplicate for one in again.results)
    assert counts(workspace) == {"cat": 2, "dog": 2}


def test_an_image_that_cannot_be_read_is_an_error_and_earlier_batches_stay(
    workspace, photos, monkeypatch
):
    monkeypatch.setattr(image_batches, "_MOST_IMAGES", 1)
    (photos / "cat" / "2.png").write_bytes(b"text")
    with pytest.raises(ImageError, match=r"2\.png"):
        workspace.teach_images(photos)
    assert counts(workspace) == {"cat": 1}


def test_one_error_names_all_images_that_cannot_be_read(workspace, photos, monkeypatch):
    monkeypatch.setattr(image_batches, "_MOST_IMAGES", 1)
    for name in ("cat/2.png", "dog/2.png"):
        (photos / name).write_bytes(b"text")
    with pytest.raises(ImageError, match=r"read .*cat.2\.png'.*; .*dog.2\.png'") as caught:
        workspace.teach_images(photos)
    assert len(caught.value.more) == 1
    assert counts(workspace) == {"cat": 1}


def test_images_that_cannot_be_read_can_be_skipped(workspace, photos):
    (photos / "cat" / "2.png").write_bytes(b"text")
    taught = workspace.teach_images(photos, on_error="skip")
    assert counts(workspace) == {"cat": 1, "dog": 2}
    (problem,) = taught.problems
    assert problem.source.endswith("2.png'")


def test_files_that_are_not_images_are_named_in_a_warning(workspace, photos):
    (photos / "stray.png").write_bytes(b"")
    with pytest.warns(BadImageWarning, match="stray"):
        workspace.teach_images(photos, on_error="skip")


def test_every_batch_is_reported_within_the_guard(workspace, photos, monkeypatch):
    monkeypatch.setattr(image_batches, "_MOST_IMAGES", 3)
    seen: list[object] = []

    @contextlib.contextmanager
    def guard():
        seen.append("begin")
        yield
        seen.append("end")

    workspace.teach_images(
        photos, on_batch=lambda batch: seen.append(len(batch.results)), guard=guard
    )
    assert seen == ["begin", 3, "end", "begin", 1, "end"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "cat", "fine_folders": True}, "leave out the label"),
        ({"fine": "small"}, "give the label too"),
        ({"on_error": "ignore"}, "on_error must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"label": "a\x00b"}, "control character"),
    ],
)
def test_wrong_options_are_refused_before_any_work(workspace, photos, options, message):
    with pytest.raises(InvalidInputError, match=message):
        workspace.teach_images(photos, **options)
    assert workspace.version == 0


def test_a_list_of_files_needs_a_label(workspace, photos):
    with pytest.raises(WorkspaceError, match="needs a label"):
        workspace.teach_images([photos / "cat" / "1.png"])


def test_a_workspace_of_embeddings_takes_no_images(tmp_path, photos):
    with (
        new_workspace(tmp_path) as workspace,
        pytest.raises(WorkspaceError, match="takes embeddings, not images"),
    ):
        workspace.teach_images(photos)
