"""Evergrow's classifiers in river, and river's in scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import ImageClassifier, NCMClassifier, NCMForestClassifier, RLSClassifier

river = pytest.importorskip("river")
from river import checks, forest, linear_model, naive_bayes, preprocessing  # noqa: E402

from evergrow.integrations.river import BatchClassifier, OnlineClassifier  # noqa: E402

ONLINE = {
    "means": OnlineClassifier(NCMClassifier(), 40),
    "means, features of the first example": OnlineClassifier(NCMClassifier()),
    "least squares": OnlineClassifier(RLSClassifier(regularization=1.0, recoding=0.5), 40),
    "forest": OnlineClassifier(NCMForestClassifier(3, random_state=0), 40),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["means", *(pytest.param(one, marks=pytest.mark.nightly) for one in ONLINE if one != "means")],
)
def test_river_accepts_it(name: str) -> None:
    checks.check_estimator(ONLINE[name])


def test_river_skips_no_check_of_class_means_with_room_for_features() -> None:
    assert ONLINE["means"]._unit_test_skips() == set()


@parametrize_with_checks(
    [
        BatchClassifier(naive_bayes.GaussianNB()),
        BatchClassifier(preprocessing.StandardScaler() | linear_model.SoftmaxRegression()),
        BatchClassifier(forest.AMFClassifier(3, seed=0)),
    ]
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def example(*values: float) -> dict[str, float]:
    return dict(zip("abc", values, strict=False))


def test_one_example_at_a_time_is_the_same_as_a_matrix() -> None:
    X, y = load_digits(return_X_y=True)
    model = OnlineClassifier(NCMClassifier())
    for row, label in zip(X[:200], y[:200], strict=True):
        model.learn_one(dict(enumerate(row)), label)
    whole = NCMClassifier().partial_fit(X[:200], y[:200])
    rows = [dict(enumerate(row)) for row in X[200:220]]
    assert [model.predict_one(row) for row in rows] == whole.predict(X[200:220]).tolist()
    found = [list(model.predict_proba_one(row).values()) for row in rows]
    columns = np.argsort(model._learner.classes_)
    np.testing.assert_allclose(np.array(found)[:, columns], whole.predict_proba(X[200:220]))


def test_nothing_is_predicted_before_the_first_example() -> None:
    model = OnlineClassifier(NCMClassifier())
    table = pd.DataFrame([example(1, 2)], index=["row"])
    assert model.predict_one(example(1)) is None
    assert model.predict_proba_one(example(1)) == {}
    assert model.predict_many(table).tolist() == [None]
    assert model.predict_proba_many(table).shape == (1, 0)


def test_a_table_keeps_its_index_and_names_the_classes() -> None:
    table = pd.DataFrame({"a": [0.0, 1.0, 8.0], "b": [0.0, 1.0, 9.0]}, index=[5, 7, 9])
    model = OnlineClassifier(NCMClassifier())
    model.learn_many(table, pd.Series(["x", "x", "y"], index=table.index))
    assert model.predict_many(table).to_dict() == {5: "x", 7: "x", 9: "y"}
    found = model.predict_proba_many(table)
    assert (found.index.tolist(), found.columns.tolist()) == ([5, 7, 9], ["x", "y"])


def test_missing_features_are_zero_and_unknown_ones_have_no_effect() -> None:
    model = OnlineClassifier(NCMClassifier())
    model.learn_one(example(0, 0), 0)
    model.learn_one(example(0, 5), 1)
    assert model.predict_one({"b": 5.0, "never learnt": 1e9}) == 1
    assert model.predict_one({"a": 0.0}) == 0


def test_a_later_feature_gets_a_column_if_there_is_room() -> None:
    model = OnlineClassifier(NCMClassifier(), n_features=2)
    model.learn_one({"b": 1.0}, 0)
    model.learn_one({"a": 9.0, "b": 1.0}, 1)
    assert model.predict_one({"a": 8.0, "b": 1.0}) == 1
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="there are 3 features, but the model has room for 2"):
        model.learn_one({"c": 1.0}, 1)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ({"c": 1.0}, ValueError, "the feature 'c' is new, .* set n_features"),
        ({"a": "red"}, TypeError, "the feature 'a' must be a number, got 'red'"),
        ({"a": float("nan")}, ValueError, "NaN"),
    ],
)
def test_an_example_that_cannot_be_learnt_changes_nothing(
    x: Any, error: type[Exception], message: str
) -> None:
    model = OnlineClassifier(NCMClassifier())
    model.learn_one(example(0, 0), 0)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, 1)
    assert pickle.dumps(model) == before


def test_an_example_needs_a_feature() -> None:
    with pytest.raises(ValueError, match="at least one feature"):
        OnlineClassifier(NCMClassifier()).learn_one({}, 0)


@pytest.mark.parametrize(
    ("estimator", "n_features", "error", "message"),
    [
        (SGDClassifier(), None, TypeError, "must be a classifier of Evergrow.*river.compat"),
        (ImageClassifier(), None, TypeError, "which a ImageClassifier does not"),
        (NCMClassifier(), 0, ValueError, "n_features must be a positive integer or None, got 0"),
        (NCMClassifier(), True, ValueError, "n_features must be a positive integer"),
    ],
)
def test_what_cannot_be_online_is_refused(
    estimator: Any, n_features: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        OnlineClassifier(estimator, n_features)


@pytest.mark.parametrize("model", [preprocessing.StandardScaler(), NCMClassifier(), None])
def test_only_classifiers_of_river_are_wrapped(model: Any) -> None:
    with pytest.raises(TypeError, match="model must be a classifier of river"):
        BatchClassifier(model).fit([[0.0], [1.0]], [0, 1])


class _Silent:
    def learn_one(self, example: Any, label: Any) -> None:
        pass

    def predict_one(self, example: Any) -> str | None:
        return "None" if example[0] else None

    def predict_proba_one(self, example: Any) -> dict[Any, float]:
        return {}


@pytest.mark.parametrize(("label", "right"), [("None", [False, True]), (0, [False, False])])
def test_a_missing_prediction_is_not_a_class(label: Any, right: list[bool]) -> None:
    model = BatchClassifier(_Silent()).partial_fit([[0.0]], np.array([label]), classes=[label])
    assert (model.predict([[0.0], [1.0]]) == np.array([label, label])).tolist() == right
    assert model.predict_proba([[0.0]]).tolist() == [[1.0]]
