"""Wrong input gets an error that says what was wrong and what is allowed; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from evergrow import NCMClassifier, NCMMetric
from tests.estimators.means.cases import blobs, quick_metric

X, Y = blobs(40, n_classes=3)
NAMES = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize(
    "use",
    [
        lambda: NCMMetric().transform(X),
        lambda: NCMMetric().save("nowhere"),
        lambda: NCMClassifier().forget(X, Y),
        lambda: NCMClassifier().fit(X, Y).merge(NCMClassifier()),
    ],
)
def test_what_is_unfitted_raises_not_fitted(use: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        use()


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("n_components", 0, "None or an integer from 1"),
        ("n_components", 6, "at most the number of features, 5, got 6"),
        ("shrinkage", 0.0, r"a float in \(0, 1\]"),
        ("learning_rate", 0, r"a float in \(0, 1e\+06\]"),
        ("batch_size", 0, "an integer from 1"),
        ("max_iter", 0, "an integer from 1"),
        ("tol", -1.0, r"a float in \[0, inf\)"),
        ("n_iter_no_change", 0, "an integer from 1"),
        ("validation_fraction", 0.6, r"a float in \[0, 0.5\]"),
        ("random_state", "seed", "an integer from 0"),
        ("verbose", -1, "an integer of at least 0"),
    ],
)
def test_each_parameter_of_a_metric_is_checked(parameter: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=rf"{parameter} must be .*{allowed}"):
        NCMMetric(**{parameter: value}).fit(X, Y)
    with pytest.raises(ValueError, match=rf"{parameter} must be .*{allowed}"):
        NCMClassifier(metric=NCMMetric(**{parameter: value})).fit(X, Y)


FRAME = pd.DataFrame(X, columns=list("abcde"))


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (
            NCMClassifier().fit(X, Y),
            NCMClassifier(metric="mahalanobis").fit(X, Y),
            "differ in metric",
        ),
        (
            NCMClassifier(metric=quick_metric()).fit(X, Y),
            NCMClassifier(metric=quick_metric()).fit(X[5:], Y[5:]),
            "differ in the learnt metric",
        ),
        (
            NCMClassifier(metric="mahalanobis").fit(X, Y),
            NCMClassifier(metric="mahalanobis", keep_class_statistics=True).fit(X, Y),
            "differ in keep_class_statistics",
        ),
        (NCMClassifier().fit(X, Y), NCMClassifier().fit(X[:, :2], Y), "the number of features"),
        (
            NCMClassifier().fit(FRAME, Y),
            NCMClassifier().fit(FRAME.rename(columns={"a": "z"}), Y),
            "the names of the features",
        ),
        (NCMClassifier().fit(X, Y), NCMClassifier().fit(X, NAMES[Y]), "must be numbers"),
    ],
)
def test_models_that_do_not_agree_are_not_merged(ours: Any, theirs: Any, message: str) -> None:
    state, other = dict(vars(ours)), dict(vars(theirs))
    with pytest.raises((ValueError, TypeError), match=message):
        ours.merge(theirs)
    assert vars(ours) == state
    assert vars(theirs) == other


def test_a_singular_covariance_needs_shrinkage() -> None:
    model = NCMClassifier(metric="mahalanobis", shrinkage=0.0).fit(X[:5], Y[:5])
    with pytest.raises(ValueError, match="set shrinkage above 0"):
        model.predict(X)
    model.partial_fit(X[5:], Y[5:])
    assert model.score(X, Y) > 0.8
