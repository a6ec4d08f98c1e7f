"""One function for all data sets: names, paths, options and checksums."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evergrow import DatasetError
from evergrow.research import Dataset, digits, load_dataset, mixture, spirals
from tests.research.datasets.made import Cifar, mnist, pack


def saved(folder):
    X, y = np.arange(8.0).reshape(8, 1), np.arange(8) % 2
    np.savez(folder / "data.npz", X=X, y=y)
    return folder / "data.npz"


@pytest.mark.parametrize(
    ("name", "made", "options"),
    [
        ("digits", digits, {}),
        ("spirals", spirals, {"n_classes": 3, "n_train": 4, "random_state": 1}),
        ("mixture", mixture, {"n_classes": 6, "n_groups": 2}),
    ],
)
def test_built_in_data_are_loaded_by_name(name, made, options):
    found, expected = load_dataset(name, **options), made(**options)
    assert (found.name, found.sha256, found.parents) == (name, expected.sha256, expected.parents)
    assert len(found.sha256) == 64


def test_spirals_are_arms_of_one_spiral():
    data = spirals(4, 50)
    radius, angle = np.hypot(*data.X_train.T), np.arctan2(*data.X_train.T[::-1])
    turned = np.mod(angle - radius / 2 - 2 * np.pi * data.y_train / 4 + np.pi, 2 * np.pi) - np.pi
    # A negative radius is the same point half a turn on; there is hardly any.
    assert np.median(np.abs(turned)) < 0.2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("spirals", {"n_classes": 0}, "n_classes must be an integer of at least 1"),
        ("spirals", {"random_state": "a"}, "random_state must be"),
        ("mixture", {"n_groups": 30}, "n_groups must be an integer from 1 to 20 or None"),
        ("mixture", {"distance": -1.0}, "distance must be"),
        ("mixture", {"n_features": 0}, "n_features must be"),
        ("digits", {"path": "x"}, "'digits' needs no file"),
        ("mnist", {}, "path must name their"),
    ],
)
def test_wrong_values_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(name, **options)


def test_an_option_of_another_source_is_refused(tmp_path):
    with pytest.raises(
        TypeError, match="'spirals' has no option 'n_features'; its options are n_classes"
    ):
        load_dataset("spirals", n_features=3)
    with pytest.raises(TypeError, match="'digits' has no option"):
        load_dataset("digits", n_classes=3)
    with pytest.raises(
        TypeError, match="'features' has no option 'verbose'; its options are labels, max"
    ):
        load_dataset(saved(tmp_path), verbose=1)


def test_a_path_may_be_text(tmp_path):
    assert load_dataset(str(saved(tmp_path))).name == "data"
    assert load_dataset("features", path=saved(tmp_path)).name == "data"


def test_a_name_stands_before_a_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert len(load_dataset("digits").X_train) == 1347
    with pytest.raises(ValueError, match="'digits' has no subfolders"):
        load_dataset(Path("digits"))


def test_invalid_sources_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data set: 'nowhere'.*'cifar10'"):
        load_dataset("nowhere")
    with pytest.raises(FileNotFoundError, match=r"cannot read 'nowhere.npz': no such file"):
        load_dataset("nowhere.npz")
    archive = pack({}, tmp_path / "a.tar.gz")
    with pytest.raises(DatasetError, match=r"as path, and its name, one of .*'mnist'"):
        load_dataset(archive)
    with pytest.raises(ValueError, match="with path, source must be one of"):
        load_dataset("imagenet", path=tmp_path)
    with pytest.raises(TypeError, match="source must be a name or a path, got int"):
        load_dataset(3)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        load_dataset("features", path=tmp_path / "folder.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DatasetError, match="not a regular file"):
        load_dataset(tmp_path / "pipe.npz")


def test_the_hash_of_one_file_is_its_own(tmp_path):
    path = saved(tmp_path)
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_dataset(path, sha256=expected.upper()).sha256 == expected
    archive = pack(Cifar().ten_binary(), tmp_path / "a.tar.gz")
    expected = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert load_dataset("cifar10", path=archive, sha256=expected).sha256 == expected


def test_the_hash_of_several_files_is_that_of_their_list(tmp_path):
    mnist(tmp_path)
    each = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(each.items()))
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert load_dataset("mnist", path=tmp_path, sha256=expected).sha256 == expected
    assert load_dataset("mnist", path=tmp_path, sha256=each).sha256 == expected


def test_another_hash_is_an_error_that_names_both(tmp_path):
    path, wrong = saved(tmp_path), "0" * 64
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DatasetError, match=f"'data.npz' is {right}, expected {wrong}"):
        load_dataset(path, sha256=wrong)
    with pytest.raises(DatasetError, match=f"'digits' is [0-9a-f]{{64}}, expected {wrong}"):
        load_dataset("digits", sha256=wrong)
    mnist(tmp_path / "mnist")
    with pytest.raises(DatasetError, match=f"4 files is [0-9a-f]{{64}}, expected {wrong}"):
        load_dataset("mnist", path=tmp_path / "mnist", sha256=wrong)
    with pytest.raises(DatasetError, match=f"'t10k-labels-idx1-ubyte' is .* expected {wrong}"):
        load_dataset("mnist", path=tmp_path / "mnist", sha256={"t10k-labels-idx1-ubyte": wrong})


def test_nothing_of_a_file_with_another_hash_is_parsed(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no archive")
    with pytest.raises(DatasetError, match="SHA-256"):
        load_dataset(tmp_path / "a.npz", sha256="0" * 64)


def test_invalid_hashes_are_refused(tmp_path):
    path = saved(tmp_path)
    with pytest.raises(ValueError, match="64 hexadecimal digits, got 'abc'"):
        load_dataset(path, sha256="abc")
    with pytest.raises(ValueError, match=r"not read: \['other'\]; the files are: \['data.npz'\]"):
        load_dataset(path, sha256={"other": "0" * 64})


def test_samples_become_other_features_learnt_from_the_training_samples():
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    data = load_dataset("digits")
    scaler = StandardScaler()
    scaled = data.transformed(scaler, name="scaled digits")
    expected = StandardScaler().fit(data.X_train).transform(data.X_test)
    np.testing.assert_allclose(scaled.X_test, expected, rtol=1e-6)
    assert not hasattr(scaler, "mean_")
    assert (scaled.name, scaled.sha256) == ("scaled digits", data.sha256)
    with pytest.raises(ValueError, match=r"one row of features .* got shape \(1347,\)"):
        data.transformed(FunctionTransformer(lambda X: X[:, 0]))


def test_part_of_the_classes_keeps_names_and_parents():
    X, y = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])
    data = Dataset("four", X, y, X, y, {0: 5, 1: 6}, class_names={0: "a", 1: "b"})
    part = data.of_classes([1])
    assert part.class_names is not None
    assert (part.class_names[1], part.y_test.tolist()) == ("b", [1, 1])


def test_importing_the_readers_does_not_import_scikit_learn():
    code = "import sys, evergrow.research; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
