"""Files of samples go with their samples, and forests are the same wherever samples lie."""

from __future__ import annotations

import errno
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier, _core
from evergrow.estimators.forest.storage import compaction
from tests.estimators.forest.blobs import N_FEATURES, Array, blobs, stored_ids
from tests.estimators.forest.cores import aligned, equal_trees, written

X_QUERY, _ = blobs(80, range(5), seed=77)


def trained(limit: int | None = 1500, **options: Any) -> Any:
    options = {"min_samples_leaf": 3, "random_state": 0, **options}
    forest = NCMForestClassifier(3, memory_limit=limit, **options)
    return forest.fit(*blobs(150, [0, 1, 2]))


def n_mapped(forest: Any) -> int:
    """Rows that fit into the files of a forest."""
    return sum(forest._fitted.forest.samples.lender_capacities)


def n_stored(forest: Any) -> int:
    return len(stored_ids(forest))


def n_files(forest: Any) -> int:
    return sum(capacity > 0 for capacity in forest._fitted.forest.samples.lender_capacities)


@pytest.mark.usefixtures("small_work")
def test_files_of_evicted_samples_do_not_accumulate() -> None:
    forest, plain = (trained(limit, keep_per_class=15) for limit in (1500, None))
    for seed in range(12):
        batch = blobs(60, [0, 1, 2], seed=seed)
        forest.partial_fit(*batch)
        plain.partial_fit(*batch)
        assert n_stored(forest) == 45
        assert n_mapped(forest) <= 2 * 45
        assert forest._fitted.forest.samples.own_nbytes == 0
    equal_trees(forest._fitted.forest, plain._fitted.forest)
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), plain.predict_proba(X_QUERY))


@pytest.mark.usefixtures("small_work")
def test_files_of_many_small_updates_are_joined() -> None:
    forest, plain = trained(1500), trained(None)
    for seed in range(20):
        batch = blobs(10, [0, 1, 2], seed=seed)
        forest.partial_fit(*batch)
        plain.partial_fit(*batch)
        assert n_files(forest) <= 5
    assert n_mapped(forest) == n_stored(forest) == 350
    equal_trees(forest._fitted.forest, plain._fitted.forest)


@pytest.mark.usefixtures("small_work")
def test_forgetting_gives_half_empty_files_back() -> None:
    forest, plain = trained(1500), trained(None)
    for each in (forest, plain):
        each.forget(samples=np.arange(0, 150, 5), classes=[0, 1])
    assert n_mapped(forest) == n_stored(forest) < 60
    equal_trees(forest._fitted.forest, plain._fitted.forest)


@pytest.mark.usefixtures("small_work")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_tidying_leaves_one_file_without_forgotten_samples(dtype: Any) -> None:
    forest, plain = (trained(limit, sample_dtype=dtype) for limit in (1500, None))
    for each in (forest, plain):
        each.partial_fit(*blobs(40, [0, 1, 2], seed=1)).forget(samples=[3, 4, 160])
    assert n_mapped(forest) > n_stored(forest)
    for each in (forest, plain):
        each.compact()
    assert n_files(forest) == 1
    assert n_mapped(forest) == n_stored(forest) == 187
    equal_trees(forest._fitted.forest, plain._fitted.forest)
    for each in (forest, plain):
        each.partial_fit(*blobs(30, [0, 3], seed=2))
    equal_trees(forest._fitted.forest, plain._fitted.forest)


@pytest.mark.usefixtures("small_work")
def test_the_previous_forest_keeps_its_samples() -> None:
    forest = trained(1500)
    before = forest._fitted.forest
    rows = np.arange(150, dtype=np.int32)
    expected = before.samples.take(rows)
    forest.forget(classes=[0, 1]).compact()
    gc.collect()
    np.testing.assert_array_equal(before.samples.take(rows), expected)
    assert before.samples.n_removed == 0


@pytest.mark.usefixtures("small_work")
def test_a_disk_without_room_to_tidy_does_not_stop_an_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    forest, plain = trained(1500), trained(None)
    monkeypatch.setattr(compaction, "ScratchRows", full)
    for each in (forest, plain):
        each.forget(classes=[0, 1])
    assert n_mapped(forest) == 150
    equal_trees(forest._fitted.forest, plain._fitted.forest)
    with pytest.raises(OSError, match="full"):
        forest.compact()


def half_empty(n_gone: int) -> tuple[Any, _core.Samples]:
    """Samples over an array, which can be watched, after some were removed."""

    class Owned(np.ndarray[Any, Any]):
        pass

    X, y = blobs(40, range(4))
    rows = aligned((40, 16), np.float32)
    identity = _core.Standardizer(np.zeros(N_FEATURES), np.ones(N_FEATURES))
    _core.standardize_rows(X, identity, rows)
    rows = rows.view(Owned)
    ids = np.arange(40, dtype=np.int64)
    samples = _core.Samples.over(rows, y.astype(np.int32), ids, n_features=N_FEATURES)
    samples.remove(np.arange(n_gone, dtype=np.int32))
    return weakref.ref(rows), samples


def test_an_array_goes_when_its_last_sample_is_removed() -> None:
    watched, samples = half_empty(40)
    gc.collect()
    assert watched() is None
    X, y = blobs(3, [1])
    numbers = samples.add(3)
    identity = _core.Standardizer(np.zeros(N_FEATURES), np.ones(N_FEATURES))
    samples.write(numbers, X, y.astype(np.int32), np.arange(3, dtype=np.int64), identity)
    np.testing.assert_array_equal(samples.take(numbers), X.astype(np.float32))


def test_without_a_limit_samples_move_within_memory() -> None:
    watched, samples = half_empty(30)
    left = np.arange(30, 40, dtype=np.int32)
    expected = samples.take(left)
    moved = compaction._moved(samples, left, None)
    del samples
    gc.collect()
    assert watched() is None
    np.testing.assert_array_equal(moved.take(left), expected)


def test_removed_rows_cannot_be_moved() -> None:
    _, samples = half_empty(30)
    rows: Array = aligned((1, 16), np.float32)
    with pytest.raises(ValueError, match="only stored rows"):
        samples.move_over(rows, np.array([2], dtype=np.int32))


def test_owned_samples_have_no_lender() -> None:
    X, y = blobs(40, range(4))
    samples = written(X, y.astype(np.int32))
    assert samples.lender_capacities == []
    assert (samples.lenders == -1).all()


@pytest.mark.parametrize(
    ("left", "rooms", "moving_files"),
    [
        ([], [], []),
        ([10], [10], []),
        ([4], [10], [0]),
        ([10, 10], [10, 10], [0, 1]),
        ([10, 25], [10, 25], []),
        ([5, 5, 10, 100], [5, 5, 10, 100], [0, 1, 2]),
        ([100, 0, 10], [100, 0, 30], [2]),
    ],
)
def test_half_empty_files_move_and_small_ones_are_joined(
    left: list[int], rooms: list[int], moving_files: list[int]
) -> None:
    chosen = compaction._worth_moving(np.array(left, dtype=int), np.array(rooms, dtype=int))
    assert chosen.tolist() == moving_files
