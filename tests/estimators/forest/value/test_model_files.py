"""Saved forests are exact, small and durable; anything but a complete model is refused."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import evergrow
from evergrow import ModelFileError, NCMForestClassifier
from evergrow.storage.models.format import FORMAT_VERSION, read_model, write_model
from tests.budget import budget
from tests.estimators.model_files import Change, at, check_refused, forge, rewritten


@pytest.fixture
def saved(small_forest: NCMForestClassifier, tmp_path: Path) -> Path:
    path = tmp_path / "forest.evergrow"
    small_forest.save(path)
    return path


def test_an_inference_only_file_is_smaller_and_names_no_training_row_it_does_not_need(
    small_forest: NCMForestClassifier, saved: Path, tmp_path: Path
) -> None:
    small_forest.save(tmp_path / "small.evergrow", inference_only=True)
    assert (tmp_path / "small.evergrow").stat().st_size < saved.stat().st_size
    _, tensors = read_model(tmp_path / "small.evergrow")
    assert not any(name.endswith(".rows") and "tree" in name for name in tensors)
    assert len(tensors["samples.rows"]) < 1347


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


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_another_format_version_is_refused_by_name(
    version: int, tmp_path: Path, saved: Path
) -> None:
    header, tensors = read_model(saved)
    path = tmp_path / "other.evergrow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evergrow.storage.models.format.FORMAT_VERSION", version)
        write_model(path, header, tensors)
    words = rf"format version {version}, written .* reads format version {FORMAT_VERSION}: load it"
    with pytest.raises(ModelFileError, match=words):
        evergrow.load(path)


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


def in_halves(value: float) -> Change:
    """Means in half precision, as widely spread features have them, all of one value."""

    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        shape = tensors.pop("tree.0.bytes").shape
        tensors["tree.0.halves"] = np.full(shape, value, np.float16)

    return change


NOT_FINITE = [*(float(k) for k in range(9)), float("nan")]
CUT = [f"class{k}" for k in range(10)]
ZEROS = ["a" + "\0" * k for k in range(10)]
CLOSE = [1 + 1e-12 * k for k in range(10)]


def whitened(whitening: Any) -> Change:
    """A file that says that its features were whitened."""

    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["fitted"]["standardization"]["kind"] = "whiten"
        tensors["standardization.whitening"] = whitening

    return change


def early(**arrays: Any) -> Change:
    """Early samples, of which some arrays are wrong."""

    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["fitted"]["history"]["early"] = {}
        codes, ids = tensors["samples.classes"], tensors["samples.ids"]
        fine = {"X": np.zeros((1347, 64)), "codes": codes, "ids": ids}
        for name, array in {**fine, **arrays}.items():
            tensors[f"history.early.{name}"] = array

    return change


FORGED: dict[str, Any] = {
    "child beyond the nodes": ("tree.0.left", at(0, 10**6)),
    "child before its parent": ("tree.0.left", at(0, 0)),
    "negative child": ("tree.0.left", at(0, -2)),
    "row beyond the samples": ("tree.1.rows", at(0, 10**6)),
    "negative row": ("tree.1.rows", at(0, -1)),
    "node rows out of range": ("tree.0.row_size", at(0, 2**31 - 1)),
    "centroids out of range": ("tree.0.centroid_begin", at(0, 2**31 - 1)),
    "too many centroids": ("tree.0.centroid_size", at(0, 2**31 - 1)),
    "no centroid": ("tree.0.centroid_size", at(0, 0)),
    "unknown class": ("tree.0.centroid_class", at(0, 10)),
    "unknown class counted": ("tree.0.count_class", at(0, -1)),
    "count of nothing": ("tree.0.count", at(0, 0)),
    "source beyond the rows": ("tree.0.centroid_source", at(0, 10**6)),
    "source beyond the means": ("tree.0.centroid_source", at(0, -(10**6))),
    "third side": ("tree.0.side", at(0, 2)),
    "norm of no number": ("tree.0.half_norm", at(0, float("nan"))),
    "no sample class": ("samples.classes", at(0, 10)),
    "wrong type": ("tree.0.left", np.zeros(3, dtype=np.float32)),
    "wrong shape": ("tree.0.left", np.zeros((3, 3), dtype=np.int32)),
    "no nodes": ("tree.0.left", np.zeros(0, dtype=np.int32)),
    "no features": ("standardization.mean", np.zeros(0)),
    "many empty rows": ("samples.rows", np.zeros((2**40, 0), np.float32)),
    "narrow rows": ("samples.rows", np.zeros((1347, 63), np.float32)),
    "narrow means": ("tree.0.bytes", np.zeros((5, 63), np.int8)),
    "means of two kinds": ("tree.0.halves", np.zeros((5, 64), np.float16)),
    "means of another type": ("tree.0.bytes", np.zeros((5, 64), np.float16)),
    "huge exponent": ("tree.0.exponent", at(0, 44)),
    "tiny exponent": ("tree.0.exponent", at(0, -61)),
    "lacking exponents": ("tree.3.exponent", None),
    "negative work": ("n_comparisons", np.full(8, -1)),
    "more trees than arrays": ("n_comparisons", np.zeros(9, np.int64)),
    "fewer trees than arrays": ("n_comparisons", np.zeros(7, np.int64)),
    "lacking array": ("tree.3.count", None),
    "lacking rows of nodes": ("tree.3.row_size", None),
    "lacking means": ("tree.3.bytes", None),
    "stray tree": ("tree.x.left", np.zeros(3, dtype=np.int32)),
    "a class twice": ("fitted/labels", {"dtype": "<i8", "values": [1] * 10}),
    "too few classes": ("fitted/labels", {"dtype": "<i8", "values": [1, 2]}),
    "huge class": ("fitted/labels", {"dtype": "<i8", "values": [2**70]}),
    "mixed classes": ("fitted/labels", {"dtype": "<i8", "values": [1, "a"]}),
    "parameters of another": ("parameters/n_estimators", 0),
    "unknown parameter": ("parameters/command", "rm"),
    "no parameters": ("parameters", 7),
    "endless threads": ("parameters/n_jobs", 10**12),
    "endless gain": ("parameters/splits", {"kind": "ClassMeans", "min_gain": 10**400}),
    "endless class": ("fitted/labels", {"dtype": "<U999999999", "values": ["a"]}),
    "class of dates": ("fitted/labels", {"dtype": "<M8[s]", "values": [1, 2]}),
    "class of what": ("fitted/labels", {"dtype": "what", "values": [1, 2]}),
    "no finite class": ("fitted/labels", {"dtype": "<f8", "values": NOT_FINITE}),
    "class cut short": ("fitted/labels", {"dtype": "<U1", "values": CUT}),
    "class ending in zero": ("fitted/labels", {"dtype": "<U", "values": ZEROS}),
    "class rounded": ("fitted/labels", {"dtype": "<f4", "values": CLOSE}),
    "class beyond half": ("fitted/labels", {"dtype": "<f2", "values": [1e9]}),
    "scale of zero": ("standardization.scale", np.zeros(64)),
    "whitening of another width": whitened(np.eye(63, dtype=np.float32)),
    "whitening that cannot be undone": whitened(np.zeros((64, 64), np.float32)),
    "whitening that is not triangular": whitened(np.ones((64, 64), np.float32)),
    "whitening that no one asked for": ("standardization.whitening", np.eye(64, dtype=np.float32)),
    "whitened by nothing": ("fitted/standardization/kind", "whiten"),
    "no lengths": ("standardization.length_features", np.full(64, 2, np.uint8)),
    "too few lengths": ("standardization.length_features", np.ones(63, np.uint8)),
    "scales of another width": ("standardization.scale", np.ones(63)),
    "weights below zero": ("samples.weights", np.full(1347, -1, np.float32)),
    "weights beyond all": ("samples.weights", np.full(1347, 2.0**29, np.float32)),
    "a negative id": ("samples.ids", at(0, -1)),
    "an id twice": ("samples.ids", lambda ids: np.append(ids[1], ids[1:])),
    "an id of the next sample": ("samples.ids", at(0, 1347)),
    "ids of another size": ("samples.ids", lambda ids: ids[1:]),
    "more work than there is": ("n_comparisons", np.full(8, 2**53)),
    "no trees": ("n_comparisons", np.zeros(0, np.int64)),
    "trees of another kind": ("fitted/proposer", "axis"),
    "an early sample of another width": early(X=np.zeros((1347, 63))),
    "early samples of other classes": early(codes=np.zeros(1347, np.int32)),
    "an early sample of no class": early(codes=np.full(1347, 10, np.int32)),
    "early samples that are not stored": early(ids=np.arange(1, 1348)),
    "early weights below zero": early(weights=np.full(1347, -1, np.float32)),
    "counters below zero": ("fitted/history/n_updates", -1),
    "more updates than can be counted": ("fitted/history/n_updates", 2**53 + 1),
    "more samples than can be counted": ("fitted/history/n_seen", 2**63 - 1),
    "a tree of a later update": ("history.ages.taught", at(0, 1)),
    "a class of a later update": ("history.ages.came", at(0, 1)),
    "a rate of zero": ("fitted/history/row_rate", 0.0),
    "a rate beyond all": ("fitted/history/row_rate", 2.0**32),
    "fewer refreshed trees than none": ("fitted/history/refresh_due", -1.0),
    "refreshed trees beyond all": ("fitted/history/refresh_due", 2.0**53),
    "a unit of zero": ("fitted/history/weight_unit", 0.0),
    "infinite means": in_halves(np.inf),
    "endless number": ("note", "NUMBER"),
    "names of lists": ("feature_names", [["a", "b"]] * 64),
    "no shape": ("n_comparisons", np.array(8)),
    "feature names": ("feature_names", ["a"]),
    "unknown estimator": ("estimator", "os.system"),
}


@pytest.mark.parametrize("change", [whitened(np.eye(64, dtype=np.float32)), early()])
def test_the_changes_of_the_table_start_from_a_good_file(saved: Path, change: Change) -> None:
    evergrow.load(rewritten(saved, change))


@pytest.mark.parametrize("case", FORGED)
def test_a_hostile_file_is_refused(saved: Path, case: str, monkeypatch: Any) -> None:
    write = json.dumps
    # A number too long for Python to read, which Python would not write either.
    monkeypatch.setattr(
        "evergrow.storage.models.format.json.dumps",
        lambda *a, **k: write(*a, **k).replace('"NUMBER"', "9" * 5000),
    )
    change = FORGED[case]
    check_refused(saved, forge(*change) if isinstance(change, tuple) else change)


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


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
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
    evergrow.load(path).save(path)
    assert not evergrow.load(path)._fitted.has_training_rows


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
    monkeypatch.setattr("evergrow.storage.models.format._MAX_HEADER_BYTES", 1000)
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
