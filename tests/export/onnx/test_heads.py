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
from evergrow.estimators import RFF, Auto, HoldOut, LeaveOneOut, ReLU
from tests.conftest import FORESTS, Arrays
from tests.export.onnx.runs import assert_answers_are_the_same

MODELS: dict[str, Any] = {
    "rls": RLSClassifier(random_state=0),
    "rls, regression": RLSClassifier(scoring="regression", random_state=0),
    "rls, standardized": RLSClassifier(standardize=True, random_state=0),
    "rls, without intercept": RLSClassifier(fit_intercept=False, random_state=0),
    "rls, numbers": RLSClassifier(regularization=2.0, recoding=0.5),
    "rls, paper": RLSClassifier(selection=HoldOut(refit=False), random_state=0),
    "rls, relu": RLSClassifier(features=ReLU(200), random_state=0),
    "rls, rff": RLSClassifier(features=RFF(201, 0.001), random_state=0),
    "rls, auto": RLSClassifier(features=Auto("1MiB"), selection=LeaveOneOut(200), random_state=0),
    "rls, blocks": RLSClassifier(blocks=(20, 20, 24), random_state=0),
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
    if name in ("rls", "rejecting rls"):
        far = clone(MODELS[name]).fit(X + 1000, y)
        assert far._fitted.moments.shift is not None
        assert_answers_are_the_same(far, X_test + 1000)


@pytest.mark.parametrize("forest", FORESTS)
def test_a_forest_that_has_grown_and_been_edited_answers_the_same(
    forest: Any, rows: Arrays
) -> None:
    X, X_test, y = rows
    first = y < 7
    model = forest(6, random_state=0).fit(X[first], y[first])
    model.partial_fit(X[~first][:60], y[~first][:60]).forget(classes=[2])
    assert_answers_are_the_same(model, X_test)
