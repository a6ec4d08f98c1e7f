"""New samples and classes: any mix, at any time, from the first call on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from evergrow import AxisForestClassifier, NCMForestClassifier
from tests.budget import budget
from tests.conftest import FORESTS, Arrays
from tests.estimators.forest.blobs import CASES, Array, blobs, leaf_counts, strategy

X_QUERY, Y_QUERY = blobs(60, range(8), seed=77)


def small(kind: Any, **options: Any) -> Any:
    return kind(4, **{"min_samples_leaf": 2, "random_state": 0, **options})


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_new_class_is_predicted_after_one_batch(kind: Any, update: str) -> None:
    forest = small(kind, update=update).partial_fit(*blobs(80, [0, 1, 2]))
    forest.partial_fit(*blobs(200, [3], seed=1))
    assert (forest.predict(blobs(50, [3], seed=2)[0]) == 3).mean() > 0.8


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_class_after_class_is_learnt(kind: Any, update: str, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    forest = kind(10, update=strategy(update), random_state=0)
    for step in ([0, 1, 2], [3], [4, 5], [6], [7, 8], [9]):
        forest.partial_fit(X[np.isin(y, step)], y[np.isin(y, step)])
    whole = clone(forest).fit(X, y).score(X_test, y_test)
    lowest = {"uls": 0.2, "igt": 0.75, "rust": 0.85, "rtst": 0.95}[update]
    assert forest.score(X_test, y_test) > lowest * whole


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("names", [None, np.array([f"class {k:02}" for k in range(64)])])
def test_any_mix_of_known_and_unseen_labels_is_taken(kind: Any, names: Array | None) -> None:
    forest, shown = small(kind), []
    for seed, classes in enumerate([[4, 2], [2, 9, 0], [0], [7, 4, 1, 3]]):
        X, y = blobs(60, classes, seed)
        forest.partial_fit(X, y if names is None else names[y])
        shown += sorted(set(classes) - set(shown))
    expected = shown if names is None else names[shown].tolist()
    assert forest.classes_.tolist() == expected
    X, y = blobs(60, shown, seed=9)
    assert forest.score(X, y if names is None else names[y]) > 0.8


@settings(max_examples=budget(30))
@given(
    st.lists(st.lists(st.integers(-3, 9), min_size=1, max_size=30), min_size=1, max_size=6),
    st.sampled_from(CASES),
)
def test_old_columns_never_move(batches: list[list[int]], case: Any) -> None:
    forest, known = small(case[0], update=case[1]), []
    for seed, labels in enumerate(batches):
        X = np.random.default_rng(seed).normal(size=(len(labels), 2))
        forest.partial_fit(X, labels)
        known += sorted(set(labels) - set(known))
        assert forest.classes_.tolist() == known
        assert forest.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_the_order_of_the_classes_is_sorted_within_a_call_and_appended_across_calls() -> None:
    forest = small(NCMForestClassifier)
    X = np.arange(8.0).reshape(4, 2)
    assert forest.partial_fit(X, ["m", "c", "m", "c"]).classes_.tolist() == ["c", "m"]
    assert forest.partial_fit(X, ["z", "a", "m", "b"]).classes_.tolist() == [*"cmabz"]


@pytest.mark.parametrize("first", [True, False])
def test_listed_classes_get_columns_before_their_samples(first: bool) -> None:
    forest = small(NCMForestClassifier)
    if not first:
        forest.partial_fit(*blobs(80, [0, 1]))
    forest.partial_fit(*blobs(80, [0, 1, 3], seed=1), classes=[1, 5, 2])
    assert forest.classes_.tolist() == [0, 1, 2, 3, 5]
    assert forest.predict_proba(X_QUERY)[:, [2, 4]].max() == 0.0
    forest.partial_fit(*blobs(80, [2, 5], seed=2))
    assert forest.classes_.tolist() == [0, 1, 2, 3, 5]
    assert forest.predict_proba(X_QUERY)[:, [2, 4]].max() > 0.5


@pytest.mark.parametrize("classes", [["a"], [0, "a"], [None], {0, 1}, [[0], [1]]])
def test_listed_classes_of_another_kind_are_refused(classes: Any) -> None:
    for forest in (small(NCMForestClassifier), small(NCMForestClassifier).fit(X_QUERY, Y_QUERY)):
        with pytest.raises(TypeError, match=r"must be (all )?(strings|numbers)"):
            forest.partial_fit(X_QUERY, Y_QUERY, classes=classes)


def test_an_empty_list_of_classes_lists_none() -> None:
    forest = small(NCMForestClassifier).partial_fit(X_QUERY, Y_QUERY.astype(str), classes=[])
    assert len(forest.partial_fit(X_QUERY, Y_QUERY.astype(str), classes=[]).classes_) == 8


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_one_sample_at_a_time_is_enough(kind: Any, update: str) -> None:
    X, y = blobs(150, [0, 1, 2])
    forest = small(kind, update=update)
    for x, label in zip(X, y, strict=True):
        forest.partial_fit(x[None], [label])
    forest._fitted.forest.check()
    assert forest.score(X, y) > 0.9
    assert leaf_counts(forest, 0)[forest.classes_.argsort()].tolist() == np.bincount(y).tolist()


@pytest.mark.parametrize("first", [True, False])
def test_a_batch_of_one_sample_per_class_is_taken_without_a_warning(first: bool) -> None:
    forest = small(NCMForestClassifier)
    if not first:
        forest.partial_fit(*blobs(60, [0, 1]))
    assert forest.partial_fit(*blobs(30, range(30))).classes_.tolist() == list(range(30))


@pytest.mark.parametrize("kind", FORESTS)
def test_one_class_and_one_feature_are_enough(kind: Any) -> None:
    X = np.linspace(0, 1, 60)[:, None]
    forest = small(kind).partial_fit(X, np.zeros(60, dtype=int))
    assert forest.predict_proba(X).tolist() == [[1.0]] * 60
    forest.partial_fit(X + 5, np.ones(60, dtype=int))
    assert forest.predict(X + 5).tolist() == [1] * 60


@pytest.mark.parametrize("kind", FORESTS)
def test_the_first_fifty_samples_in_pieces_make_the_forest_of_one_fit(kind: Any) -> None:
    X, y = blobs(50, [0, 1, 2])
    order = np.argsort(y, kind="stable")
    X, y = X[order] * 1000, y[order]
    forest = small(kind)
    for begin, end in ((0, 1), (1, 12), (12, 13), (13, 49), (49, 50)):
        forest.partial_fit(X[begin:end], y[begin:end])
    whole = small(kind).fit(X, y)
    np.testing.assert_array_equal(
        forest.predict_proba(X_QUERY * 1000), whole.predict_proba(X_QUERY * 1000)
    )


def test_after_fifty_samples_the_scale_of_the_features_is_fixed() -> None:
    X, y = blobs(49, [0, 1])
    forest = small(AxisForestClassifier).fit(X, y)
    forest.partial_fit(X[:1] + 1000, y[:1])
    mean = forest._fitted.standardization.mean
    assert mean.min() > 15
    forest.partial_fit(X + 1000, y)
    assert forest._fitted.standardization.mean is mean


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_an_update_too_small_to_grow_is_counted_in_the_leaves(kind: Any, update: str) -> None:
    forest = small(kind, update=update, min_samples_leaf=50).fit(*blobs(60, [0, 1]))
    forest.partial_fit(*blobs(3, [0, 1, 2], seed=1))
    for tree in range(4):
        assert leaf_counts(forest, tree).sum() == 63
        assert leaf_counts(forest, tree)[2] == 1


def test_numbers_are_refused_where_classes_are_strings() -> None:
    forest = small(NCMForestClassifier).fit(X_QUERY, Y_QUERY.astype(str))
    with pytest.raises(TypeError, match="strings like the known classes, got numbers"):
        forest.partial_fit(X_QUERY, Y_QUERY)


def test_columns_of_other_names_are_refused() -> None:
    frame = pd.DataFrame(X_QUERY, columns=[*"abcdef"])
    forest = small(NCMForestClassifier).partial_fit(frame, Y_QUERY)
    with pytest.raises(ValueError, match="feature names"):
        forest.partial_fit(frame.rename(columns={"a": "x"}), Y_QUERY)
    forest.partial_fit(frame, pd.Series(Y_QUERY + 1))
    assert forest.feature_names_in_.tolist() == [*"abcdef"]


@pytest.mark.parametrize("labels", [Y_QUERY > 3, Y_QUERY.astype(np.uint64), Y_QUERY * 1.0])
def test_numbers_of_any_type_are_one_kind(labels: Array) -> None:
    forest = small(NCMForestClassifier).partial_fit(X_QUERY, labels)
    forest.partial_fit(X_QUERY, Y_QUERY)
    assert sorted(forest.classes_) == list(range(8))


def test_object_arrays_of_strings_go_with_string_arrays() -> None:
    names = np.array([*"abcdefgh"])
    forest = small(NCMForestClassifier).partial_fit(X_QUERY, names[Y_QUERY].astype(object))
    forest.partial_fit(X_QUERY, np.char.add(names, names)[Y_QUERY])
    assert len(forest.classes_) == 16


def test_fit_discards_what_partial_fit_learnt() -> None:
    X, y = blobs(80, [0, 1, 2])
    forest = small(NCMForestClassifier).partial_fit(*blobs(80, [7, 5])).fit(X, y)
    assert forest.classes_.tolist() == [0, 1, 2]
    expected = small(NCMForestClassifier).fit(X, y).predict_proba(X_QUERY)
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), expected)
