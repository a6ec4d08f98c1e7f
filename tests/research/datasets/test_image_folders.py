"""Folders of images as data sets."""

from pathlib import Path

import numpy as np
import pytest

from evergrow import BadImageWarning, DatasetError, DatasetWarning
from evergrow.research import load_dataset
from evergrow.vision import Embedder
from tests.vision.images.drawn import encoded, quarters


def put(folder, *names):
    for place, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(quarters(4 + place)))
    return folder


def names(folder, paths):
    return [Path(path).relative_to(folder).as_posix() for path in paths]


def pets(folder):
    return put(folder, *(f"{pet}/{number}.png" for pet in ("cat", "dog") for number in range(8)))


def test_a_share_of_each_class_is_held_out(tmp_path):
    data = load_dataset(pets(tmp_path / "pets"), test_share=0.25)
    assert data.name == "pets"
    assert data.y_test.tolist() == ["cat", "cat", "dog", "dog"]
    assert data.X_train.shape == (12,)
    found = names(tmp_path / "pets", np.concatenate([data.X_train, data.X_test]))
    assert sorted(found) == sorted(f"{pet}/{n}.png" for pet in ("cat", "dog") for n in range(8))
    for path, label in zip(data.X_test, data.y_test, strict=True):
        assert Path(path).parent.name == label


def test_folders_called_train_and_test_say_what_is_for_testing(tmp_path):
    put(tmp_path, "train/cat/1.png", "train/dog/2.png", "test/cat/3.png", "test/dog/4.png")
    data = load_dataset(tmp_path)
    assert names(tmp_path, data.X_train) == ["train/cat/1.png", "train/dog/2.png"]
    assert names(tmp_path, data.X_test) == ["test/cat/3.png", "test/dog/4.png"]
    with pytest.raises(ValueError, match="test_share cannot be used"):
        load_dataset(tmp_path, test_share=0.5)


def test_a_class_called_train_is_a_class(tmp_path):
    put(tmp_path, "train/1.png", "train/2.png", "plane/1.png", "plane/2.png")
    assert load_dataset(tmp_path).classes.tolist() == ["plane", "train"]


def test_other_folders_next_to_train_and_test_are_named(tmp_path):
    put(tmp_path, "train/a/1.png", "test/a/1.png", "val/a/1.png")
    with pytest.warns(DatasetWarning, match="other folders are not read: 'val'") as caught:
        load_dataset(tmp_path)
    assert caught[0].filename == __file__


def test_what_is_not_taken_is_named(tmp_path):
    put(tmp_path, "a/1.png", "a/2.png", "stray.png")
    with pytest.warns(BadImageWarning, match="it is not in a class folder") as caught:
        load_dataset(tmp_path)
    assert caught[0].filename == __file__


def test_a_class_of_one_image_stays_in_training(tmp_path):
    put(tmp_path, "a/1.png", "a/2.png", "b/1.png")
    with pytest.warns(DatasetWarning, match="1 class without test samples.*: 'b'"):
        data = load_dataset(tmp_path)
    assert data.y_train.tolist() == ["a", "b"]


def test_classes_in_test_alone_are_refused(tmp_path):
    put(tmp_path, "train/a/1.png", "test/a/1.png", "test/b/1.png")
    with pytest.raises(DatasetError, match="without training samples: 'b'"):
        load_dataset(tmp_path)


def test_the_hash_depends_on_contents_and_names_and_not_on_the_place(tmp_path):
    first, second = load_dataset(pets(tmp_path / "a")), load_dataset(pets(tmp_path / "b"))
    assert first.sha256 == second.sha256
    (tmp_path / "b" / "cat" / "0.png").write_bytes(encoded(quarters(9)))
    assert load_dataset(tmp_path / "b").sha256 != first.sha256
    with pytest.raises(DatasetError, match="16 files"):
        load_dataset(tmp_path / "b", sha256=first.sha256)


def test_paths_become_features(tmp_path):
    def mean_colours(images):
        return [image.mean(axis=(0, 1)) for image in images]

    data = load_dataset(pets(tmp_path)).transformed(Embedder(mean_colours))
    assert data.X_train.shape == (12, 3)
    assert data.X_test.dtype == np.float32


def test_a_path_that_is_not_a_folder_is_refused(tmp_path):
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        load_dataset("images", path=tmp_path / "nowhere")
