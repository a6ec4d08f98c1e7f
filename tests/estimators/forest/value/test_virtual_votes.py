"""Fair votes: small classes are answered, every change counts anew, and nothing if switched off."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evergrow
from evergrow import ModelFileError, NCMForestClassifier
from evergrow.estimators import Bootstrap, Storage
from evergrow.estimators.forest.value import virtual_votes
from evergrow.estimators.forest.value.fitted import Standardization
from evergrow.estimators.forest.value.virtual_votes import balance_weights, draw_below, n_virtual
from evergrow.storage.models.format import write_model
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, leaf_counts
from tests.reference import virtual_votes as twin
from tests.reference.random import Stream

every_kind = pytest.mark.parametrize("kind", FORESTS)
SIZES = [60, 60, 60, 60, 4]
# For the twin: a median of 28.
SMALL = [40, 7, 2, 28, 36]


def samples(sizes: list[int], seed: int = 0) -> tuple[Any, Any]:
    """Overlapping classes of these sizes."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.random.default_rng(3).normal(size=(20, 5))
    return centres[y] + np.random.default_rng(seed).normal(size=(len(y), 5)), y


X, Y = samples(SIZES)
X_QUERY, Y_QUERY = samples([40] * 5, seed=5)


def fair(kind: Any = NCMForestClassifier, **options: Any) -> Any:
    return kind(**{"n_estimators": 5, "balance": 1.0, "random_state": 0, **options})


def ballot(forest: Any) -> Any:
    return forest._fitted.ballot(forest.balance, 1)


def has_help(forest: Any) -> bool:
    """Whether any class is helped."""
    return ballot(forest).trees is not forest._fitted.forest


def counted_again(forest: Any) -> Any:
    """Probabilities with votes that are counted anew from what the forest stores."""
    return dataclasses.replace(forest._fitted).probabilities(X_QUERY, 1, forest.balance)


@every_kind
def test_a_small_class_is_answered_more_often(kind: Any) -> None:
    forest = fair(kind, n_estimators=20).fit(X, Y)
    own = X_QUERY[Y_QUERY == 4]
    right, overall = [], []
    for balance in (0.0, "auto", 1.0):
        forest.set_params(balance=balance)
        right.append((forest.predict(own) == 4).mean())
        overall.append(forest.score(X_QUERY, Y_QUERY))
    assert right[0] + 0.05 < right[1] < right[2] - 0.05
    assert overall[1] > overall[0]


def test_the_default_is_half_way() -> None:
    forest = NCMForestClassifier(5, random_state=0).fit(X, Y)
    assert forest.balance == "auto"
    default = forest.predict_proba(X_QUERY)
    half = forest.set_params(balance=0.5).predict_proba(X_QUERY)
    np.testing.assert_array_equal(default, half)
    assert (default != forest.set_params(balance=0.0).predict_proba(X_QUERY)).any()


def test_more_balance_is_more_votes() -> None:
    votes = [
        fair(balance=b).fit(X, Y).predict_proba(X_QUERY)[:, 4].mean() for b in (0.0, 0.3, 0.6, 1.0)
    ]
    assert votes == sorted(votes)


@every_kind
def test_without_it_leaves_alone_vote(kind: Any) -> None:
    never = kind(5, random_state=0, balance=0).fit(X, Y)
    switched_off = fair(kind).fit(X, Y)
    switched_off.predict(X_QUERY)
    switched_off.set_params(balance=0.0)
    fitted = never._fitted
    scale = fitted.standardization.core
    expected = fitted.forest.predict_proba(X_QUERY, scale, 1, None, fitted.history.ages.votes)
    for forest in (never, switched_off):
        np.testing.assert_array_equal(forest.predict_proba(X_QUERY), expected)
        assert not has_help(forest)


def test_classes_of_one_size_get_none() -> None:
    even = samples([30] * 5)
    assert not has_help(fair().fit(*even))


def test_a_class_of_half_the_median_is_not_small() -> None:
    assert not has_help(fair().fit(*samples([60, 60, 60, 60, 30])))
    assert has_help(fair().fit(*samples([60, 60, 60, 60, 29])))


def test_the_trees_that_grow_do_not_count_them() -> None:
    forest = fair().fit(X, Y)
    assert has_help(forest)
    assert [leaf_counts(forest, tree).tolist() for tree in range(5)] == [SIZES] * 5
    assert len(forest.stored_ids_) == len(Y)
    forest._fitted.forest.check()


@pytest.mark.parametrize("seed", range(5))
def test_votes_are_those_of_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), SMALL)
    # Centre 0 and scale 1 / 4, so that rows and sums are exact.
    integers = rng.integers(-3, 4, size=(len(y), 3)).astype(float)
    integers[rng.permutation(len(y))[:3]] = 4.0
    forest = fair(standardize=False, min_samples_leaf=2).fit(integers, y)
    fitted = forest._fitted
    core = fitted.forest
    rows = core.samples.take(np.arange(len(y), dtype=np.int32)).astype(np.float64)
    virtual, classes = twin.virtual_samples(rows, y, fitted.history.seed)
    assert np.bincount(classes).tolist() == [0, 4, 14]
    weights = [twin.weight(28 / n, 1.0) for n in SMALL]
    identity = Standardization.identity(3).core
    counts = []
    for tree in range(len(core)):
        arrays = core.tree_arrays(tree)
        table = np.zeros((len(arrays["left"]), 5))
        for leaf in np.flatnonzero(arrays["left"] == -1):
            begin = arrays["count_begin"][leaf]
            own = slice(begin, begin + arrays["count_size"][leaf])
            table[leaf, arrays["count_class"][own]] = arrays["count"][own]
        counts.append(table)
    leaves, virtual_leaves = core.apply(rows, identity, 1), core.apply(virtual, identity, 1)
    expected = twin.probabilities(counts, leaves, virtual_leaves, classes, weights)
    np.testing.assert_allclose(forest.predict_proba(integers), expected, rtol=1e-12, atol=0)


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**31 - 1))
def test_draws_are_those_of_the_core(key: int, bound: int) -> None:
    stream = Stream(key)
    keys, counters = np.full(5, key, dtype=np.uint64), np.arange(1, 6, dtype=np.uint64)
    found = draw_below(keys, counters, bound).tolist()
    assert found == [stream.below(bound) for _ in range(5)]


@given(st.lists(st.integers(0, 1000), min_size=1).filter(any), st.floats(0, 1))
def test_only_small_classes_are_helped(sizes: list[int], balance: float) -> None:
    numbers, weights = n_virtual(np.array(sizes)), balance_weights(np.array(sizes), balance)
    median = np.median([n for n in sizes if n])
    for size, number, weight in zip(sizes, numbers, weights, strict=True):
        is_small = 0 < 2 * size < median
        assert 0 <= number <= 20
        assert (number > 0) == is_small
        assert weight >= 1.0
        assert is_small or weight == 1.0
        assert weight == pytest.approx(twin.weight(median / size, balance) if size else 1.0)
    assert numbers.sum() <= sum(sizes)


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_the_fewer_samples_the_more_weight(size: int, balance: float) -> None:
    fewer, more = balance_weights(np.array([10**6, 10**6, 10**6, size, size + 1]), balance)[3:]
    assert fewer >= more


@pytest.mark.parametrize(
    "options", [{"max_samples": 0.5}, {"max_samples": Bootstrap()}, {}], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_threads_do_not_matter(dtype: Any, options: dict[str, Any]) -> None:
    one, two = (
        fair(n_jobs=n, storage=Storage(dtype=dtype), **options).fit(X, Y).predict_proba(X_QUERY)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.usefixtures("on_disk")
def test_samples_in_files_get_the_same_votes() -> None:
    here, there = (fair(storage=storage).fit(X, Y) for storage in (None, Storage(1)))
    for gone in ([0], [1, 2]):
        np.testing.assert_array_equal(there.predict_proba(X_QUERY), here.predict_proba(X_QUERY))
        for forest in (here, there):
            forest.partial_fit(*samples([1, 1, 1, 1, 1], seed=8)).forget(samples=gone)


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
    assert has_help(forest)
    forest.forget(samples=[0, 1, 2])
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))
    forest.rename_classes({4: 9})
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), counted_again(forest))


def test_a_forgotten_class_takes_its_virtual_votes_along() -> None:
    forest = fair().fit(X, Y).forget(classes=[4])
    assert not has_help(forest)
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


def test_a_class_that_has_grown_needs_no_help() -> None:
    forest = fair(update="uls").fit(X, Y)
    more = samples([0, 0, 0, 0, 26], seed=2)
    assert not has_help(forest.partial_fit(*more))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The balance of each ballot that was found, in turn."""
    found: list[float] = []
    search = virtual_votes.fair_ballot

    def noted(fitted: Any, balance: float, n_threads: int) -> Any:
        found.append(balance)
        return search(fitted, balance, n_threads)

    monkeypatch.setattr(virtual_votes, "fair_ballot", noted)
    return found


def test_changes_count_nothing_and_predictions_once(counted: list[float]) -> None:
    forest = fair().fit(X, Y)
    forest.partial_fit(*samples([1, 1, 1, 1, 1], seed=8)).forget(samples=[0])
    forest.rename_classes({4: 7}).compact()
    forest.apply(X_QUERY)
    forest.explain(X_QUERY[0])
    assert counted == []
    for _ in range(3):
        forest.predict(X_QUERY)
        forest.predict_proba(X_QUERY)
        copy.deepcopy(forest).predict_top_k(X_QUERY, k=2)
    assert counted == [1.0]
    forest.set_params(balance="auto").predict(X_QUERY)
    assert counted == [1.0, 0.5]
    forest.partial_fit(*samples([1], seed=9)).predict(X_QUERY)
    assert counted == [1.0, 0.5, 0.5]


def test_threads_that_ask_at_once_count_once(counted: list[float]) -> None:
    forest = fair().fit(X, Y)
    expected = counted_again(forest)
    counted.clear()
    start = threading.Barrier(8)
    answers: list[Any] = []

    def ask() -> None:
        start.wait()
        answers.append(forest.predict_proba(X_QUERY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [1.0]
    assert len(answers) == 8
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


def test_a_forest_answers_after_counting_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = fair().fit(X, Y)
    expected = counted_again(forest)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(virtual_votes, "_count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            forest.predict(X_QUERY)
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), expected)


@pytest.mark.parametrize("balance", [0.0, "auto", 1.0])
def test_compact_keeps_predictions(balance: Any) -> None:
    forest = fair(update="igt").fit(X, Y).partial_fit(*samples([2, 0, 0, 0, 2], seed=1))
    forest.forget(samples=[1, 5, 70]).set_params(balance=balance)
    before = forest.predict_proba(X_QUERY)
    np.testing.assert_array_equal(forest.compact().predict_proba(X_QUERY), before)


def test_many_small_classes_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [9] * 1001 + [1] * 999
    y = np.repeat(np.arange(2000), sizes)
    rows = np.random.default_rng(0).normal(size=(len(y), 2))
    forest = fair(n_estimators=2, balance=1.0, standardize="none").fit(rows, y)
    calls: list[int] = []
    count = virtual_votes._count

    def noted(fitted: Any, trees: Any, X: Any, *rest: Any) -> Any:
        calls.append(len(X))
        return count(fitted, trees, X, *rest)

    monkeypatch.setattr(virtual_votes, "_count", noted)
    forest.predict(rows[:5])
    assert calls == [999 * 9]


def test_a_failed_update_changes_nothing() -> None:
    forest = fair().fit(X, Y)
    before = forest.predict_proba(X_QUERY)
    with pytest.raises(ValueError, match="NaN"):
        forest.partial_fit([[np.nan] * 5], [0])
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)


@pytest.mark.parametrize("options", [{}, {"balance": "auto"}, {"max_samples": 0.5}], ids=str)
def test_files_copies_and_pickles_vote_alike(tmp_path: Path, options: dict[str, Any]) -> None:
    forest = fair(update="igt", **options)
    forest.fit(X, Y).partial_fit(*samples([0, 0, 0, 2, 2], seed=1)).forget(samples=[3, 4])
    expected = forest.predict_proba(X_QUERY)
    forest.save(tmp_path / "whole")
    forest.save(tmp_path / "small", inference_only=True)
    again = evergrow.load(tmp_path / "whole")
    small = evergrow.load(tmp_path / "small")
    for other in (again, small, copy.deepcopy(forest), pickle.loads(pickle.dumps(forest))):
        np.testing.assert_array_equal(other.predict_proba(X_QUERY), expected)
    assert again.balance == small.balance == forest.balance
    # The files hold no virtual samples.
    assert len(again.stored_ids_) == len(forest.stored_ids_)
    for model in (forest, again):
        model.partial_fit(*samples([1, 1, 0, 0, 1], seed=3))
    np.testing.assert_array_equal(again.predict_proba(X_QUERY), forest.predict_proba(X_QUERY))


def without_samples(path: Path, **options: Any) -> Any:
    fair(update="uls", **options).fit(X, Y).save(path / "small", inference_only=True)
    return evergrow.load(path / "small")


def test_a_forest_without_samples_keeps_its_weights(tmp_path: Path) -> None:
    small = without_samples(tmp_path)
    before = small.predict_proba(X_QUERY)
    small.rename_classes({4: 0, 0: 4})
    swapped = small.predict_proba(X_QUERY)[:, [small.classes_.tolist().index(c) for c in range(5)]]
    np.testing.assert_allclose(swapped[:, [4, 1, 2, 3, 0]], before, rtol=1e-12)
    small.partial_fit([[50.0] * 5] * 3, [9, 9, 9])
    assert small.predict_proba(X_QUERY).shape == (200, 6)
    small.save(tmp_path / "again")
    again = evergrow.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict_proba(X_QUERY), small.predict_proba(X_QUERY))
    merged = small.rename_classes({0: 1, 9: 1})
    assert merged._fitted.balance_weights is not None
    np.testing.assert_array_equal(merged._fitted.balance_weights == 1, True)
    assert merged.predict_proba(X_QUERY).shape == (200, 4)


@pytest.mark.parametrize(
    "weights", [np.ones(6), np.ones((5, 1)), np.full(5, np.nan), np.zeros(5), np.ones(5, np.int32)]
)
def test_damaged_weights_are_named(tmp_path: Path, weights: Any) -> None:
    header, tensors = fair().fit(X, Y)._to_file(inference_only=True)
    assert tensors["balance_weights"].shape == (5,)
    write_model(tmp_path / "damaged", header, {**tensors, "balance_weights": weights})
    with pytest.raises(ModelFileError, match="balance_weights"):
        evergrow.load(tmp_path / "damaged")


@every_kind
@pytest.mark.parametrize("balance", [-0.1, 1.5, "all", None, float("nan")])
def test_a_wrong_balance_is_named(kind: Any, balance: Any) -> None:
    with pytest.raises(ValueError, match="balance must be 'auto' or a float in"):
        fair(kind, balance=balance).fit(X, Y)
    forest = fair(kind).fit(X, Y).set_params(balance=balance)
    for method in (forest.predict, forest.predict_proba):
        with pytest.raises(ValueError, match="balance must be 'auto' or a float in"):
            method(X_QUERY)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.floats(0, 1))
def test_probabilities_add_up_for_any_sizes(sizes: list[int], balance: float) -> None:
    forest = fair(balance=balance, n_estimators=3).fit(*samples(sizes))
    np.testing.assert_allclose(forest.predict_proba(X_QUERY).sum(axis=1), 1)


def test_predicting_and_saving_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    done = []
    for turn in range(5):
        forest = fair().fit(X, Y)
        work = [
            threading.Thread(target=lambda f=forest: done.append(f.predict(X_QUERY)), daemon=True),
            threading.Thread(
                target=lambda f=forest, t=turn: done.append(
                    f.save(tmp_path / f"model{t}", inference_only=True)
                ),
                daemon=True,
            ),
        ]
        for each in work:
            each.start()
        for each in work:
            each.join(timeout=30)
    assert len(done) == 10
