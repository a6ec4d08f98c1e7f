"""Virtual votes: fair to small classes, exact after every change, and gone when switched off."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evergrow
from evergrow import NCMForestClassifier
from evergrow.estimators.forest.value import virtual_votes
from evergrow.estimators.forest.value.fitted import Standardization
from evergrow.estimators.forest.value.virtual_votes import draw_below, n_virtual
from evergrow.storage.models.format import read_model
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, leaf_counts
from tests.reference import virtual_votes as twin
from tests.reference.random import Stream

every_kind = pytest.mark.parametrize("kind", FORESTS)
SIZES = [60, 60, 60, 60, 4]


def samples(sizes: list[int], seed: int = 0) -> tuple[Any, Any]:
    """Overlapping classes of these sizes."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.random.default_rng(3).normal(size=(20, 5))
    return centres[y] + np.random.default_rng(seed).normal(size=(len(y), 5)), y


X, Y = samples(SIZES)
X_QUERY, Y_QUERY = samples([40] * 5, seed=5)


def fair(kind: Any = NCMForestClassifier, **options: Any) -> Any:
    return kind(**{"n_estimators": 5, "balance": 1.0, "random_state": 0, **options})


def counted_again(forest: Any) -> Any:
    """Probabilities with votes that are counted anew from what the forest stores."""
    fitted = virtual_votes.with_virtual_votes(forest._fitted, forest.balance, 1)
    return fitted.probabilities(X_QUERY, 1)


@every_kind
def test_a_small_class_is_answered_more_often(kind: Any) -> None:
    plain, balanced = (fair(kind, balance=b, n_estimators=20).fit(X, Y) for b in (0.0, 1.0))
    own = X_QUERY[Y_QUERY == 4]
    right = [(forest.predict(own) == 4).mean() for forest in (plain, balanced)]
    assert right[1] > right[0] + 0.1
    assert balanced.score(X_QUERY, Y_QUERY) > plain.score(X_QUERY, Y_QUERY)


def test_more_balance_is_more_votes() -> None:
    votes = [
        fair(balance=b).fit(X, Y).predict_proba(X_QUERY)[:, 4].mean() for b in (0.0, 0.3, 0.6, 1.0)
    ]
    assert votes == sorted(votes)


@every_kind
def test_without_it_nothing_changes(kind: Any) -> None:
    never = kind(5, random_state=0).fit(X, Y)
    switched_off = fair(kind).fit(X, Y).set_params(balance=0.0).compact()
    np.testing.assert_array_equal(switched_off.predict_proba(X_QUERY), never.predict_proba(X_QUERY))
    assert switched_off._fitted.voters is None


def test_classes_of_one_size_get_none() -> None:
    even = samples([30] * 5)
    assert fair().fit(*even)._fitted.voters is None


def test_the_trees_that_grow_do_not_count_them() -> None:
    forest = fair().fit(X, Y)
    assert [leaf_counts(forest, tree).tolist() for tree in range(5)] == [SIZES] * 5
    assert len(forest.stored_ids_) == len(Y)
    forest._fitted.forest.check()


@pytest.mark.parametrize("seed", range(5))
def test_votes_are_those_of_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), [32, 16, 2, 32])
    # Centre 0 and scale 1 / 4, so that rows and sums are exact.
    integers = rng.integers(-3, 4, size=(len(y), 3)).astype(float)
    integers[rng.permutation(len(y))[:3]] = 4.0
    forest = fair(standardize=False, min_samples_leaf=2).fit(integers, y)
    fitted = forest._fitted
    core = fitted.forest
    rows = core.samples.take(np.arange(len(y), dtype=np.int32)).astype(np.float64)
    virtual, classes = twin.virtual_samples(rows, y, 1.0, fitted.history.seed)
    assert len(classes) == 4 * (8 + 22)
    identity = Standardization.identity(3).core
    counts = []
    for tree in range(len(core)):
        arrays = core.tree_arrays(tree)
        table = np.zeros((len(arrays["left"]), 4))
        for leaf in np.flatnonzero(arrays["left"] == -1):
            begin = arrays["count_begin"][leaf]
            own = slice(begin, begin + arrays["count_size"][leaf])
            table[leaf, arrays["count_class"][own]] = arrays["count"][own]
        counts.append(table)
    leaves, virtual_leaves = core.apply(rows, identity, 1), core.apply(virtual, identity, 1)
    expected = twin.probabilities(counts, leaves, virtual_leaves, classes)
    np.testing.assert_array_equal(forest.predict_proba(integers), expected)


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**31 - 1))
def test_draws_are_those_of_the_core(key: int, bound: int) -> None:
    stream = Stream(key)
    assert draw_below(key, 5, bound).tolist() == [stream.below(bound) for _ in range(5)]


@given(st.lists(st.integers(0, 1000), min_size=1).filter(any), st.floats(0, 1))
def test_only_classes_below_the_median_get_virtual_samples(
    sizes: list[int], balance: float
) -> None:
    numbers = n_virtual(np.array(sizes), balance)
    median = np.median([n for n in sizes if n])
    for size, number in zip(sizes, numbers, strict=True):
        assert 0 <= number <= 4 * max(0, median - size)
        assert number == 0 or 0 < size < median


@pytest.mark.parametrize("options", [{"max_samples": 0.5}, {"bootstrap": True}, {}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_threads_do_not_matter(dtype: Any, options: dict[str, Any]) -> None:
    one, two = (
        fair(n_jobs=n, sample_dtype=dtype, **options).fit(X, Y).predict_proba(X_QUERY)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_samples_in_files_get_the_same_votes(tmp_path: Path) -> None:
    here = fair().fit(X, Y).predict_proba(X_QUERY)
    limited = fair(memory_limit="40MiB").fit(X, Y)
    np.testing.assert_array_equal(limited.predict_proba(X_QUERY), here)
    mapped = fair(memory=tmp_path / "rows").fit(X, Y)
    size = (tmp_path / "rows").stat().st_size
    # No row of a named file is a centroid, so a few rows take another way.
    assert np.abs(mapped.predict_proba(X_QUERY) - here).mean() < 0.005
    mapped.partial_fit(*samples([1, 1, 1, 1, 1], seed=8)).forget(samples=[0])
    np.testing.assert_array_equal(mapped.predict_proba(X_QUERY), counted_again(mapped))
    mapped._fitted.forest.check()
    assert (tmp_path / "rows").stat().st_size == size


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fair().fit(X, Y).predict_proba(X_QUERY)
    many = [300, 300, 300, 300, 3]
    in_one = fair().fit(*samples(many)).predict_proba(X_QUERY)
    monkeypatch.setattr(virtual_votes, "_BLOCK_BYTES", 1)
    np.testing.assert_array_equal(fair().fit(X, Y).predict_proba(X_QUERY), whole)
    in_blocks = fair().fit(*samples(many)).predict_proba(X_QUERY)
    np.testing.assert_allclose(in_blocks, in_one, rtol=1e-12)


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_every_change_counts_them_again(kind: Any, update: str) -> None:
    forest = fair(kind, update=update, min_samples_leaf=2).fit(*samples([60, 60, 60]))
    forest.partial_fit(*samples([0, 0, 0, 3, 5], seed=1))
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))
    assert forest._fitted.voters is not None
    forest.forget(samples=[0, 1, 2])
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))
    forest.rename_classes({4: 9})
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))


def test_a_forgotten_class_takes_its_virtual_votes_along() -> None:
    forest = fair().fit(X, Y).forget(classes=[4])
    assert forest._fitted.voters is None
    proba = forest.predict_proba(X_QUERY)
    assert proba.shape == (200, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_votes_after_forgetting_depend_on_what_is_left_alone() -> None:
    """The samples that went were outliers: their deviations and means must not be borrowed."""
    far, y = X.copy(), Y.copy()
    far[[0, 61, 122]] += 1000.0
    forest = fair().fit(far, y)
    forest.forget(samples=[0, 61, 122])
    left = forest._fitted.forest.samples
    rows = np.flatnonzero(left.classes >= 0).astype(np.int32)
    assert np.abs(left.take(rows)).max() < 10
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))


def test_a_class_that_has_grown_needs_no_virtual_votes() -> None:
    forest = fair(update="uls").fit(X, Y)
    more = samples([0, 0, 0, 0, 56], seed=2)
    assert forest.partial_fit(*more)._fitted.voters is None


def test_a_failed_update_changes_nothing() -> None:
    forest = fair().fit(X, Y)
    before = forest.predict_proba(X_QUERY)
    with pytest.raises(ValueError, match="NaN"):
        forest.partial_fit([[np.nan] * 5], [0])
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)


def test_files_copies_and_pickles_vote_alike(tmp_path: Path) -> None:
    forest = fair(update="igt").fit(X, Y).partial_fit(*samples([0, 0, 0, 2, 2], seed=1))
    forest.forget(samples=[3, 4])
    expected = forest.predict_proba(X_QUERY)
    forest.save(tmp_path / "whole")
    forest.save(tmp_path / "small", inference_only=True)
    again = evergrow.load(tmp_path / "whole")
    small = evergrow.load(tmp_path / "small")
    for other in (again, small, copy.deepcopy(forest), pickle.loads(pickle.dumps(forest))):
        np.testing.assert_array_equal(other.predict_proba(X_QUERY), expected)
    assert again.balance == 1.0
    # The files hold no virtual samples.
    assert len(again.stored_ids_) == len(forest.stored_ids_)
    for model in (forest, again):
        model.partial_fit(*samples([1, 1, 0, 0, 1], seed=3))
    np.testing.assert_array_equal(again.predict_proba(X_QUERY), forest.predict_proba(X_QUERY))


def test_a_file_without_it_answers_as_before(tmp_path: Path) -> None:
    forest = fair(balance=0.0).fit(X, Y)
    forest.save(tmp_path / "plain")
    header, _ = read_model(tmp_path / "plain")
    assert "balance" not in header
    np.testing.assert_array_equal(
        evergrow.load(tmp_path / "plain").predict_proba(X_QUERY), forest.predict_proba(X_QUERY)
    )


@every_kind
@pytest.mark.parametrize("balance", [-0.1, 1.5, "auto", None, float("nan")])
def test_a_wrong_balance_is_named(kind: Any, balance: Any) -> None:
    with pytest.raises(ValueError, match="balance must be a float in"):
        fair(kind, balance=balance).fit(X, Y)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.floats(0, 1))
def test_probabilities_add_up_for_any_sizes(sizes: list[int], balance: float) -> None:
    forest = fair(balance=balance, n_estimators=3).fit(*samples(sizes))
    np.testing.assert_allclose(forest.predict_proba(X_QUERY).sum(axis=1), 1)
