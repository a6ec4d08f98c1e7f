"""Samples beyond the limit lie in a file, and nothing else changes."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import NCMForestClassifier, SubcategoryForestClassifier, _core
from evergrow.estimators import Bootstrap, Storage
from evergrow.estimators.forest import storage
from evergrow.foundation.params import MemorySize
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, N_FEATURES, Array, blobs, stored_ids, strategy
from tests.estimators.forest.cores import RULES, aligned, equal_trees, grow, standardizer, written
from tests.estimators.model_files import reload
from tests.harness.process import end_if_stuck

pytestmark = [
    pytest.mark.usefixtures("on_disk"),
    pytest.mark.skipif(sys.platform == "win32", reason="no samples in a file there"),
]

X_QUERY, _ = blobs(80, range(5), seed=77)
# Of 150 samples of one cache line each.
BELOW = 149 * 64


def in_file(forest: Any) -> bool:
    return bool(forest._fitted.forest.samples.in_file)


def trained(kind: Any = NCMForestClassifier, limit: Any = None, **options: Any) -> Any:
    options = {"min_samples_leaf": 3, "storage": Storage(limit), "random_state": 0, **options}
    return kind(3, **options).fit(*blobs(150, [0, 1, 2]))


def changed(forest: Any) -> Any:
    forest.partial_fit(*blobs(90, [1, 3], seed=1))
    forest.forget(classes=[0], samples=stored_ids(forest)[::9])
    forest.partial_fit(*blobs(90, [0, 4], seed=2))
    forest._fitted.forest.check()
    return forest


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize(
    ("stored", "options"),
    [
        ({}, {}),
        ({"dtype": "float16"}, {"standardize": "whiten"}),
        ({"per_class": 20}, {}),
        ({}, {"max_samples": Bootstrap(), "n_jobs": 2}),
    ],
)
def test_a_forest_with_a_limit_is_the_one_without(
    kind: Any, update: str, stored: dict[str, Any], options: dict[str, Any]
) -> None:
    if options.get("standardize") == "whiten" and kind.__name__.startswith("Axis"):
        options = {}
    options = {"update": strategy(update, 0.4), **options}
    plain, limited = (
        changed(trained(kind, storage=Storage(limit, **stored), **options)) for limit in (None, 1)
    )
    assert [in_file(plain), in_file(limited)] == [False, True]
    equal_trees(limited._fitted.forest, plain._fitted.forest)
    np.testing.assert_array_equal(limited.stored_ids_, plain.stored_ids_)
    np.testing.assert_array_equal(limited.predict_proba(X_QUERY), plain.predict_proba(X_QUERY))
    equal_trees(limited.compact()._fitted.forest, plain.compact()._fitted.forest)


def test_a_forest_that_measures_again_is_the_same_too() -> None:
    X, y = np.random.default_rng(0).normal(size=(400, 40)), np.arange(400) % 5
    forests = []
    for limit in (None, 1):
        forest = NCMForestClassifier(3, storage=Storage(limit), random_state=0)
        forests.append(forest.fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]))
        assert forest._fitted.history.n_measured == 400
    equal_trees(forests[1]._fitted.forest, forests[0]._fitted.forest)


def test_a_forest_of_coarse_and_fine_classes_is_the_same_too() -> None:
    X, fine = blobs(150, range(6))
    y = np.column_stack([fine // 2, 10 + fine])
    found = []
    for limit in (None, 1):
        options: dict[str, Any] = {"min_samples_leaf": 3, "storage": Storage(limit)}
        for method in ("ridge-h", "stacked"):
            forest = SubcategoryForestClassifier(3, method=method, random_state=0, **options)
            found.append(forest.fit(X, y).partial_fit(X[:40] + 0.1, y[:40])._fitted.forest.forest)
    assert [forest.samples.in_file for forest in found] == [False, False, True, True]
    equal_trees(found[2], found[0])
    equal_trees(found[3], found[1])


@pytest.mark.parametrize("kind", FORESTS)
def test_samples_go_to_the_file_once_they_exceed_the_limit(kind: Any) -> None:
    forest = trained(kind, 150 * 64)
    assert not in_file(forest)
    assert in_file(trained(kind, BELOW))
    forest.partial_fit(*blobs(1, [1], seed=1))
    assert in_file(forest)
    forest.forget(samples=range(40)).compact()
    assert not in_file(forest)
    plain = trained(kind).partial_fit(*blobs(1, [1], seed=1)).forget(samples=range(40)).compact()
    equal_trees(forest._fitted.forest, plain._fitted.forest)


def test_a_loaded_forest_moves_its_samples_to_a_file(tmp_path: Path) -> None:
    loaded = reload(trained(limit=1), tmp_path)
    assert loaded.storage == Storage(1)
    assert not in_file(loaded)
    equal_trees(changed(loaded)._fitted.forest, changed(trained())._fitted.forest)
    assert in_file(loaded)


def test_a_memory_mapped_array_gives_the_same_forest(tmp_path: Path) -> None:
    X, y = blobs(150, [0, 1, 2])
    np.save(tmp_path / "X.npy", X)
    limited = trained(limit=1).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    equal_trees(limited._fitted.forest, trained()._fitted.forest)


@pytest.mark.parametrize(
    "limit", ["", "4.5", "4e9", "4 XiB", "-1GiB", "0MiB", "many", 0, -5, 1.5, True, b"4GiB"]
)
def test_an_invalid_size_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"Storage\.limit must be None or a size such as '4GiB'"):
        Storage(limit)


@pytest.mark.parametrize(
    "size", ["4GiB", "4 GiB", "600MiB", "2GB", "1.5TB", "7B", "64KB", "64kB", "1000000", 9]
)
def test_sizes_have_many_forms(size: Any) -> None:
    assert MemorySize().admits(size)


@pytest.mark.parametrize("wrong", ["4GiB", {"limit": 3}, Storage])
def test_what_is_no_storage_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="storage must be None or a value of Storage, got"):
        trained(storage=wrong)


class FullDisk:
    """Stands for a module that looks at disks."""

    free = 1000

    @classmethod
    def disk_usage(cls, folder: str) -> Any:
        assert folder
        return cls


def test_a_disk_that_is_too_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(storage, "shutil", FullDisk)
    with pytest.raises(OSError, match=r"exceed Storage\.limit .* set TMPDIR") as refused:
        trained(limit=1)
    assert refused.value.filename == str(tmp_path)


@pytest.mark.parametrize("folder", ["missing", "/proc"])
def test_a_folder_that_cannot_hold_the_samples_is_named(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", os.path.join(tmp_path, folder))
    monkeypatch.setattr(storage, "check_space", lambda *_: None)
    with pytest.raises(OSError, match=rf"TMPDIR.*{folder}|{folder}.*TMPDIR"):
        trained(limit=1)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no folder in memory there")
def test_a_folder_that_is_memory_itself_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/dev/shm")
    trained(limit=1)
    monkeypatch.setattr(storage, "_MEMORY_FILE_SYSTEMS", ("tmpfs", "ramfs"))
    with pytest.warns(UserWarning, match="is itself in memory: set TMPDIR"):
        trained(limit=1)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are not listed there")
def test_the_file_has_no_name_and_goes_with_the_forest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sizes() -> list[int]:
        files = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        mine = [f for f in files if os.path.exists(f) or os.path.islink(f)]
        return [os.stat(f).st_size for f in mine if str(tmp_path) in os.readlink(f)]

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    forest = trained(limit=1)
    assert os.listdir(tmp_path) == []
    assert sizes() == [4 << 20]
    for seed in range(600):
        # A page that no forest uses is used again.
        forest.partial_fit(*blobs(1, [1], seed=seed))
    assert sizes() == [4 << 20]
    del forest
    gc.collect()
    assert sizes() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_does_not_change_the_samples_of_its_parent() -> None:
    forest, plain = trained(limit=1), trained()
    child = os.fork()
    if child == 0:
        end_if_stuck()
        try:
            forest.forget(samples=range(20)).partial_fit(*blobs(90, [1, 3], seed=3))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    equal_trees(changed(forest)._fitted.forest, changed(plain)._fitted.forest)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_keeps_the_samples_it_had() -> None:
    forest, numbers = trained(limit=1), np.arange(150, dtype=np.int32)
    before = forest._fitted.samples.take(numbers)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        end_if_stuck()
        try:
            os.read(reader, 1)
            os._exit(int(not np.array_equal(forest._fitted.samples.take(numbers), before)))
        finally:
            os._exit(2)
    for seed in range(3):
        forest.forget(samples=stored_ids(forest)[::3]).partial_fit(*blobs(90, [1, 3], seed=seed))
    os.write(writer, b"!")
    assert os.waitpid(child, 0)[1] == 0


ACTIONS: dict[str, Callable[[Any, Path], Any]] = {
    "save": lambda forest, path: (forest.save(path / "model"), evergrow.load(path / "model"))[1],
    "pickle": lambda forest, path: pickle.loads(pickle.dumps(forest)),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_forest_in_a_file_can_be_saved(action: str, dtype: Any, tmp_path: Path) -> None:
    forest = trained(storage=Storage(1, dtype=dtype)).forget(samples=[3, 5])
    loaded = ACTIONS[action](forest, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X_QUERY), forest.predict_proba(X_QUERY))
    answers = [model.predict_proba(X_QUERY) for model in (changed(loaded), changed(forest))]
    np.testing.assert_array_equal(*answers)


# Samples over an array.

N_ROWS = 200
X, Y = blobs(N_ROWS, range(6))
CODES, IDS = Y.astype(np.int32), np.arange(N_ROWS, dtype=np.int64)


def padded(X: Array, *, half: bool = False) -> Array:
    """Standardised rows of the padded width."""
    out = aligned((len(X), _core.padded_width(X.shape[1])), np.uint16 if half else np.float32)
    _core.standardize_rows(X, standardizer(N_FEATURES), out)
    return out


@pytest.mark.parametrize("proposer", RULES)
@pytest.mark.parametrize("half", [False, True])
def test_a_forest_over_an_array_is_that_of_written_rows(proposer: str, half: bool) -> None:
    rows = padded(X, half=half)
    rows.flags.writeable = False
    foreign = grow(_core.Samples.over(rows, CODES, IDS, n_features=N_FEATURES), proposer)
    foreign.check()
    equal_trees(foreign, grow(written(X, CODES, half=half), proposer))
    equal_trees(foreign.compact(), foreign)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("n", [1, N_ROWS])
def test_nothing_is_written_to_the_array(half: bool, n: int) -> None:
    rows = padded(X[:n], half=half)
    before = rows.copy()
    samples = _core.Samples.over(rows, CODES[:n], IDS[:n], n_features=N_FEATURES)
    samples.remove(np.arange(0, n, 3, dtype=np.int32))
    numbers = samples.add(n)
    samples.write(numbers, X[:n] + 1, CODES[:n], N_ROWS + IDS[:n], standardizer(N_FEATURES))
    assert (samples.classes >= 0).all()
    np.testing.assert_array_equal(rows, before)


class Owned(np.ndarray[Any, Any]):
    """An array that can be watched."""


def test_the_array_lives_as_long_as_a_forest_over_it() -> None:
    rows = padded(X).view(Owned)
    watched = weakref.ref(rows)
    forest = grow(_core.Samples.over(rows, CODES, IDS, n_features=N_FEATURES), "ncm")
    del rows
    gc.collect()
    assert watched() is not None
    del forest
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": padded(X)[:, :8]}, "rows must have the padded width"),
        ({"rows": padded(X)[1:]}, "differ in length"),
        ({"ids": IDS[1:]}, "differ in length"),
        ({"classes": CODES - 9}, "classes must be at least -1"),
        ({"weights": np.full(N_ROWS, -1, np.float32)}, "weights must be from 0 to"),
        ({"n_features": 0}, "rows must have the padded width"),
    ],
    ids=str,
)
def test_an_array_that_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    values = {"rows": padded(X), "classes": CODES, "ids": IDS, "n_features": N_FEATURES, **change}
    rows, codes, ids = (np.ascontiguousarray(values.pop(n)) for n in ("rows", "classes", "ids"))
    with pytest.raises(ValueError, match=message):
        _core.Samples.over(rows, codes, ids, **values)
