"""Shards of embeddings from folders of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import BadImageWarning, ImageError, NCMClassifier, ShardError, open_shards
from evergrow.foundation.engine import Arrays, LocalEngine, use_engine
from evergrow.storage import Sharded
from evergrow.vision import Embedder, find_labelled, shard_images
from tests.foundation.engines import Shuffled
from tests.storage.shards.folders import files_of
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("network") / "small.onnx"
    file.write_bytes(onnx_model().SerializeToString())
    return file


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "photos", "red", "green", "blue", n=5)


@pytest.fixture
def shard(tmp_path: Path, photos: Path, network: Path) -> Callable[..., Sharded]:
    """Embed the photos, or another folder, into shards of four images."""

    def run(folder: Path = photos, model: Path = network, **options: Any) -> Sharded:
        embedder = Embedder(model, cache=tmp_path / "cache")
        settings = {"rows_per_shard": 4, **options}
        return shard_images(tmp_path / "shards", folder, embedder=embedder, **settings)

    return run


def test_shards_hold_the_vectors_of_all_images(
    shard: Any, tmp_path: Path, photos: Path, network: Path
) -> None:
    assert shard() == Sharded(15, 0)
    shards, found = open_shards(tmp_path / "shards"), find_labelled(photos)
    np.testing.assert_array_equal(shards[:], Embedder(network, cache=False).transform(found.paths))
    np.testing.assert_array_equal(np.asarray(shards.labels), found.labels)
    assert [part.last - part.first for part in shards.parts] == [4, 4, 4, 3]
    assert NCMClassifier().fit(shards, shards.labels).score(shards, shards.labels) == 1.0


def test_a_moved_folder_adds_nothing(shard: Any, tmp_path: Path, photos: Path) -> None:
    shard()
    moved = photos.rename(tmp_path / "moved")
    assert shard(moved).n_added == 0


def test_only_new_and_changed_images_are_added(shard: Any, tmp_path: Path, photos: Path) -> None:
    shard()
    folder_of(photos, "red", "grey", n=1, seed=50)
    (photos / "blue" / "0.png").write_bytes((photos / "green" / "0.png").read_bytes())
    assert shard() == Sharded(3, 14)
    shards = open_shards(tmp_path / "shards")
    assert shards.classes.tolist() == ["blue", "green", "red", "grey"]
    assert shards.labels[15:].tolist() == ["blue", "grey", "red"]


def test_other_workers_write_the_same_shards(
    shard: Any, tmp_path: Path, photos: Path, network: Path
) -> None:
    shard()
    here = open_shards(tmp_path / "shards")
    engine = Shuffled(repeats=True)
    with use_engine(engine):
        embedder = Embedder(network, cache=False)
        done = shard_images(tmp_path / "there", photos, embedder=embedder, rows_per_shard=4)
        again = shard_images(tmp_path / "there", photos, embedder=embedder, rows_per_shard=4)
    assert (done, again) == (Sharded(15, 0), Sharded(0, 15))
    assert open_shards(tmp_path / "there").digest == here.digest
    assert files_of(tmp_path / "there") == files_of(tmp_path / "shards")
    assert len(engine.sizes) == 4 + 1


def test_an_interrupted_run_goes_on_where_it_was(
    shard: Any, tmp_path: Path, photos: Path, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.storage.shards.importers.source._COMMIT_SECONDS", 0.0)
    plain = LocalEngine.run

    def interrupted(*arguments: Any, **options: Any) -> Iterator[tuple[int, Arrays]]:
        for place, result in plain(*arguments, **options):
            if place == 2:
                raise KeyboardInterrupt
            yield place, result

    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shard()
    assert len(open_shards(tmp_path / "shards")) == 8
    assert shard() == Sharded(7, 8)
    shards, found = open_shards(tmp_path / "shards"), find_labelled(photos)
    np.testing.assert_array_equal(shards[:], Embedder(network, cache=False).transform(found.paths))
    assert len(files_of(tmp_path / "shards")) == 1 + 3 * len(shards.parts)


def test_a_bad_image_stops_the_run_and_what_was_finished_stays(
    shard: Any, tmp_path: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.storage.shards.importers.source._COMMIT_SECONDS", 0.0)
    (photos / "red" / "4.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"4\.png"):
        shard()
    assert len(open_shards(tmp_path / "shards")) == 12
    with pytest.warns(BadImageWarning, match="1 image was left out"):
        done = shard(on_error="skip")
    assert (done.n_added, done.n_present, len(done.problems)) == (2, 12, 1)


def test_an_image_that_was_bad_is_added_after_its_repair(shard: Any, photos: Path) -> None:
    file = photos / "red" / "2.png"
    content = file.read_bytes()
    file.write_bytes(b"")
    with pytest.warns(BadImageWarning):
        shard(on_error="skip")
    file.write_bytes(content)
    assert shard() == Sharded(1, 14)


def test_an_error_if_no_image_can_be_read(shard: Any, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "unreadable", "red", n=2)
    for file in (photos / "red").iterdir():
        file.write_bytes(b"x")
    with pytest.raises(ValueError, match="none of the 2 images"):
        shard(photos, on_error="skip")
    assert not (tmp_path / "shards").exists()


def test_vectors_of_another_network_do_not_go_into_one_folder(
    shard: Any, tmp_path: Path, photos: Path, network: Path
) -> None:
    shard()
    other = tmp_path / "other.onnx"
    other.write_bytes(onnx_model(scale=2.0).SerializeToString())
    folder_of(photos, "grey", n=1)
    with pytest.raises(ShardError, match="computed by another network"):
        shard(model=other)


def test_folders_named_by_numbers_are_classes_of_that_kind(
    shard: Any, tmp_path: Path, photos: Path
) -> None:
    from evergrow import write_shards

    write_shards(tmp_path / "shards", [(np.zeros((2, 5), np.float32), [3, 7])])
    for number, name in enumerate(("red", "green", "blue")):
        (photos / name).rename(photos / str(number + 6))
    shard()
    shards = open_shards(tmp_path / "shards")
    assert shards.classes.tolist() == [3, 7, 6, 8]
    assert np.bincount(shards.labels.codes).tolist() == [1, 6, 5, 5]
