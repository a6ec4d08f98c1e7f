"""Saved forests: exact, small, durable, and closed to anything that is not a whole model."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import evergrow
from evergrow import ModelFileError, NCMForestClassifier
from evergrow.storage.files import FORMAT_VERSION, read_model, write_model
from tests.budget import budget
from tests.conftest import Arrays


@pytest.fixture
def saved(small_forest: NCMForestClassifier, tmp_path: Path) -> Path:
    path = tmp_path / "forest.evergrow"
    small_forest.save(path)
    return path


@pytest.mark.parametrize("inference_only", [False, True])
def test_a_loaded_forest_predicts_bit_for_bit_the_same(
    small_forest: NCMForestClassifier, digits: Arrays, tmp_path: Path, inference_only: bool
) -> None:
    X_test = digits[1]
    small_forest.save(tmp_path / "forest.evergrow", inference_only=inference_only)
    loaded = evergrow.load(tmp_path / "forest.evergrow")
    np.testing.assert_array_equal(loaded.predict_proba(X_test), small_forest.predict_proba(X_test))
    np.testing.assert_array_equal(loaded.apply(X_test), small_forest.apply(X_test))
    assert loaded.get_params() == small_forest.get_params()
    assert loaded.classes_.dtype == small_forest.classes_.dtype
    assert loaded.n_features_in_ == 64


def test_an_inference_only_file_is_smaller_and_names_no_training_row_it_does_not_need(
    small_forest: NCMForestClassifier, saved: Path, tmp_path: Path
) -> None:
    small_forest.save(tmp_path / "small.evergrow", inference_only=True)
    assert (tmp_path / "small.evergrow").stat().st_size < saved.stat().st_size
    _, tensors = read_model(tmp_path / "small.evergrow")
    assert not any(name.endswith(".rows") and "tree" in name for name in tensors)
    assert len(tensors["samples.rows"]) < 1347


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1, 2]),
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([True, False]),
        np.array(["ü", "b", "c"], dtype="<U40"),
        np.array(["x", "y"], dtype=object),
    ],
    ids=["int", "uint8", "float32", "bool", "str", "object"],
)
def test_labels_survive(labels: np.ndarray[Any, Any], tmp_path: Path) -> None:
    X = np.arange(60.0).reshape(30, 2)
    y = labels[np.arange(30) % len(labels)]
    forest = NCMForestClassifier(2, min_samples_leaf=1).fit(X, y)
    forest.save(tmp_path / "forest.evergrow")
    loaded = evergrow.load(tmp_path / "forest.evergrow")
    assert loaded.classes_.tolist() == forest.classes_.tolist()
    assert loaded.classes_.dtype == forest.classes_.dtype
    assert loaded.predict(X).tolist() == forest.predict(X).tolist()


def test_feature_names_survive(digits: Arrays, tmp_path: Path) -> None:
    X, _, y, _ = digits
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    NCMForestClassifier(2).fit(frame, y).save(tmp_path / "forest.evergrow")
    loaded = evergrow.load(tmp_path / "forest.evergrow")
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


def test_numpy_parameters_and_generators_can_be_saved(tmp_path: Path) -> None:
    forest = NCMForestClassifier(
        np.int64(2), min_samples_leaf=np.int32(1), random_state=np.random.RandomState(0)
    )
    forest.fit([[0.0], [1.0], [5.0]], [0, 0, 1]).save(tmp_path / "forest.evergrow")
    assert evergrow.load(tmp_path / "forest.evergrow").random_state is None


def test_the_file_is_plain_safetensors(saved: Path) -> None:
    with safe_open(saved, framework="np") as file:
        header = json.loads(file.metadata()["evergrow"])
        assert file.get_tensor("samples.rows").shape == (1347, 64)
    assert header["format_version"] == FORMAT_VERSION
    assert header["library_version"] == evergrow.__version__
    assert header["estimator"] == "NCMForestClassifier"


def test_a_newer_format_is_refused_by_name(tmp_path: Path, saved: Path) -> None:
    header, tensors = read_model(saved)
    path = tmp_path / "newer.evergrow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evergrow.storage.files.FORMAT_VERSION", FORMAT_VERSION + 1)
        write_model(path, header, tensors)
    with pytest.raises(ModelFileError, match=rf"format version {FORMAT_VERSION + 1}.*reads up to"):
        evergrow.load(path)


@pytest.mark.parametrize("share", [0.0, 0.00001, 0.01, 0.5, 0.9, 0.9999])
def test_a_truncated_file_is_refused(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="not a whole model file"):
        evergrow.load(saved)


@settings(max_examples=budget(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(saved: Path, place: float, bit: int) -> None:
    content = bytearray(saved.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    damaged = saved.with_name("damaged.evergrow")
    damaged.write_bytes(content)
    with pytest.raises(ModelFileError):
        evergrow.load(damaged)


@settings(max_examples=budget(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 8000), bit=st.integers(0, 7))
def test_any_flipped_bit_of_the_header_is_noticed(saved: Path, place: int, bit: int) -> None:
    content = bytearray(saved.read_bytes())
    before = content[place]
    content[place] ^= 1 << bit
    damaged = saved.with_name("damaged.evergrow")
    damaged.write_bytes(content)
    # Padding between values may change without changing what the header says.
    if chr(before).isspace() and chr(content[place]).isspace():
        return
    with pytest.raises(ModelFileError):
        evergrow.load(damaged)


NOT_FINITE = [*(float(k) for k in range(9)), float("nan")]
CUT = [f"class{k}" for k in range(10)]
ZEROS = ["a" + "\0" * k for k in range(10)]
CLOSE = [1 + 1e-12 * k for k in range(10)]


def hostile(name: str, change: Any) -> Any:
    """A file with a valid checksum whose content was changed on purpose."""
    return pytest.param(change, id=name)


def set_first(name: str, value: float) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[name] = tensors[name].copy()
        tensors[name][0] = value

    return change


def replace(name: str, array: Any) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[name] = array

    return change


def edit_header(**entries: Any) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header.update(entries)

    return change


@pytest.mark.parametrize(
    "change",
    [
        hostile("child beyond the nodes", set_first("tree.0.left", 10**6)),
        hostile("child before its parent", set_first("tree.0.left", 0)),
        hostile("negative child", set_first("tree.0.left", -2)),
        hostile("row beyond the samples", set_first("tree.1.rows", 10**6)),
        hostile("negative row", set_first("tree.1.rows", -1)),
        hostile("node rows out of range", set_first("tree.0.row_size", 2**31 - 1)),
        hostile("centroids out of range", set_first("tree.0.centroid_begin", 2**31 - 1)),
        hostile("too many centroids", set_first("tree.0.centroid_size", 2**31 - 1)),
        hostile("no centroid", set_first("tree.0.centroid_size", 0)),
        hostile("unknown class", set_first("tree.0.centroid_class", 10)),
        hostile("unknown class counted", set_first("tree.0.count_class", -1)),
        hostile("count of nothing", set_first("tree.0.count", 0)),
        hostile("source beyond the rows", set_first("tree.0.centroid_source", 10**6)),
        hostile("source beyond the means", set_first("tree.0.centroid_source", -(10**6))),
        hostile("third side", set_first("tree.0.side", 2)),
        hostile("norm of no number", set_first("tree.0.half_norm", float("nan"))),
        hostile("no sample class", set_first("samples.classes", 10)),
        hostile("wrong type", replace("tree.0.left", np.zeros(3, dtype=np.float32))),
        hostile("wrong shape", replace("tree.0.left", np.zeros((3, 3), dtype=np.int32))),
        hostile("no nodes", replace("tree.0.left", np.zeros(0, dtype=np.int32))),
        hostile("no features", replace("mean", np.zeros(0))),
        hostile("many empty rows", replace("samples.rows", np.zeros((2**40, 0), np.float32))),
        hostile("narrow rows", replace("samples.rows", np.zeros((1347, 63), np.float32))),
        hostile("infinite mean", replace("mean", np.full(64, np.inf))),
        hostile("narrow means", replace("tree.0.halves", np.zeros((5, 63), np.float16))),
        hostile("negative work", replace("n_comparisons", np.full(8, -1))),
        hostile("more trees than arrays", replace("n_comparisons", np.zeros(9, np.int64))),
        hostile("fewer trees than arrays", replace("n_comparisons", np.zeros(7, np.int64))),
        hostile("lacking array", lambda _, tensors: tensors.pop("tree.3.count")),
        hostile("lacking rows of nodes", lambda _, tensors: tensors.pop("tree.3.row_size")),
        hostile("lacking means", lambda _, tensors: tensors.pop("tree.3.halves")),
        hostile("lacking samples", lambda _, tensors: tensors.pop("samples.rows")),
        hostile("stray tree", replace("tree.x.left", np.zeros(3, dtype=np.int32))),
        hostile("no classes", edit_header(classes=None)),
        hostile("a class twice", edit_header(classes={"dtype": "<i8", "values": [1] * 10})),
        hostile("too few classes", edit_header(classes={"dtype": "<i8", "values": [1, 2]})),
        hostile("huge class", edit_header(classes={"dtype": "<i8", "values": [2**70]})),
        hostile("mixed classes", edit_header(classes={"dtype": "<i8", "values": [1, "a"]})),
        hostile("parameters of another", edit_header(parameters={"n_estimators": 0})),
        hostile("unknown parameter", edit_header(parameters={"command": "rm"})),
        hostile("no parameters", edit_header(parameters=7)),
        hostile("endless threads", edit_header(parameters={"n_jobs": 10**12})),
        hostile("endless gain", edit_header(parameters={"min_gain": 10**400})),
        hostile("endless class", edit_header(classes={"dtype": "<U999999999", "values": ["a"]})),
        hostile("class of dates", edit_header(classes={"dtype": "<M8[s]", "values": [1, 2]})),
        hostile("class of what", edit_header(classes={"dtype": "what", "values": [1, 2]})),
        hostile("no finite class", edit_header(classes={"dtype": "<f8", "values": NOT_FINITE})),
        hostile("class cut short", edit_header(classes={"dtype": "<U1", "values": CUT})),
        hostile("class ending in zero", edit_header(classes={"dtype": "<U", "values": ZEROS})),
        hostile("class rounded", edit_header(classes={"dtype": "<f4", "values": CLOSE})),
        hostile("class beyond half", edit_header(classes={"dtype": "<f2", "values": [1e9]})),
        hostile("rows of no number", replace("samples.rows", np.full((1347, 64), np.nan, "f"))),
        hostile("scale of zero", replace("scale", np.zeros(64))),
        hostile("infinite means", replace("tree.0.halves", np.full((5, 64), np.inf, np.float16))),
        hostile("endless number", edit_header(note="NUMBER")),
        hostile("names of lists", edit_header(feature_names=[["a", "b"]] * 64)),
        hostile("no shape", replace("n_comparisons", np.array(8))),
        hostile("feature names", edit_header(feature_names=["a"])),
        hostile("unknown estimator", edit_header(estimator="os.system")),
    ],
)
def test_a_hostile_file_is_refused(saved: Path, change: Any) -> None:
    header, tensors = read_model(saved)
    change(header, tensors)
    write = json.dumps
    with pytest.MonkeyPatch.context() as patch:
        # A number too long for Python to read, which Python would not write either.
        patch.setattr(
            "evergrow.storage.files.json.dumps",
            lambda *a, **k: write(*a, **k).replace('"NUMBER"', "9" * 5000),
        )
        write_model(saved, header, tensors)
    with pytest.raises(ModelFileError):
        evergrow.load(saved)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"\xff" * 64, b"\x80\x04\x95cos\nsystem\n", b"\x00" * 1000],
    ids=["empty", "text", "ones", "pickle", "zeros"],
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        evergrow.load(path)


def test_a_safetensors_file_of_someone_else_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not written by Evergrow"):
        evergrow.load(tmp_path / "other.safetensors")


def test_what_is_loaded_for_inference_only_stays_so_when_saved_again(
    small_forest: NCMForestClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "forest.evergrow"
    small_forest.save(path, inference_only=True)
    evergrow.load(path).save(path)
    assert read_model(path)[0]["inference_only"] is True


def test_only_the_class_that_load_knows_is_saved(digits: Arrays, tmp_path: Path) -> None:
    class Own(NCMForestClassifier):
        pass

    X, _, y, _ = digits
    with pytest.raises(TypeError, match="got Own"):
        Own(2).fit(X, y).save(tmp_path / "forest.evergrow")


def test_the_content_is_synced_before_it_takes_its_name(
    small_forest: NCMForestClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace_ = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("rename"), replace_(*names)))
    small_forest.save(tmp_path / "forest.evergrow")
    assert done[:2] == ["sync", "rename"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_what_is_not_a_regular_file_is_left_alone(
    small_forest: NCMForestClassifier, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        small_forest.save(pipe)
    with pytest.raises(ModelFileError, match="not a regular file"):
        evergrow.load(pipe)
    assert pipe.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_link_is_followed_and_permissions_are_kept(
    small_forest: NCMForestClassifier, saved: Path, tmp_path: Path
) -> None:
    saved.chmod(0o600)
    link = tmp_path / "latest.evergrow"
    link.symlink_to(saved)
    small_forest.save(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o600


def test_a_long_file_name_can_be_saved_to(
    small_forest: NCMForestClassifier, tmp_path: Path
) -> None:
    small_forest.save(tmp_path / ("n" * 250))
    assert evergrow.load(tmp_path / ("n" * 250)).n_estimators == 8


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "C64", "BOOL", "I8"])
def test_arrays_of_types_we_never_write_are_refused(saved: Path, kind: str) -> None:
    with safe_open(saved, framework="np") as file:
        metadata = file.metadata()
    size = {"BF16": 2, "C64": 8}.get(kind, 1)
    entry = {"dtype": kind, "shape": [1], "data_offsets": [0, size]}
    table = json.dumps({"__metadata__": metadata, "mean": entry}).encode()
    saved.write_bytes(len(table).to_bytes(8, "little") + table + b"\0" * size)
    with pytest.raises(ModelFileError):
        evergrow.load(saved)


def test_a_model_too_large_to_load_is_not_saved(
    small_forest: NCMForestClassifier, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr("evergrow.storage.files._MAX_HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match="too large for one file"):
        small_forest.save(saved)
    assert saved.read_bytes() == before


def test_paths_that_cannot_be_saved_to_are_named(
    small_forest: NCMForestClassifier, tmp_path: Path
) -> None:
    with pytest.raises(IsADirectoryError, match="is a directory"):
        small_forest.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="missing' does not exist"):
        small_forest.save(tmp_path / "missing" / "forest.evergrow")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        evergrow.load(tmp_path / "forest.evergrow")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        evergrow.load(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file sizes")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    small_forest: NCMForestClassifier, saved: Path
) -> None:
    import resource

    before = saved.read_bytes()
    # A limit on file size fails a write half way, as a full disk does.
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            small_forest.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saving_replaces_an_old_file_and_honours_the_umask(
    small_forest: NCMForestClassifier, saved: Path
) -> None:
    saved.write_bytes(b"old")
    small_forest.save(str(saved))
    assert evergrow.load(str(saved)).n_estimators == 8
    if sys.platform != "win32":
        mask = os.umask(0)
        os.umask(mask)
        assert saved.stat().st_mode & 0o777 == 0o666 & ~mask
