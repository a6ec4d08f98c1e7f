"""Features from NumPy's files: what is read, what is refused, and nothing run."""

import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from evergrow import DatasetError, DatasetWarning
from evergrow.research import load_dataset

X, Y = np.arange(24.0).reshape(8, 3), np.array([5, 5, 5, 5, 7, 7, 7, 7])


def saved(folder, name="data.npz", **arrays):
    np.savez(folder / name, **arrays)
    return folder / name


def four(**changed):
    return {"X_train": X, "y_train": Y, "X_test": X[::2], "y_test": Y[::2], **changed}


def test_four_arrays_are_read_as_they_are(tmp_path):
    data = load_dataset(saved(tmp_path, "pets.npz", **four()))
    assert data.name == "pets"
    np.testing.assert_array_equal(data.X_train, X)
    np.testing.assert_array_equal(data.X_test, X[::2])
    np.testing.assert_array_equal(data.y_test, Y[::2])


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int64, np.float64, ">f4", bool])
def test_samples_of_every_type_become_float32(tmp_path, dtype):
    data = load_dataset(saved(tmp_path, **four(X_train=X.astype(dtype))))
    assert data.X_train.dtype == np.dtype("=f4")
    np.testing.assert_array_equal(data.X_train, X.astype(dtype).astype(np.float32))


def test_columns_first_and_compressed_arrays_are_read(tmp_path):
    np.savez_compressed(tmp_path / "data.npz", **four(X_train=np.asfortranarray(X)))
    np.testing.assert_array_equal(load_dataset(tmp_path / "data.npz").X_train, X)


def test_images_are_flattened(tmp_path):
    images = np.arange(96).reshape(8, 4, 3).astype(np.uint8)
    data = load_dataset(saved(tmp_path, **four(X_train=images, X_test=images[::2])))
    np.testing.assert_array_equal(data.X_train, images.reshape(8, 12))


@pytest.mark.parametrize(
    "labels", [Y.astype(np.uint8), Y.astype(float), Y[:, None], Y.astype(">i2")]
)
def test_whole_numbers_of_any_type_become_int64_labels(tmp_path, labels):
    data = load_dataset(saved(tmp_path, **four(y_train=labels)))
    assert data.y_train.dtype == np.int64
    np.testing.assert_array_equal(data.y_train, Y)


def test_labels_may_be_text_or_bytes_of_text(tmp_path):
    names = np.where(Y == 5, "cät", "dog")
    encoded = np.char.encode(names, "utf-8")
    data = load_dataset(saved(tmp_path, **four(y_train=names, y_test=encoded[::2])))
    assert data.classes.tolist() == ["cät", "dog"]
    assert data.y_test.tolist() == names[::2].tolist()


def test_a_split_says_what_is_for_testing(tmp_path):
    split = np.array(["train", "test"] * 4)
    data = load_dataset(saved(tmp_path, X=X, y=Y, split=split))
    np.testing.assert_array_equal(data.X_train, X[::2])
    np.testing.assert_array_equal(data.y_test, Y[1::2])


def test_without_a_split_the_same_share_of_each_class_is_held_out(tmp_path):
    y = np.repeat([1, 2, 3], [20, 8, 2])
    path = saved(tmp_path, X=np.arange(30.0)[:, None], y=y)
    data = load_dataset(path, test_share=0.25)
    assert np.bincount(data.y_test).tolist() == [0, 5, 2, 1]
    rows = np.concatenate([data.X_train, data.X_test])[:, 0]
    assert sorted(rows) == list(range(30))
    np.testing.assert_array_equal(data.y_test, y[data.X_test[:, 0].astype(int)])


def test_the_division_is_fixed_by_the_seed(tmp_path):
    path = saved(tmp_path, X=np.arange(40.0)[:, None], y=np.arange(40) % 2)
    first, again, other = (load_dataset(path, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert not np.array_equal(first.X_test, other.X_test)


def test_classes_of_one_sample_stay_in_training_with_one_warning(tmp_path):
    y = np.concatenate([Y, np.arange(100, 107)])
    path = saved(tmp_path, X=np.ones((15, 2)), y=y)
    with pytest.warns(
        DatasetWarning, match=r"7 classes .*: 100, 101, 102, 103, 104 and 2 more$"
    ) as caught:
        data = load_dataset(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert {*range(100, 107)} <= set(data.y_train.tolist())
    assert set(data.y_test.tolist()) == {5, 7}


def test_coarse_classes_and_names_are_found_by_label(tmp_path):
    path = saved(
        tmp_path,
        **four(),
        fine_to_coarse=np.array([0, 0, 0, 0, 0, 1, 0, 2], np.uint8),
        fine_names=np.array([f"fine{k}" for k in range(8)]),
        coarse_names=np.array(["a", "b", "c"]),
    )
    data = load_dataset(path)
    assert data.parents == {5: 1, 7: 2}
    assert data.class_names == {5: "fine5", 7: "fine7"}
    assert data.parent_names == {1: "b", 2: "c"}


def test_coarse_classes_are_found_by_samples(tmp_path):
    data = load_dataset(saved(tmp_path, **four(), y_coarse_train=np.where(Y == 5, "cat", "dog")))
    assert data.parents == {5: "cat", 7: "dog"}


def test_coarse_classes_that_all_samples_agree_on_are_found(tmp_path):
    coarse = np.where(Y == 5, 1, 2)
    listed = np.array([0, 0, 0, 0, 0, 1, 0, 2])
    arrays = four(y_coarse_train=coarse, y_coarse_test=coarse[::2], fine_to_coarse=listed)
    assert load_dataset(saved(tmp_path, **arrays)).parents == {5: 1, 7: 2}


def test_other_arrays_are_not_read(tmp_path):
    path = saved(tmp_path, **four(), drawer=np.array([{}], dtype=object))
    assert len(load_dataset(path).X_train) == 8


def test_labels_of_an_npy_file_come_from_another(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    np.save(tmp_path / "y.npy", Y)
    data = load_dataset(tmp_path / "x.npy", labels=tmp_path / "y.npy", test_share=0.5)
    assert (data.name, len(data.X_train), len(data.X_test)) == ("x", 4, 4)


BAD_ARRAYS = {
    "object": (
        four(X_train=np.array([[{}]] * 8, dtype=object)),
        "'X_train' .* Python objects.*pickle",
    ),
    "object labels": (
        four(y_train=np.array(["a", None] * 4, object)),
        "'y_train' .* Python objects",
    ),
    "NaN": (
        four(X_train=np.where(np.arange(24).reshape(8, 3) == 16, np.nan, X)),
        "'X_train' .* NaN in row 5, feature 1",
    ),
    "infinite": (four(X_test=np.full((4, 3), np.inf)), "'X_test' .* row 0, feature 0"),
    "too large for float32": (
        four(X_train=X * 1e300),
        "not a finite float32 number in row 0, feature 1",
    ),
    "fewer labels": (four(y_train=Y[:-1]), "8 samples and .* 7 labels"),
    "missing label": (four(y_train=np.where(Y == 5, np.nan, 7.0)), "an invalid label in row 0"),
    "empty label": (four(y_train=np.array(["a", ""] * 4)), "an invalid label in row 1"),
    "blank label": (four(y_train=np.array(["a", " "] * 4)), "an invalid label in row 1"),
    "half a label": (four(y_train=Y + 0.5), "an invalid label in row 0.*whole numbers or strings"),
    "complex": (four(X_train=X * 1j), "'X_train' .* complex128"),
    "text": (four(X_train=X.astype(str)), "'X_train' .* must hold numbers"),
    "flat": (four(X_train=Y), r"'X_train' .* got shape \(8,\)"),
    "no rows": (four(X_test=X[:0], y_test=Y[:0]), "'X_test' .* is empty"),
    "table of labels": (four(y_train=X), r"'y_train' .* got shape \(8, 3\)"),
    "other features": (four(X_test=X[::2, :2]), "3 features and test samples 2"),
    "two kinds of labels": (four(y_test=Y[::2].astype(str)), "both numbers or both strings"),
    "unknown test class": (four(y_test=Y[::2] + 1), "2 classes without training samples: 6, 8"),
    "no labels": ({"X": X}, "lacks y"),
    "no test labels": ({"X_train": X, "y_train": Y, "X_test": X}, "lacks y_test"),
    "nothing of it": ({"a": X}, "lacks X, y: .* it holds 'a'"),
    "a test set next to X and y": (
        {"X": X, "y": Y, "X_test": X[::2], "y_test": Y[::2]},
        "holds both X, y and X_test, y_test: .* either X_train",
    ),
    "both layouts": (four(X=X, y=Y), "holds both X, y and X_train"),
    "a split of what is divided": (four(split=np.array(["train"] * 8)), "holds both split and"),
    "a test set alone": ({"X_test": X, "y_test": Y}, "lacks X_train, y_train"),
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
    "names of negative labels": (
        four(y_train=Y - 6, y_test=Y[::2] - 6, class_names=np.array(["a", "b"])),
        "labels go from -1 to 1",
    ),
    "other parents of test samples": (
        four(y_coarse_train=Y + 1, y_coarse_test=Y[::2] + 2),
        r"class 5 two coarse classes: \[6, 7\]",
    ),
    "other parents by label": (
        four(y_coarse_train=Y, fine_to_coarse=np.array([0, 0, 0, 0, 0, 5, 0, 8])),
        "class 7 two coarse classes: 8 in 'fine_to_coarse' and 7 with its samples",
    ),
    "two kinds of parents": (
        four(y_coarse_train=Y, y_coarse_test=Y[::2].astype(str)),
        "y_coarse_train and y_coarse_test must be both",
    ),
    "few parents of test samples": (
        four(y_coarse_train=Y, y_coarse_test=Y),
        "'y_test' .* 4 samples and 'y_coarse_test' .* 8 labels",
    ),
    "two parents": (four(y_coarse_train=np.arange(8)), r"class 5 two coarse classes: \[0, 1\]"),
}


@pytest.mark.parametrize(("arrays", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS.keys())
def test_invalid_arrays_are_refused(tmp_path, arrays, message):
    with pytest.raises(DatasetError, match=message):
        load_dataset(saved(tmp_path, **arrays))


def npy(header, content=b"", version=1):
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + content


def described(shape, descr="'<f4'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()


HOSTILE = {
    "shape beyond the file": (npy(described("(1000000000000, 3)"), b"1234"), "1000000000000, 3"),
    "negative shape": (npy(described("(-1, -4)"), b"\0" * 16), r"shape is \(-1, -4\)"),
    "values of no length": (npy(described("(9999999999, 9)", "'<U0'")), "values of type"),
    "structured": (npy(described("(1,)", "[('a', '<f4')]"), b"\0" * 4), "numbers or strings"),
    "header that computes": (npy(b"__import__('os').getcwd()"), "damaged header"),
    "deep header": (npy(b"(" * 9000), "damaged header"),
    "long header": (npy(b" " * 20000, version=2), "header of 20000 bytes"),
    "later version": (npy(described("(1,)"), version=1).replace(b"Y\x01", b"Y\x03"), "version"),
    "cut off": (npy(described("(4, 3)"), b"\0" * 40), "40|48"),
    "nothing": (b"", "not in NumPy's .npy format"),
    "pickle": (pickle.dumps([1.0]), "not in NumPy's .npy format"),
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_arrays_are_refused_before_memory_is_set_aside(tmp_path, content, message):
    path = saved(tmp_path, y=Y)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(DatasetError, match=message):
        load_dataset(path)
    (tmp_path / "x.npy").write_bytes(content)
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(DatasetError, match=message):
        load_dataset(tmp_path / "x.npy", labels=tmp_path / "y.npy")


def test_a_header_that_claims_four_gigabytes_is_not_read(tmp_path):
    path = saved(tmp_path, y=Y)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 99)
    with pytest.raises(DatasetError, match="header of 4294967295 bytes"):
        load_dataset(path)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_pickled_objects_are_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = io.BytesIO()
    np.save(content, np.array([Harmful()], dtype=object), allow_pickle=True)
    path = saved(tmp_path, y=Y)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", content.getvalue())
    with pytest.raises(DatasetError, match="Python objects"):
        load_dataset(path)
    assert not (tmp_path / "harm").exists()


def test_more_memory_than_allowed_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((1000, 1000), np.uint8), y=np.zeros(1000))
    assert (tmp_path / "bomb.npz").stat().st_size < 10_000
    with pytest.raises(DatasetError, match=r"needs 4000000 bytes .* increase max_bytes"):
        load_dataset(tmp_path / "bomb.npz", max_bytes=2_000_000)


def test_damaged_archives_are_refused(tmp_path):
    path = saved(tmp_path, **four())
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:-30], whole.replace(b"NUMPY", b"NUMPI")):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"data\.npz'"):
            load_dataset(path)
    flipped = bytearray(whole)
    # A bit of the first array's values.
    flipped[200] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(DatasetError, match="Bad CRC-32"):
        load_dataset(path)


def test_an_archive_with_one_array_twice_is_refused(tmp_path):
    path = saved(tmp_path, **four())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("X_train.npy", b"")
    with pytest.raises(DatasetError, match="'X_train' twice"):
        load_dataset(path)


def test_an_archive_packed_in_another_way_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        for name in ("X", "y"):
            archive.writestr(f"{name}.npy", b"\0" * 100)
    with pytest.raises(DatasetError, match="a compression that NumPy does not use"):
        load_dataset(tmp_path / "a.npz")


def test_options_that_have_no_use_are_refused(tmp_path):
    path = saved(tmp_path, **four())
    with pytest.raises(ValueError, match="test_share cannot be used"):
        load_dataset(path, test_share=0.5)
    with pytest.raises(ValueError, match="labels cannot be used"):
        load_dataset(path, labels=path)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DatasetError, match=r"has no labels: labels must name"):
        load_dataset(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_share": 1.0}, "test_share must be below 1"),
        ({"test_share": 2}, r"test_share must be a float in \(0, 1\] or None"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"max_bytes": 0}, "max_bytes must be an integer of at least 1"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(saved(tmp_path, X=X, y=Y), **options)


def test_the_measuring_data_are_read(measuring_data):
    data = load_dataset(measuring_data / "cub200_efflite0_224.npz")
    assert data.X_train.shape == (5994, 1280)
    assert data.parents is not None
    assert len(data.parents) == 200
