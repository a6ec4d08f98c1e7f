"""Data sets from files and folders: what is read, what is refused, and nothing run."""

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from evergrow import BadImageWarning, DatasetError, DatasetWarning, ImageError, write_shards
from evergrow.compare import Dataset, load_dataset
from evergrow.compare.data import embed_images, is_image_dataset
from evergrow.storage.ragged import RaggedArray
from evergrow.vision import Embedder
from tests.compare.made import mixture
from tests.vision.classifier.pictures import folder_of
from tests.vision.images.drawn import encoded, quarters

X, Y = np.arange(24.0).reshape(8, 3), np.array([5, 5, 5, 5, 7, 7, 7, 7])


def saved(folder, name="data.npz", **arrays):
    np.savez(folder / name, **arrays)
    return folder / name


def four(**changed):
    return {"X_train": X, "y_train": Y, "X_test": X[::2], "y_test": Y[::2], **changed}


# --- Selections of a data set


def test_part_of_the_classes_keeps_names_and_the_hash():
    data = Dataset("four", X, Y, X, Y, {5: 0, 7: 1}, class_names={5: "a", 7: "b"})
    part = data.of_classes([7])
    assert (part.y_test.tolist(), part.class_names[7], part.sha256) == ([7] * 4, "b", data.sha256)
    with pytest.raises(ValueError, match=r"'four' has no classes \[8\]"):
        data.of_classes([5, 8])


def test_the_first_samples_of_each_class_are_taken():
    part = mixture(3, 2, 5, 4).per_class(2, 1)
    assert (part.y_train.tolist(), part.y_test.tolist()) == ([0, 0, 1, 1, 2, 2], [0, 1, 2])
    with pytest.raises(ValueError, match="at least one sample"):
        part.per_class(0)


def test_every_sample_needs_a_label():
    with pytest.raises(ValueError, match="4 train samples and 3 labels"):
        Dataset("odd", np.eye(4), np.arange(3), np.eye(4), np.arange(4))


def test_a_long_tail_has_shares_that_fall_geometrically():
    data = mixture(5, 3, n_train=80, n_test=4)
    found = data.long_tailed(16.0, random_state=2)
    assert sorted(np.bincount(found.y_train).tolist()) == [5, 10, 20, 40, 80]
    assert len(found.y_test) == len(data.y_test)
    assert np.bincount(data.long_tailed(1e6).y_train).min() == 1
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        data.long_tailed(0.5)


# --- Features in files


def test_four_arrays_are_read_as_they_are(tmp_path):
    path = saved(tmp_path, "pets.npz", **four())
    data = load_dataset(str(path))
    assert data.name == "pets"
    assert data.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    np.testing.assert_array_equal(data.X_train, X)
    np.testing.assert_array_equal(data.X_test, X[::2])
    np.testing.assert_array_equal(data.y_test, Y[::2])


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, ">f4", bool])
def test_images_of_every_type_become_float32_rows(tmp_path, dtype):
    images = np.asfortranarray(np.arange(96).reshape(8, 4, 3).astype(dtype))
    labels = Y.astype(">i2")[:, None]
    path = saved(tmp_path, **four(X_train=images, X_test=images[::2], y_train=labels), other=[{}])
    data = load_dataset(path)
    assert (data.X_train.dtype, data.y_train.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(data.X_train, images.reshape(8, 12))
    np.testing.assert_array_equal(data.y_train, Y)


def test_labels_may_be_text_or_bytes_of_text(tmp_path):
    names = np.where(Y == 5, "cät", "dog")
    path = saved(tmp_path, **four(y_train=names, y_test=np.char.encode(names, "utf-8")[::2]))
    data = load_dataset(path)
    assert data.classes.tolist() == ["cät", "dog"]
    assert data.y_test.tolist() == names[::2].tolist()


def test_a_split_in_the_file_is_followed(tmp_path):
    data = load_dataset(saved(tmp_path, X=X, y=Y, split=np.array(["train", "test"] * 4)))
    np.testing.assert_array_equal(data.X_train, X[::2])
    np.testing.assert_array_equal(data.y_test, Y[1::2])


def test_without_a_split_a_share_of_each_class_is_for_testing(tmp_path):
    y = np.repeat([1, 2, 3], [20, 8, 2])
    path = saved(tmp_path, X=np.arange(30.0)[:, None], y=y)
    data, again, other = (load_dataset(path, random_state=seed) for seed in (0, 0, 1))
    assert np.bincount(data.y_test).tolist() == [0, 5, 2, 1]
    assert sorted(np.concatenate([data.X_train, data.X_test])[:, 0]) == list(range(30))
    np.testing.assert_array_equal(data.y_test, y[data.X_test[:, 0].astype(int)])
    np.testing.assert_array_equal(data.X_test, again.X_test)
    assert not np.array_equal(data.X_test, other.X_test)


def test_single_samples_stay_in_training_with_one_warning(tmp_path):
    y = np.concatenate([Y, np.arange(100, 107)])
    path = saved(tmp_path, X=np.ones((15, 2)), y=y)
    with pytest.warns(DatasetWarning, match=r"7 classes .*: 100, .* 104 and 2 more$") as caught:
        data = load_dataset(path)
    assert [each.filename for each in caught] == [__file__]
    assert {*range(100, 107)} <= set(data.y_train.tolist())
    assert set(data.y_test.tolist()) == {5, 7}


def test_parents_and_names_are_found_by_label(tmp_path):
    listed = {
        "fine_to_coarse": np.array([0, 0, 0, 0, 0, 1, 0, 2], np.uint8),
        "class_names": np.array([f"fine{k}" for k in range(8)]),
    }
    data = load_dataset(saved(tmp_path, **four(), **listed))
    assert data.parents == {5: 1, 7: 2}
    assert data.class_names == {5: "fine5", 7: "fine7"}


def test_labels_of_an_npy_file_come_from_another(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    np.save(tmp_path / "y.npy", Y)
    data = load_dataset(tmp_path / "x.npy", labels=tmp_path / "y.npy", test_share=0.5)
    assert (data.name, len(data.X_train), len(data.X_test)) == ("x", 4, 4)


BAD_ARRAYS = {
    "objects": (four(X_train=np.array([[{}]] * 8, dtype=object)), "'X_train' .* Python objects"),
    "NaN": (
        four(X_train=np.where(np.arange(24).reshape(8, 3) == 16, np.nan, X)),
        "'X_train' .* NaN in row 5, feature 1",
    ),
    "too large": (four(X_train=X * 1e300), "not a finite float32 in row 0, feature 1"),
    "fewer labels": (four(y_train=Y[:-1]), "8 samples and .* 7 labels"),
    "missing label": (four(y_train=np.where(Y == 5, np.nan, 7.0)), "an invalid label in row 0"),
    "blank label": (four(y_train=np.array(["a", " "] * 4)), "an invalid label in row 1"),
    "half a label": (four(y_train=Y + 0.5), "an invalid label in row 0.*whole numbers or strings"),
    "large label": (four(y_train=np.array([2**63] * 8, np.uint64)), "an invalid label in row 0"),
    "no UTF-8": (four(y_train=np.array([b"\xff"] * 8)), "not UTF-8 text"),
    "complex": (four(X_train=X * 1j), "'X_train' .* complex128"),
    "complex labels": (four(y_train=Y * 1j), "'y_train' .* complex128"),
    "flat": (four(X_train=Y), r"'X_train' .* got shape \(8,\)"),
    "no rows": (four(X_test=X[:0], y_test=Y[:0]), "'X_test' .* is empty"),
    "table of labels": (four(y_train=X), r"'y_train' .* got shape \(8, 3\)"),
    "other features": (four(X_test=X[::2, :2]), "3 features and test samples 2"),
    "two kinds of labels": (four(y_test=Y[::2].astype(str)), "both numbers or both strings"),
    "unknown test class": (four(y_test=Y[::2] + 1), "2 classes without training samples: 6, 8"),
    "no labels": ({"X": X}, "lacks y: .* it holds 'X'"),
    "no test labels": ({"X_train": X, "y_train": Y, "X_test": X}, "lacks y_test"),
    "nothing of it": ({"a": X}, "lacks X, y: .* it holds 'a'"),
    "both layouts": (four(X=X, y=Y), "holds both X, y and X_train"),
    "other split": (
        {"X": X, "y": Y, "split": np.array(["train", "val"] * 4)},
        r"'test' .* \['val'\]",
    ),
    "short split": ({"X": X, "y": Y, "split": np.array(["train"])}, "1 entries for 8 samples"),
    "nothing to test": (
        {"X": X, "y": Y, "split": np.array(["train"] * 8)},
        "no samples for testing",
    ),
    "few names": (four(class_names=np.array(["a"])), "1 entries, but labels go from 5 to 7"),
}


@pytest.mark.parametrize(("arrays", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS.keys())
def test_invalid_arrays_are_refused(tmp_path, arrays, message):
    with pytest.raises(DatasetError, match=message):
        load_dataset(saved(tmp_path, **arrays))


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_pickles_are_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path, X=np.array([Harmful()], dtype=object), y=Y)
    np.save("x.npy", np.array([Harmful()], dtype=object), allow_pickle=True)
    np.save("y.npy", Y)
    for source, options in ((path, {}), ("x.npy", {"labels": "y.npy"})):
        with pytest.raises(DatasetError, match="Python objects"):
            load_dataset(source, **options)
    assert not (tmp_path / "harm").exists()


def test_more_memory_than_allowed_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((1000, 1000), np.uint8), y=np.zeros(1000))
    assert (tmp_path / "bomb.npz").stat().st_size < 10_000
    with pytest.raises(DatasetError, match=r"needs 4000000 bytes .* increase max_bytes"):
        load_dataset(tmp_path / "bomb.npz", max_bytes=2_000_000)


def test_damaged_archives_are_refused(tmp_path):
    path = saved(tmp_path, **four())
    whole = path.read_bytes()
    flipped = bytearray(whole)
    # A bit of the first array's values.
    flipped[200] ^= 1
    for content in (b"", b"text", whole[:-30], whole.replace(b"NUMPY", b"NUMPI"), flipped):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"data\.npz'"):
            load_dataset(path)


def test_an_archive_with_one_array_twice_is_refused(tmp_path):
    path = saved(tmp_path, **four())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("X_train.npy", b"")
    with pytest.raises(DatasetError, match="holds an array twice"):
        load_dataset(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "y.npy"}, "labels cannot be used"),
        ({"test_share": 0.5}, "test_share cannot be used"),
        ({"test_share": 1.0}, "test_share must be below 1"),
        ({"test_share": 2}, r"test_share must be a float in \(0, 1\] or None"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"max_bytes": 0}, "max_bytes must be an integer of at least 1"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(saved(tmp_path, **four()), **options)


def test_sources_that_are_no_data_set_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: 'nowhere'.*'digits'"):
        load_dataset("nowhere")
    with pytest.raises(FileNotFoundError, match=r"cannot read 'nowhere.npz': no such file"):
        load_dataset("nowhere.npz")
    (tmp_path / "a.txt").touch()
    with pytest.raises(DatasetError, match=r"is not an \.npz file, \.npy file or folder"):
        load_dataset(tmp_path / "a.txt")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DatasetError, match="has no labels: labels must name"):
        load_dataset(tmp_path / "x.npy")


def test_a_name_stands_before_a_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert len(load_dataset("digits").X_train) == 1347
    with pytest.raises(ValueError, match="'digits' has no subfolders"):
        load_dataset(Path("digits"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DatasetError, match="not a regular file"):
        load_dataset(tmp_path / "pipe.npz")


# --- Shards


def test_labelled_rows_of_shards_are_read(tmp_path):
    rows = np.arange(16, dtype=np.float16)[:, None] * np.ones(3, np.float16)
    write_shards(tmp_path / "pets", [(rows[:8], ["cat"] * 8), (rows[8:], ["dog"] * 8)])
    data = load_dataset(tmp_path / "pets", test_share=0.25)
    assert (data.name, data.X_train.shape, data.X_train.dtype) == ("pets", (12, 3), np.float32)
    assert data.y_test.tolist() == ["cat", "cat", "dog", "dog"]
    assert sorted(np.concatenate([data.X_train, data.X_test])[:, 0]) == list(range(16))
    write_shards(tmp_path / "pets", [rows[:5]])
    with pytest.warns(DatasetWarning, match="5 of 21 rows without a label"):
        more = load_dataset(tmp_path / "pets")
    assert len(more.y_train) + len(more.y_test) == 16
    assert more.sha256 != data.sha256


@pytest.mark.parametrize(
    ("batches", "options", "message"),
    [
        ([np.eye(4)], {}, "has no labels"),
        ([(np.eye(4), [0, 0, 1, 1])], {"max_bytes": 63}, "needs 64 bytes of memory"),
        ([(RaggedArray(np.eye(4), np.array([0, 1, 4])), ["a", "b"])], {}, "of several rows"),
    ],
    ids=["no labels", "too large", "several rows"],
)
def test_shards_that_are_not_samples_are_refused(tmp_path, batches, options, message):
    write_shards(tmp_path / "rows", batches)
    with pytest.raises(ValueError, match=message):
        load_dataset(tmp_path / "rows", **options)


# --- Folders of images


def put(folder, *names):
    for place, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(quarters(4 + place)))
    return folder


def pets(folder):
    return put(folder, *(f"{pet}/{number}.png" for pet in ("cat", "dog") for number in range(8)))


def mean_colours(images):
    return [image.mean(axis=(0, 1)) for image in images]


def test_folders_train_and_test_are_followed(tmp_path):
    put(tmp_path, "train/cat/1.png", "train/dog/2.png", "test/cat/3.png", "test/dog/4.png")
    data = load_dataset(tmp_path)
    assert [Path(path).name for path in data.X_train] == ["1.png", "2.png"]
    assert [Path(path).name for path in data.X_test] == ["3.png", "4.png"]
    with pytest.raises(ValueError, match="test_share cannot be used"):
        load_dataset(tmp_path, test_share=0.5)
    put(tmp_path, "val/a/1.png")
    with pytest.warns(DatasetWarning, match="other folders are not read: 'val'"):
        load_dataset(tmp_path)


def test_folders_of_classes_are_split_and_hashed(tmp_path):
    data, same = (load_dataset(pets(tmp_path / name)) for name in "ab")
    assert data.sha256 == same.sha256
    assert (data.name, data.y_test.tolist()) == ("a", ["cat", "cat", "dog", "dog"])
    paths = [Path(path) for path in (*data.X_train, *data.X_test)]
    assert [path.parent.name for path in paths] == [*data.y_train, *data.y_test]
    assert len({*paths}) == 16
    put(tmp_path / "b", "stray.png")
    (tmp_path / "b" / "cat" / "0.png").write_bytes(encoded(quarters(9)))
    with pytest.warns(BadImageWarning, match="it is not in a class folder") as caught:
        assert load_dataset(tmp_path / "b").sha256 != data.sha256
    assert caught[0].filename == __file__


def test_images_become_vectors_with_a_hash_of_their_own(tmp_path):
    images = load_dataset(folder_of(tmp_path / "photos", "red", "green", n=8))
    data, other = (
        embed_images(images, Embedder(network))
        for network in (mean_colours, lambda some: [[1.0, 2.0] for _ in some])
    )
    assert data.X_train.shape == (12, 3)
    assert np.array_equal(data.y_test, images.y_test)
    assert is_image_dataset(images)
    # Red pictures have more red than green.
    assert np.array_equal(data.X_test[:, 0] > data.X_test[:, 1], data.y_test == "red")
    assert len({data.sha256, other.sha256, images.sha256}) == 3
    assert not is_image_dataset(data)
    Path(images.X_train[0]).write_bytes(b"no picture")
    with pytest.raises(ImageError, match=Path(images.X_train[0]).name):
        embed_images(images, Embedder(mean_colours))
    with pytest.warns(BadImageWarning):
        data = embed_images(images, Embedder(mean_colours), on_error="skip")
    assert (len(data.y_train), len(data.y_test)) == (11, 4)
