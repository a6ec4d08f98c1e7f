"""Every kind of classifier answers from its ONNX file as it does in the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import RFF, RebalancedRLSClassifier
from evergrow.export import to_onnx
from tests.conftest import FORESTS, Arrays
from tests.export.onnx.runs import assert_answers_are_the_same, run

MODELS: dict[str, Any] = {
    "rls": RLSClassifier(random_state=0),
    "rls, regression": RLSClassifier(scoring="regression", random_state=0),
    "rls, standardized": RLSClassifier(standardize=True, random_state=0),
    "rls, without intercept": RLSClassifier(fit_intercept=False, random_state=0),
    "rls, numbers": RLSClassifier(regularization=2.0, recoding=0.5),
    "rls, paper": RLSClassifier(selection="paper", refit_held_out=False, random_state=0),
    "rls, relu": RLSClassifier(n_random_features=200, random_state=0),
    "rls, rff": RLSClassifier(n_random_features=201, feature_map=RFF(0.001), random_state=0),
    "rls, auto": RLSClassifier(
        n_random_features="auto", max_stored=200, max_gram_memory="1MiB", random_state=0
    ),
    "rls, blocks": RLSClassifier(blocks=(20, 20, 24), random_state=0),
    "rebalanced": RebalancedRLSClassifier(random_state=0),
    "means": NCMClassifier(),
    "lda": NCMClassifier(metric="mahalanobis"),
    "lda, shrunk": NCMClassifier(metric="mahalanobis", shrinkage=0.9),
    "metric": NCMClassifier(metric=NCMMetric(5, random_state=0)),
    "ncm forest": NCMForestClassifier(6, random_state=0),
    "ncm forest, whitened": NCMForestClassifier(6, standardize="whiten", random_state=0),
    "axis forest": AxisForestClassifier(6, random_state=0),
    "linear forest": LinearForestClassifier(6, random_state=0),
    "svm forest": SVMForestClassifier(6, random_state=0),
    "rejecting rls": RejectingClassifier(RLSClassifier(random_state=0), random_state=0),
    "rejecting by cosine": RejectingClassifier(
        NCMForestClassifier(4, random_state=0), measure="cosine"
    ),
    "rejecting by rls": RejectingClassifier(RLSClassifier(random_state=0), measure="estimator"),
    "rejecting by means": RejectingClassifier(NCMClassifier(), measure="estimator"),
    "rejecting by lda": RejectingClassifier(
        NCMClassifier(metric="mahalanobis"), measure="estimator"
    ),
    "rejecting by a metric": RejectingClassifier(
        NCMClassifier(metric=NCMMetric(5, random_state=0)), measure="estimator"
    ),
    "rejecting by votes": RejectingClassifier(
        AxisForestClassifier(4, random_state=0), measure="estimator"
    ),
    "rejecting blocks": RejectingClassifier(RLSClassifier(blocks=(20, 44), random_state=0)),
}


@pytest.fixture(scope="module")
def rows(digits: Arrays) -> Arrays:
    """Features in single precision, those of the test samples with noise that many reject."""
    X, X_test, y, _ = digits
    noise = np.random.default_rng(0).normal(0, 3, X_test.shape)
    noise[::2] = 0
    return X.astype(np.float32), (X_test + noise).astype(np.float32), y


@pytest.mark.parametrize("name", MODELS)
def test_a_file_answers_as_the_model_does(name: str, rows: Arrays) -> None:
    from sklearn.base import clone

    X, X_test, y = rows
    assert_answers_are_the_same(clone(MODELS[name]).fit(X, y), X_test)


@pytest.mark.parametrize("name", ["rls", "means", "ncm forest", "axis forest", "rejecting rls"])
@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_heads_in_fewer_bytes_are_close(name: str, weights: str, rows: Arrays) -> None:
    from sklearn.base import clone

    X, X_test, y = rows
    model = clone(MODELS[name]).fit(X, y)
    found = run(to_onnx(model, weights=weights), features=X_test)  # type: ignore[arg-type]
    np.testing.assert_allclose(found[1], model.predict_proba(X_test), atol=2e-3)


@pytest.mark.parametrize("forest", FORESTS)
def test_a_forest_that_has_grown_and_been_edited_answers_the_same(
    forest: Any, rows: Arrays
) -> None:
    X, X_test, y = rows
    first = y < 7
    model = forest(6, random_state=0).fit(X[first], y[first])
    model.partial_fit(X[~first][:60], y[~first][:60]).forget(classes=[2])
    assert_answers_are_the_same(model, X_test)


def test_small_classes_are_helped_in_the_file_too(rows: Arrays) -> None:
    X, X_test, y = rows
    few = np.concatenate([np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:6]])
    model = NCMForestClassifier(8, random_state=0).fit(X[few], y[few])
    assert model._fitted.ballot("auto", 1).weights is not None
    assert_answers_are_the_same(model, X_test)


def test_older_trees_count_less_in_the_file_too(rows: Arrays) -> None:
    X, X_test, y = rows
    first = y < 5
    model = NCMForestClassifier(8, refresh=0.5, random_state=0).fit(X[first], y[first])
    model.partial_fit(X[~first], y[~first])
    assert model._fitted.history.ages.votes is not None
    assert_answers_are_the_same(model, X_test)


@pytest.mark.parametrize(
    "model",
    [
        RLSClassifier(regularization=1.0, recoding=0.5),
        NCMClassifier(),
        NCMForestClassifier(3, min_samples_leaf=1, random_state=0),
        AxisForestClassifier(3, min_samples_leaf=1, random_state=0),
        LinearForestClassifier(3, min_samples_leaf=1, random_state=0),
        RejectingClassifier(NCMClassifier()),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_few_classes_and_examples_are_enough(model: Any, n_classes: int) -> None:
    from sklearn.base import clone

    X = np.arange(24, dtype=np.float32).reshape(8, 3) ** 1.3
    y = np.arange(8) % n_classes
    assert_answers_are_the_same(clone(model).fit(X, y), X + 0.25)


def test_classes_without_examples_are_never_the_answer() -> None:
    X = np.eye(4, dtype=np.float32)
    for model in (RLSClassifier(regularization=0.5, recoding=0.5), NCMClassifier()):
        model.partial_fit(X, ["a", "b", "c", "c"], classes=["a", "b", "c", "z"])
        assert_answers_are_the_same(model, X)
        assert not run(to_onnx(model), features=X)[1][:, 3].any()


def test_a_model_that_is_not_calibrated_yet_rejects_nothing() -> None:
    X = np.eye(6, dtype=np.float32)
    model = RejectingClassifier(RLSClassifier(regularization=0.5, recoding=0.0))
    model.fit(X, ["a", "a", "b", "b", "c", "c"])
    assert model.level_ == np.inf
    assert_answers_are_the_same(model, [[100, -100, 3, 0, 0, 0], [0] * 6])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_features_of_any_magnitude_keep_their_probabilities(scale: float, offset: float) -> None:
    draw = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = ((draw.normal(size=(90, 5)) + y[:, None] + offset) * scale).astype(np.float32)
    for model in (RLSClassifier(random_state=0), NCMClassifier(metric="mahalanobis")):
        assert_answers_are_the_same(model.fit(X, y), X, tolerance=1e-5)


def test_rows_one_at_a_time_get_the_answers_of_all_at_once(rows: Arrays) -> None:
    X, X_test, y = rows
    content = to_onnx(NCMForestClassifier(6, random_state=0).fit(X, y))
    together = run(content, features=X_test[:5])[1]
    alone = [run(content, features=X_test[k : k + 1])[1][0] for k in range(5)]
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_a_model_of_double_precision_takes_rows_of_single(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    assert X.dtype == np.float64
    for model in (RLSClassifier(random_state=0), AxisForestClassifier(4, random_state=0)):
        assert_answers_are_the_same(model.fit(X, y), X_test)
