"""Weights of samples and classes: what trees count, through updates, files and errors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier

import evergrow
from evergrow import NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators import Storage
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, blobs, leaf_counts, strategy

every_kind = pytest.mark.parametrize("kind", FORESTS)
every_strategy = pytest.mark.parametrize(("kind", "update"), CASES)

X, Y = blobs(120, range(4))
X_MORE, Y_MORE = blobs(40, [2, 3, 4], seed=1)
X_QUERY, _ = blobs(60, range(5), seed=2)


def forest_of(kind: Any = NCMForestClassifier, **options: Any) -> Any:
    return kind(**{"n_estimators": 5, "random_state": 0, **options})


def counts(forest: Any) -> Any:
    """Samples of each class that each tree counts."""
    return np.array([leaf_counts(forest, tree) for tree in range(forest.n_estimators)])


def same_answers(one: Any, other: Any) -> bool:
    return np.array_equal(one.predict_proba(X_QUERY), other.predict_proba(X_QUERY))


@every_kind
def test_only_the_proportions_of_weights_matter(kind: Any) -> None:
    weights = np.random.default_rng(0).exponential(1.0, len(Y))
    one, other = (forest_of(kind).fit(X, Y, sample_weight=weights * unit) for unit in (1.0, 2**-40))
    assert same_answers(one, other)
    assert same_answers(forest_of(kind).fit(X, Y), forest_of(kind).fit(X, Y, np.full(len(Y), 7.0)))


@every_kind
def test_trees_count_samples_by_weight(kind: Any) -> None:
    weights = np.where(Y == 1, 3.0, 1.0)
    forest = forest_of(kind, n_estimators=40).fit(X, Y, sample_weight=weights)
    expected = np.bincount(Y, weights / weights.mean())
    np.testing.assert_allclose(counts(forest).mean(axis=0), expected, rtol=0.05)


@every_kind
def test_samples_of_weight_zero_are_left_out(kind: Any) -> None:
    weights = (Y != 3).astype(float)
    forest = forest_of(kind).fit(X, Y, sample_weight=weights)
    assert forest.classes_.tolist() == [0, 1, 2]
    assert len(forest.sample_ids_) == (Y != 3).sum()
    assert same_answers(forest, forest_of(kind).fit(X[Y != 3], Y[Y != 3]))
    forest.partial_fit(X_MORE, Y_MORE, sample_weight=(Y_MORE == 4).astype(float))
    assert forest.classes_.tolist() == [0, 1, 2, 4]


@every_strategy
def test_updates_count_new_samples_by_weight(kind: Any, update: str) -> None:
    forest = forest_of(kind, update=strategy(update)).fit(X, Y)
    before = counts(forest)
    forest.partial_fit(X_MORE, Y_MORE, sample_weight=np.full(len(Y_MORE), 2.0))
    added = np.bincount(Y_MORE, minlength=5) * 2
    np.testing.assert_array_equal(counts(forest), np.pad(before, ((0, 0), (0, 1))) + added)


def test_later_weights_have_the_unit_of_the_first() -> None:
    forest = forest_of(update=strategy()).fit(X, Y, sample_weight=np.full(len(Y), 10.0))
    heavy = pickle.loads(pickle.dumps(forest))
    before = counts(forest).sum()
    heavy.partial_fit(X_MORE, Y_MORE, sample_weight=np.full(len(Y_MORE), 20.0))
    # Without weights a sample counts as an average one of the first call.
    forest.partial_fit(X_MORE, Y_MORE)
    assert counts(heavy).sum() == before + 2 * len(Y_MORE) * 5
    assert counts(forest).sum() == before + len(Y_MORE) * 5


@every_kind
def test_balanced_classes_have_the_same_total(kind: Any) -> None:
    x, y = X[Y != 0], Y[Y != 0]
    x, y = np.concatenate([X[Y == 0][:3], x]), np.concatenate([[0] * 3, y])
    total = counts(forest_of(kind, class_weight="balanced", n_estimators=40).fit(x, y))
    np.testing.assert_allclose(total.mean(axis=0), np.full(4, len(y) / 4), rtol=0.15)


def test_class_weights_multiply_those_of_samples() -> None:
    options = {"class_weight": {1: 4.0, 99: 9.0}, "n_estimators": 40}
    forest = forest_of(**options).fit(X, Y, sample_weight=np.where(Y == 2, 0.5, 1.0))
    shares = counts(forest).mean(axis=0) / np.bincount(Y)
    np.testing.assert_allclose(shares / shares[0], [1, 4, 0.5, 1], rtol=0.15)


def test_balanced_weights_follow_the_samples_of_updates() -> None:
    forest = forest_of(class_weight="balanced", update=strategy(), n_estimators=40).fit(X, Y)
    x, y = blobs(3, [4, 4, 4], seed=4)
    forest.partial_fit(x, y)
    np.testing.assert_allclose(counts(forest).mean(axis=0)[4], (len(Y) + 3) / 5, rtol=0.1)


@pytest.mark.usefixtures("on_disk")
def test_the_forest_does_not_depend_on_threads_or_memory() -> None:
    weights = np.random.default_rng(1).exponential(1.0, len(Y))
    options = {"class_weight": {2: 3.0}, "max_samples": 0.7, "standardize": "scale"}
    forests = []
    for others in ({"n_jobs": 1}, {"n_jobs": 3}, {"storage": Storage(1)}):
        forest = forest_of(**options, **others).fit(X, Y, sample_weight=weights)
        forest.partial_fit(X_MORE, Y_MORE, sample_weight=np.full(len(Y_MORE), 1.5))
        forests.append(forest)
    assert same_answers(forests[0], forests[1])
    assert same_answers(forests[0], forests[2])


def test_a_first_call_with_few_samples_keeps_their_weights(tmp_path: Path) -> None:
    # Fewer than 50 samples are stored as they came, and the forest is grown again with the next.
    few = slice(0, 20)
    weights = np.where(Y == 1, 5.0, 1.0)
    once = forest_of().partial_fit(X, Y, sample_weight=weights)
    grown = forest_of().partial_fit(X[few], Y[few], sample_weight=weights[few])
    evergrow.save(grown, tmp_path / "few")
    grown = evergrow.load(tmp_path / "few")
    grown.partial_fit(X[20:], Y[20:], sample_weight=weights[20:])
    # Only the units differ.
    shares = [counts(forest).mean(axis=0) / np.bincount(Y) for forest in (once, grown)]
    np.testing.assert_allclose(shares[0] / shares[0][0], shares[1] / shares[1][0], rtol=0.3)


@every_kind
def test_saved_models_keep_weights(kind: Any, tmp_path: Path) -> None:
    weights = np.random.default_rng(2).exponential(1.0, len(Y))
    forest = forest_of(kind, class_weight={np.int64(1): 2, 3: 0.5})
    forest.fit(X, Y, sample_weight=weights)
    evergrow.save(forest, tmp_path / "model")
    loaded = evergrow.load(tmp_path / "model")
    assert loaded.class_weight == {1: 2.0, 3: 0.5}
    for one in (forest, loaded):
        one.partial_fit(X_MORE, Y_MORE, sample_weight=np.linspace(1, 3, len(Y_MORE)))
        one.forget(samples=[0, 5, 9])
        one.compact()
    assert same_answers(forest, loaded)
    stored = loaded._fitted.forest.samples.weights
    np.testing.assert_array_equal(stored, forest._fitted.forest.samples.weights)


def test_a_sample_of_several_copies_is_forgotten_like_one() -> None:
    weights = np.ones(len(Y))
    weights[0] = 20.0
    forest = forest_of(min_samples_leaf=1, update=strategy()).fit(X, Y, sample_weight=weights)
    forest.forget(samples=[0])
    for tree in range(5):
        arrays = forest._fitted.forest.tree_arrays(tree)
        assert 0 not in arrays["rows"]
        assert 0 not in arrays["centroid_source"]
    forest._fitted.forest.check()


def test_boosting_uses_the_weights() -> None:
    boosted = AdaBoostClassifier(forest_of(n_estimators=2), n_estimators=3, random_state=0)
    assert boosted.fit(X, Y).score(X, Y) > 0.95


def test_subcategories_have_weights_too(tmp_path: Path) -> None:
    fine = [[c // 2, int(c) if i % 3 else None] for i, c in enumerate(Y.tolist())]
    forest = SubcategoryForestClassifier(
        10, random_state=0, class_weight={3: 4.0, 0: 2.0}, method="hierarchical"
    )
    forest.fit(X, fine, sample_weight=np.linspace(0, 2, len(Y)))
    assert len(forest.sample_ids_) == len(Y) - 1
    forest.partial_fit(X_MORE, [[c // 2, c] for c in Y_MORE.tolist()], sample_weight=[2.0] * 40)
    evergrow.save(forest, tmp_path / "model")
    assert same_answers(forest, evergrow.load(tmp_path / "model"))
    plain = SubcategoryForestClassifier(10, random_state=0, method="hierarchical")
    assert not same_answers(forest, plain.fit(X, fine))
    rest = forest.forget(coarse=[1])
    assert rest.classes_.tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "sample_weight"),
        (np.full(len(Y), -1.0), "[Nn]egative"),
        (np.full(len(Y), np.nan), "NaN"),
        (np.zeros(len(Y)), "at least one non-zero number"),
        (np.ones((len(Y), 2)), "1D array"),
    ],
)
def test_bad_sample_weights_change_nothing(weights: Any, message: str) -> None:
    forest = forest_of()
    with pytest.raises(ValueError, match=message):
        forest.fit(X, Y, sample_weight=weights)
    assert not hasattr(forest, "classes_")
    forest.fit(X, Y)
    before = forest.predict_proba(X_QUERY)
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)


@pytest.mark.parametrize("n", [20, len(Y)])
@pytest.mark.parametrize("weight", [1.0, 1e60])
def test_an_update_refuses_weights_that_would_fill_the_memory(n: int, weight: float) -> None:
    forest = forest_of().fit(X[:n], Y[:n], sample_weight=np.full(n, 1e-6))
    with pytest.raises(ValueError, match="at most 1000 times"):
        forest.partial_fit(X_MORE, Y_MORE, sample_weight=np.full(len(Y_MORE), weight))
    assert forest.classes_.tolist() == [0, 1, 2, 3]


def test_weights_do_not_multiply_the_rows() -> None:
    # One sample has all the weight, and so has its class.
    weights = np.full(len(Y), 1e-9)
    weights[0] = 1.0
    forest = forest_of(class_weight={int(Y[0]): 1e9}).fit(X, Y, sample_weight=weights)
    assert counts(forest).sum(axis=1).max() <= 2 * len(Y)


def test_a_rare_class_can_join_balanced_ones() -> None:
    x, y = blobs(6000, [0, 1])
    forest = forest_of(class_weight="balanced").fit(x, y).partial_fit(X_MORE[:1], [9])
    # No class weighs more than a thousand times the mean.
    assert counts(forest)[:, 2].max() <= 1000
    assert forest.classes_.tolist() == [0, 1, 9]


def test_balanced_classes_count_the_weights_of_samples() -> None:
    weights = np.where(Y == 1, 4.0, 1.0)
    forest = forest_of(class_weight="balanced", n_estimators=40).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(counts(forest).mean(axis=0), np.full(4, len(Y) / 4), rtol=0.15)


def test_huge_class_weights_are_proportions_too() -> None:
    one, other = (
        forest_of(class_weight={0: 2 * unit, 1: unit, 2: unit, 3: unit}).fit(X, Y)
        for unit in (1.0, 5e307)
    )
    assert same_answers(one, other)


def test_forgetting_does_not_depend_on_class_weights() -> None:
    forest = forest_of(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, Y)
    assert forest.forget(classes=[3]).classes_.tolist() == [0, 1, 2]


def test_class_weights_name_classes_of_the_right_kind() -> None:
    with pytest.raises(ValueError, match="classes are numbers, but class_weight names 'cat'"):
        forest_of(class_weight={"cat": 2.0}).fit(X, Y)
    names = np.array(["a", "b", "c", "d"])[Y]
    with pytest.raises(ValueError, match="classes are strings, but class_weight names 3"):
        forest_of(class_weight={3: 2.0}).fit(X, names)
    assert forest_of(class_weight={"e": 2.0}).fit(X, names).score(X, names) > 0.9


def test_whoever_weighs_classes_has_decided_their_balance() -> None:
    x, y = np.concatenate([X[Y == 0][:3], X[Y != 0]]), np.concatenate([[0] * 3, Y[Y != 0]])
    weighted = forest_of(class_weight="balanced").fit(x, y)
    answers = weighted.predict_proba(X_QUERY)
    np.testing.assert_array_equal(weighted.set_params(balance=0.0).predict_proba(X_QUERY), answers)
    assert not np.array_equal(weighted.set_params(balance=1.0).predict_proba(X_QUERY), answers)


@pytest.mark.parametrize("value", ["even", {0: -1.0}, {0: np.inf}, {0: "heavy"}, [1.0, 2.0], 3])
def test_bad_class_weights_are_named(value: Any) -> None:
    with pytest.raises(ValueError, match="class_weight must be"):
        forest_of(class_weight=value).fit(X, Y)


def test_class_weights_must_leave_some_samples() -> None:
    with pytest.raises(ValueError, match="must not be 0 for all samples"):
        forest_of(class_weight=dict.fromkeys(range(4), 0.0)).fit(X, Y)


def test_a_forest_without_samples_cannot_weigh_classes(tmp_path: Path) -> None:
    forest = forest_of(update=strategy("uls"), class_weight="balanced").fit(X, Y)
    forest.save(tmp_path / "answers", inference_only=True)
    answers = evergrow.load(tmp_path / "answers")
    with pytest.raises(ValueError, match="without class_weight"):
        answers.partial_fit(X_MORE, Y_MORE)
    answers.set_params(class_weight=None)
    answers.partial_fit(X_MORE, Y_MORE, sample_weight=np.full(len(Y_MORE), 2.0))
    assert answers.classes_.tolist() == [0, 1, 2, 3, 4]
