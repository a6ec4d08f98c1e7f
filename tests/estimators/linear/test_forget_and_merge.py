"""Forgotten examples leave no trace; a merged model is one trained on all examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evergrow import RLSClassifier
from evergrow.estimators import RFF
from tests.conftest import Arrays


def fixed(**options: Any) -> RLSClassifier:
    return RLSClassifier(**{"regularization": 1.0, "recoding": 0.5, **options})


def same(first: RLSClassifier, second: RLSClassifier, X: Any) -> bool:
    scores = [pd.DataFrame(m.decision_function(X), columns=m.classes_) for m in (first, second)]
    return np.allclose(scores[0][second.classes_], scores[1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_gone", [1, 5, 700])
def test_forgotten_examples_leave_no_trace(digits: Arrays, n_gone: int) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X, y).forget(X[:n_gone], y[:n_gone])
    assert same(model, fixed().fit(X[n_gone:], y[n_gone:]), X_test)


def test_forgotten_examples_are_forgotten_by_the_held_out_ones_too(digits: Arrays) -> None:
    X, _, y, _ = digits
    model = RLSClassifier(random_state=0).fit(X, y)
    held = model._fitted.holdout.batch
    rows, codes = held.rows, held.codes
    model.forget(rows[:7], model.classes_[codes[:7]])
    left = model._fitted.holdout.batch.rows
    assert model.n_held_out_.sum() == len(rows) - 7
    assert not any((row == gone).all() for row in left for gone in rows[:7])


def test_a_class_is_forgotten_by_its_name(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    model = fixed(keep_class_statistics=True).fit(X, y)
    model.forget(classes=[3, 7])
    kept = ~np.isin(y, [3, 7])
    assert model.classes_.tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert same(model, fixed().fit(X[kept], y[kept]), X_test)
    model.partial_fit(X[y == 3], y[y == 3])
    assert model.classes_.tolist()[-1] == 3


def test_examples_then_the_class_need_no_class_statistics(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X, y)
    with pytest.raises(ValueError, match="keep_class_statistics=True"):
        model.forget(classes=[3])
    model.forget(X[y == 3], y[y == 3], classes=[3])
    assert same(model, fixed().fit(X[y != 3], y[y != 3]), X_test)


def test_weights_are_forgotten_as_they_were_learnt(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    weights = np.random.default_rng(0).random(len(y)) + 0.1
    model = fixed().fit(X, y, sample_weight=weights)
    model.forget(X[:20], y[:20], sample_weight=weights[:20])
    assert same(model, fixed().fit(X[20:], y[20:], sample_weight=weights[20:]), X_test)


GOOD_X = np.random.default_rng(0).normal(size=(20, 3))
GOOD_Y = np.array(["a", "b"] * 10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "examples .X and y., classes, or both"),
        ({"X": GOOD_X}, ValueError, "both X and y"),
        ({"y": GOOD_Y}, ValueError, "both X and y"),
        ({"X": GOOD_X[:1], "y": ["c"]}, ValueError, r"unknown classes \['c'\]"),
        ({"classes": ["z"]}, ValueError, r"unknown classes \['z'\]; the model knows \['a', 'b'\]"),
        ({"X": np.tile(GOOD_X, (2, 1)), "y": np.tile(GOOD_Y, 2)}, ValueError, "10 examples were"),
        (
            {"X": GOOD_X[:1], "y": ["a"], "sample_weight": [99]},
            ValueError,
            "a weight of 99",
        ),
        ({"X": GOOD_X[::2] + 1, "y": GOOD_Y[::2]}, ValueError, "class 'a': these are not the"),
        ({"X": GOOD_X[:1] * 50, "y": GOOD_Y[:1]}, ValueError, "class 'a': these are not the"),
        ({"X": GOOD_X, "y": GOOD_Y}, ValueError, "no examples: train a new model"),
        ({"X": GOOD_X[:, :2], "y": GOOD_Y}, ValueError, "2 features"),
        ({"X": [[np.nan] * 3], "y": ["a"]}, ValueError, "NaN"),
        ({"X": GOOD_X[:1], "y": [1]}, ValueError, "unknown classes"),
    ],
)
def test_what_cannot_be_forgotten_is_refused_and_nothing_changes(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = fixed().fit(GOOD_X, GOOD_Y)
    state = dict(vars(model))
    with pytest.raises(error, match=message):
        model.forget(**arguments)
    assert vars(model) == state


@pytest.mark.parametrize(
    "options",
    [{}, {"n_random_features": 40, "random_state": 0}, {"keep_class_statistics": True}],
    ids=["plain", "random features", "statistics"],
)
def test_two_machines_with_different_classes_make_one_model(
    digits: Arrays, options: dict[str, Any]
) -> None:
    X, X_test, y, _ = digits
    here, there = y < 6, y >= 4
    first, second = fixed(**options).fit(X[here], y[here]), fixed(**options).fit(X[there], y[there])
    first.merge(second)
    both = fixed(**options).fit(np.concatenate([X[here], X[there]]), [*y[here], *y[there]])
    assert first.classes_.tolist() == list(range(10))
    assert same(first, both, X_test)
    # The other is as it was, and both go on.
    assert second.classes_.tolist() == [4, 5, 6, 7, 8, 9]
    first.partial_fit(X[:3], y[:3])


def test_columns_stay_and_the_others_new_classes_follow_sorted() -> None:
    first = fixed().partial_fit([[0.0]], ["m"]).partial_fit([[1.0]], ["b"])
    second = fixed().partial_fit([[2.0]], ["z"]).partial_fit([[3.0], [1.0]], ["a", "b"])
    assert first.merge(second).classes_.tolist() == ["m", "b", "a", "z"]
    assert first.class_counts_.tolist() == [1, 2, 1, 1]


def test_merged_models_share_their_held_out_examples(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    first = RLSClassifier(max_held_out=100, random_state=0).fit(X[::2], y[::2])
    second = RLSClassifier(max_held_out=100, random_state=1).fit(X[1::2], y[1::2])
    first.merge(second)
    assert first.n_held_out_.tolist() == [10] * 10
    assert first.score(X_test, y_test) > 0.9


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.zeros((4, 2)), r"the number of features \(3 and 2\)"),
        ({"fit_intercept": False}, None, r"fit_intercept \(True and False\)"),
        ({"n_random_features": 5}, None, r"n_random_features \(0 and 5\), feature_map"),
        ({"keep_class_statistics": True}, None, "keep_class_statistics"),
    ],
)
def test_models_that_differ_are_not_merged(options: dict[str, Any], X: Any, message: str) -> None:
    model = fixed().fit(GOOD_X, GOOD_Y)
    other = fixed(**options).fit(GOOD_X[:4] if X is None else X, GOOD_Y[:4])
    state = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.merge(other)
    assert vars(model) == state


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"random_state": 1}, "the seed of the random features"),
        ({"feature_map": RFF(gamma=2.0)}, "gamma of the random features"),
        ({"feature_map": "relu"}, "feature_map"),
        ({"n_random_features": 6}, "n_random_features"),
    ],
)
def test_models_of_other_random_features_are_not_merged(
    other: dict[str, Any], message: str
) -> None:
    options = {"n_random_features": 5, "feature_map": RFF(gamma=1.0), "random_state": 0}
    model = fixed(**options).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=message):
        model.merge(fixed(**{**options, **other}).fit(GOOD_X, GOOD_Y))


def test_features_of_other_names_are_not_merged() -> None:
    first = fixed().fit(pd.DataFrame(GOOD_X, columns=list("abc")), GOOD_Y)
    second = fixed().fit(pd.DataFrame(GOOD_X, columns=list("abd")), GOOD_Y)
    with pytest.raises(ValueError, match="the names of the features"):
        first.merge(second)


def test_only_models_of_the_same_kind_are_merged() -> None:
    with pytest.raises(TypeError, match="RLSClassifier"):
        fixed().fit(GOOD_X, GOOD_Y).merge("a model")
    with pytest.raises(TypeError, match="strings like the known"):
        fixed().fit(GOOD_X, GOOD_Y).merge(fixed().fit(GOOD_X, [1, 2] * 10))


def test_classes_are_renamed_and_joined(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X, y).rename_classes({3: 30, 8: 0})
    assert model.classes_.tolist() == [0, 1, 2, 30, 4, 5, 6, 7, 9]
    renamed = np.where(y == 3, 30, np.where(y == 8, 0, y))
    assert same(model, fixed().fit(X, renamed), X_test)


def test_an_unknown_class_cannot_be_renamed() -> None:
    model = fixed().fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="unknown classes"):
        model.rename_classes({"z": "y"})
    with pytest.raises(TypeError, match="must map"):
        model.rename_classes(["a"])
    with pytest.raises(TypeError, match="strings like the known"):
        model.rename_classes({"a": 1, "b": 2})
