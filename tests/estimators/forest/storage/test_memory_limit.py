"""A memory limit changes where samples are stored, and nothing else."""

from __future__ import annotations

import errno
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators.forest.change import addition
from evergrow.estimators.forest.storage import scratch_file
from evergrow.foundation.params import MemorySize
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, Array, blobs, stored_ids, strategy
from tests.estimators.forest.cores import equal_trees
from tests.estimators.model_files import reload

X_QUERY, _ = blobs(80, range(5), seed=77)


def is_in_file(forest: Any) -> bool:
    samples = forest._fitted.forest.samples
    return bool(samples.own_nbytes == 0)


def trained(kind: Any, limit: Any = None, **options: Any) -> Any:
    options = {"min_samples_leaf": 3, "random_state": 0, **options}
    return kind(3, memory_limit=limit, **options).fit(*blobs(150, [0, 1, 2]))


@pytest.mark.usefixtures("small_work")
@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize(
    "options",
    [{}, {"sample_dtype": "float16"}, {"keep_per_class": 20}, {"bootstrap": True, "n_jobs": 2}],
    ids=str,
)
def test_a_forest_with_a_limit_is_the_one_without(
    kind: Any, update: str, options: dict[str, Any]
) -> None:
    forests = []
    for limit in (None, 1500):
        forest = trained(kind, limit, update=strategy(update, 0.4), **options)
        forest.partial_fit(*blobs(90, [1, 3], seed=1))
        forest.forget(classes=[0], samples=stored_ids(forest)[::9])
        forest.partial_fit(*blobs(90, [0, 4], seed=2))
        forest._fitted.forest.check()
        forests.append(forest)
    plain, limited = forests
    assert is_in_file(limited)
    assert not is_in_file(plain)
    equal_trees(limited._fitted.forest, plain._fitted.forest)
    np.testing.assert_array_equal(limited.stored_ids_, plain.stored_ids_)
    np.testing.assert_array_equal(limited.predict_proba(X_QUERY), plain.predict_proba(X_QUERY))
    equal_trees(limited.compact()._fitted.forest, plain.compact()._fitted.forest)


@pytest.mark.usefixtures("small_work")
def test_a_forest_of_coarse_and_fine_classes_is_the_same_too() -> None:
    X, fine = blobs(150, range(6))
    y = np.column_stack([fine // 2, 10 + fine])
    forests = []
    for limit in (None, 1500):
        forest = SubcategoryForestClassifier(
            3, min_samples_leaf=3, memory_limit=limit, random_state=0
        )
        forests.append(forest.fit(X, y).partial_fit(X[:40] + 0.1, y[:40]))
    plain, limited = (forest._fitted.forest.forest for forest in forests)
    assert limited.samples.own_nbytes == 0
    equal_trees(limited, plain)


@pytest.mark.parametrize("kind", FORESTS)
def test_samples_within_the_limit_stay_in_memory(kind: Any) -> None:
    plain, limited = trained(kind), trained(kind, "1GiB")
    limited.partial_fit(*blobs(90, [1, 3], seed=1))
    assert limited._fitted.forest.samples.own_nbytes > 240 * 64
    equal_trees(
        limited._fitted.forest, plain.partial_fit(*blobs(90, [1, 3], seed=1))._fitted.forest
    )


@pytest.mark.usefixtures("small_work")
@pytest.mark.skipif(sys.platform == "win32", reason="no memory in a file there")
def test_a_named_file_takes_the_samples_whatever_the_limit(tmp_path: Path) -> None:
    forests = []
    for limit in (None, 1500):
        forest = trained(NCMForestClassifier, limit, memory=tmp_path / f"samples {limit}")
        forests.append(forest.partial_fit(*blobs(90, [1, 3], seed=1)))
        assert forest._fitted.forest.samples.path is not None
    plain, limited = (forest._fitted.forest for forest in forests)
    equal_trees(limited, plain)


@pytest.mark.usefixtures("small_work")
def test_a_loaded_forest_takes_its_samples_out_of_memory(tmp_path: Path) -> None:
    plain, limited = trained(NCMForestClassifier), trained(NCMForestClassifier, 1500)
    loaded = reload(limited, tmp_path)
    assert loaded.memory_limit == 1500
    assert not is_in_file(loaded)
    loaded.partial_fit(*blobs(90, [1, 3], seed=1))
    assert is_in_file(loaded)
    plain.partial_fit(*blobs(90, [1, 3], seed=1))
    equal_trees(loaded._fitted.forest, plain._fitted.forest)


class InFile:
    """Rows of an array that can be read by slice or by ascending indices, as those of shards."""

    def __init__(self, X: Array, path: Path) -> None:
        np.save(path, X)
        self._rows = np.load(path, mmap_mode="r")
        self.shape, self.dtype = X.shape, X.dtype
        self.largest = 0

    def __getitem__(self, rows: Any) -> Array:
        if not isinstance(rows, slice):
            assert (np.diff(rows) > 0).all()
        found: Array = np.array(self._rows[rows])
        self.largest = max(self.largest, len(found))
        return found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("chunk", [1, 1000, 10**9])
def test_rows_go_to_the_file_in_the_order_of_their_classes(
    dtype: Any, half: bool, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch_file, "_BLOCK_BYTES", 16 * 8 * 7)
    X, y = blobs(100, range(4))
    X = (10 * X + 100).astype(dtype)
    source = InFile(X, tmp_path / "rows.npy")
    scale = scratch_file.Standardization.of_each(X)
    seen: list[int] = []
    found = scratch_file.ScratchRows(
        source.__getitem__,
        y.astype(np.int32),
        scale,
        half=half,
        chunk_bytes=chunk,
        progress=seen.append,
    )
    expected = np.zeros((100, 16), dtype=np.uint16 if half else np.float32)
    block = X.astype(np.float32 if dtype == np.float16 else np.float64)
    evergrow._core.standardize_rows(block, scale.core, expected)
    np.testing.assert_array_equal(found.rows[found.places], expected)
    assert (np.diff(y[np.argsort(found.places)]) >= 0).all()
    assert not found.rows.flags.writeable
    assert source.largest <= 7
    assert seen[-1] == 100


@pytest.mark.usefixtures("small_work")
def test_a_memory_mapped_array_gives_the_same_forest(tmp_path: Path) -> None:
    X, y = blobs(150, [0, 1, 2])
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    limited = trained(NCMForestClassifier, 1500).fit(mapped, y)
    equal_trees(limited._fitted.forest, trained(NCMForestClassifier)._fitted.forest)


@pytest.mark.parametrize(
    ("limit", "got"), [("1MiB", "1MiB"), ("1300KiB", r"1\.2MiB"), (5000, "5000 bytes")]
)
def test_the_error_for_too_small_a_limit_names_the_smallest(limit: Any, got: str) -> None:
    message = rf"memory_limit must be at least \d+MiB for 150 samples .*, got {got};"
    with pytest.raises(ValueError, match=message):
        trained(NCMForestClassifier, limit)


@pytest.mark.parametrize("n_samples", [4000, 20000])
def test_places_of_evicted_samples_are_not_counted_as_samples(n_samples: int) -> None:
    X, y = blobs(n_samples, range(3))
    forest = NCMForestClassifier(3, memory_limit=1, keep_per_class=20, random_state=0)
    with pytest.raises(ValueError, match="memory_limit must be at least") as refused:
        forest.fit(X, y)
    least = str(refused.value).split("at least ")[1].split(" ")[0]
    forest.set_params(memory_limit=least).fit(X, y).partial_fit(X[:300], y[:300])
    assert len(forest._fitted.forest.samples) == n_samples


@pytest.mark.parametrize("kind", FORESTS)
def test_the_smallest_limit_that_the_error_names_works(kind: Any) -> None:
    with pytest.raises(ValueError, match="memory_limit must be at least") as refused:
        trained(kind, 1)
    least = str(refused.value).split("at least ")[1].split(" ")[0]
    equal_trees(trained(kind, least)._fitted.forest, trained(kind)._fitted.forest)


def test_a_limit_that_became_too_small_leaves_the_model_as_it_was() -> None:
    forest = trained(NCMForestClassifier)
    state = dict(vars(forest))
    forest.memory_limit = state["memory_limit"] = "1MiB"
    for change in (
        lambda: forest.partial_fit(*blobs(90, [1, 3], seed=1)),
        lambda: forest.forget(samples=[0]),
    ):
        with pytest.raises(ValueError, match="memory_limit must be at least"):
            change()
    assert vars(forest) == state


@pytest.mark.parametrize(
    "limit", ["", "4.5", "4e9", "4 XiB", "-1GiB", "0MiB", "many", 0, -5, 1.5, True, b"4GiB"]
)
def test_an_invalid_size_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="memory_limit must be None or a size such as '4GiB'"):
        trained(NCMForestClassifier, limit)


@pytest.mark.parametrize(
    "size", ["4GiB", "4 GiB", "600MiB", "2GB", "1.5TB", "7B", "64KB", "64kB", "1000000", 9]
)
def test_sizes_have_many_forms(size: Any) -> None:
    assert MemorySize().admits(size)


@pytest.mark.usefixtures("small_work")
def test_a_disk_that_is_too_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(scratch_file, "shutil", FullDisk)
    with pytest.raises(OSError, match="set TMPDIR") as refused:
        trained(NCMForestClassifier, 1500)
    assert refused.value.filename == str(tmp_path)


def refuse(number: int) -> Callable[..., None]:
    def taking(file: int, first: int, n_bytes: int) -> None:
        raise OSError(number, os.strerror(number))

    return taking


@pytest.mark.usefixtures("small_work")
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved there")
@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_disk_that_cannot_reserve_space_is_used_without(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "posix_fallocate", refuse(number))
    assert is_in_file(trained(NCMForestClassifier, 1500))


@pytest.mark.usefixtures("small_work")
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved there")
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "set TMPDIR to a folder with more space"),
        (errno.EDQUOT, "set TMPDIR to a folder with more space"),
        (errno.EIO, "disk space for the samples cannot be reserved"),
    ],
)
def test_the_error_says_why_disk_space_cannot_be_reserved(
    number: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", refuse(number))
    with pytest.raises(OSError, match=message) as refused:
        trained(NCMForestClassifier, 1500)
    assert refused.value.filename == str(tmp_path)
    assert refused.value.errno == (errno.EIO if number == errno.EIO else errno.ENOSPC)


@pytest.mark.usefixtures("small_work")
@pytest.mark.parametrize("folder", ["missing", "/proc"])
def test_a_folder_that_cannot_hold_the_samples_is_named(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = os.path.join(tmp_path, folder)
    monkeypatch.setenv("TMPDIR", named)
    with pytest.raises(OSError, match=r"memory_limit needs a folder .* TMPDIR") as refused:
        trained(NCMForestClassifier, 1500)
    assert refused.value.filename == named


@pytest.mark.usefixtures("small_work")
def test_a_folder_that_is_memory_itself_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "is_in_memory", lambda folder: True)
    with pytest.warns(UserWarning, match="is itself in memory: set TMPDIR"):
        trained(NCMForestClassifier, 1500)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no folder in memory there")
def test_a_folder_in_memory_is_recognised() -> None:
    assert scratch_file.is_in_memory("/dev/shm")
    assert not scratch_file.is_in_memory("/proc")


class FullDisk:
    """Stands for a module that looks at disks."""

    free = 1000

    @classmethod
    def disk_usage(cls, folder: str) -> Any:
        assert folder
        return cls


@pytest.mark.usefixtures("small_work")
def test_the_unlinked_file_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    @contextmanager
    def broken(*args: object) -> Any:
        assert os.listdir(tmp_path) == []
        yield None
        raise RuntimeError("display broke")

    forest = trained(NCMForestClassifier, 1500)
    assert is_in_file(forest)
    assert os.listdir(tmp_path) == []
    with monkeypatch.context() as patch:
        patch.setattr(addition, "progress_bar", broken)
        with pytest.raises(RuntimeError, match="display broke"):
            forest.partial_fit(*blobs(90, [1, 3], seed=1))
    assert os.listdir(tmp_path) == []


ACTIONS: dict[str, Callable[[Any, Path], Any]] = {
    "save": lambda forest, path: (forest.save(path / "model"), evergrow.load(path / "model"))[1],
    "pickle": lambda forest, path: pickle.loads(pickle.dumps(forest)),
}


@pytest.mark.usefixtures("small_work")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_forest_in_a_file_can_be_saved(action: str, dtype: Any, tmp_path: Path) -> None:
    forest = trained(NCMForestClassifier, 1500, sample_dtype=dtype).forget(samples=[3, 5])
    loaded = ACTIONS[action](forest, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X_QUERY), forest.predict_proba(X_QUERY))
    answers = [
        model.partial_fit(*blobs(90, [1, 3], seed=1)).predict_proba(X_QUERY)
        for model in (loaded, forest)
    ]
    np.testing.assert_array_equal(*answers)
