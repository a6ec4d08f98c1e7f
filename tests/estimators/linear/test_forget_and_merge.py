"""Least squares forgets and merges, and refuses what would not fit its sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evergrow import RLSClassifier
from evergrow.estimators import RFF, ReLU
from tests.conftest import Arrays


def fixed(**options: Any) -> RLSClassifier:
    return RLSClassifier(**{"regularization": 1.0, "recoding": 0.5, **options})


def same(first: RLSClassifier, second: RLSClassifier, X: Any) -> bool:
    scores = [pd.DataFrame(m.decision_function(X), columns=m.classes_) for m in (first, second)]
    return np.allclose(scores[0][second.classes_], scores[1], rtol=1e-8, atol=1e-8)


def test_forgotten_examples_are_forgotten_by_the_held_out_ones_too(digits: Arrays) -> None:
    X, _, y, _ = digits
    model = RLSClassifier(random_state=0).fit(X, y)
    held = model._fitted.holdout.batch
    rows, codes = held.rows, held.codes
    model.forget(rows[:7], model.classes_[codes[:7]])
    left = model._fitted.holdout.batch.rows
    assert model.n_stored_.sum() == len(rows) - 7
    assert not any((row == gone).all() for row in left for gone in rows[:7])


def test_examples_then_the_class_need_no_class_statistics(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X, y)
    with pytest.raises(ValueError, match="keep_class_statistics=True"):
        model.forget(classes=[3])
    model.forget(X[y == 3], y[y == 3], classes=[3])
    assert same(model, fixed().fit(X[y != 3], y[y != 3]), X_test)


GOOD_X = np.random.default_rng(0).normal(size=(20, 3))
GOOD_Y = np.array(["a", "b"] * 10)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.zeros((4, 2)), r"the number of features \(3 and 2\)"),
        ({"fit_intercept": False}, None, r"fit_intercept \(True and False\)"),
        ({"features": ReLU(5)}, None, r"the number of random features \(0 and 5\), the kind"),
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
        ({"features": RFF(5, gamma=2.0)}, "gamma of the random features"),
        ({"features": ReLU(5)}, "the kind of random features"),
        ({"features": RFF(6, gamma=1.0)}, "the number of random features"),
    ],
)
def test_models_of_other_random_features_are_not_merged(
    other: dict[str, Any], message: str
) -> None:
    options = {"features": RFF(5, gamma=1.0), "random_state": 0}
    model = fixed(**options).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=message):
        model.merge(fixed(**{**options, **other}).fit(GOOD_X, GOOD_Y))


def test_only_models_of_the_same_kind_are_merged() -> None:
    with pytest.raises(TypeError, match="RLSClassifier"):
        fixed().fit(GOOD_X, GOOD_Y).merge("a model")
    with pytest.raises(TypeError, match="strings like the known"):
        fixed().fit(GOOD_X, GOOD_Y).merge(fixed().fit(GOOD_X, [1, 2] * 10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fit_intercept": False}, "fit_intercept is False but the model was trained with True"),
        ({"features__n": 9}, r"features is RFF\(n=9, .* with RFF\(n=8, gamma=2.0\): fit again"),
        ({"features": ReLU(8)}, r"features is ReLU\(n=8\)"),
        ({"features": "auto"}, r"features is Auto\(\)"),
        ({"features__gamma": 3.0}, "gamma=3.0"),
        ({"keep_class_statistics": True}, "keep_class_statistics is True"),
    ],
)
def test_parameters_that_determine_the_sums_cannot_change_later(
    change: dict[str, Any], message: str
) -> None:
    model = RLSClassifier(features=RFF(8, gamma=2.0)).fit(GOOD_X, GOOD_Y)
    model.set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize(
    ("X", "hint"),
    [
        (["b"], r": did you mean classes=\['b'\]\?$"),
        ("a", r": did you mean classes=\['a'\]\?$"),
        (np.array(["a", "z"]), "$"),
        (["z"], "$"),
        (GOOD_X, "$"),
        ([[1, 2, 3]], "$"),
    ],
)
def test_classes_in_place_of_examples_are_recognised(X: Any, hint: str) -> None:
    model = RLSClassifier().fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=f"forget needs both X and y, or neither{hint}"):
        model.forget(X)


def test_a_warning_after_forgetting_names_examples_never_learnt() -> None:
    X = np.outer(np.arange(1.0, 21.0), [1e8, 1e8, 1e8])
    y = np.arange(20) // 10
    model = RLSClassifier(regularization=1e-300, recoding=0.0).fit(X, y)
    with pytest.warns(RuntimeWarning, match="regularization=1e-300; solved"):
        model.predict(X)
    model.forget(X[:1] * [1.0, 0.9, 1.1], y[:1])
    with pytest.warns(RuntimeWarning, match="forget was given examples that were never learnt;"):
        model.predict(X)
