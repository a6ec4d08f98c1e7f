"""Wrong input gets an error that says what was wrong and what is allowed; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from evergrow import RLSClassifier
from evergrow.estimators import RFF, RebalancedRLSClassifier

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("regularization", 0.0, r"a float in \(0, inf\) or 'auto'"),
        ("regularization", -1.0, r"a float in \(0, inf\)"),
        ("regularization", "best", "'auto'"),
        ("regularization", np.nan, "regularization must be"),
        ("regularization", True, "regularization must be"),
        ("recoding", 1.5, r"a float in \[0, 1\] or 'auto'"),
        ("recoding", None, "recoding must be"),
        ("fit_intercept", 1, "True or False"),
        ("standardize", "yes", "True or False"),
        ("n_random_features", -1, "from 0 to 1000000"),
        ("n_random_features", 2.5, "an integer"),
        ("feature_map", "tanh", r"one of \['relu', 'rff'\]"),
        ("validation_every", 1, "at least 2"),
        ("max_held_out", 0, "at least 1"),
        ("refit_held_out", None, "True or False"),
        ("keep_class_statistics", 3, "True or False"),
        ("random_state", -1, "random_state must be"),
        ("verbose", -1, "verbose must be"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(name: str, value: Any, message: str) -> None:
    model = RLSClassifier(**{name: value})
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "_fitted")


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, "auto", None])
def test_a_wrong_kernel_width_is_refused_at_once(gamma: Any) -> None:
    with pytest.raises(ValueError, match="gamma must be a float in"):
        RFF(gamma=gamma)


def with_value(value: float) -> Any:
    wrong = X.copy()
    wrong[3, 1] = value
    return wrong


BAD_DATA = [
    (with_value(np.nan), Y, ValueError, "NaN"),
    (with_value(np.inf), Y, ValueError, "infinity"),
    (with_value(1e200), Y, ValueError, "too large"),
    (np.zeros((0, 3)), [], ValueError, "0 sample"),
    (X, Y[:7], ValueError, "inconsistent numbers of samples"),
    (X, ["a", 1] * 10, TypeError, "all strings or all numbers"),
    (X, [None] * 20, TypeError, "none missing"),
    (X, X[:, 0], ValueError, "continuous"),
    (X, X, ValueError, "1d array"),
    (scipy.sparse.csr_matrix(X), Y, TypeError, "dense"),
    (X[0], Y, ValueError, "2D array"),
    (X, None, ValueError, "requires y"),
]


@pytest.mark.parametrize(("X_bad", "y_bad", "error", "message"), BAD_DATA)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_training_data_is_refused_and_nothing_changes(
    method: str, X_bad: Any, y_bad: Any, error: type[Exception], message: str
) -> None:
    model = RLSClassifier(random_state=0).fit(X, Y)
    state, before = dict(vars(model)), model.predict_proba(X)
    with np.errstate(over="ignore"), pytest.raises(error, match=message):
        getattr(model, method)(X_bad, y_bad)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (-np.ones(20), ValueError, "Negative values"),
        (np.zeros(20), ValueError, "0 for all|non-zero"),
        (np.full(20, np.nan), ValueError, "NaN"),
        (np.ones(19), ValueError, "shape"),
        (np.ones((20, 2)), ValueError, "1D"),
    ],
)
@pytest.mark.parametrize("kind", [RLSClassifier, RebalancedRLSClassifier])
def test_bad_weights_are_refused(
    kind: Any, weights: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fit_intercept": False}, "fit_intercept is False but the model was trained with True"),
        ({"n_random_features": 9}, "n_random_features is 9 .* 8: fit again"),
        ({"feature_map": "relu"}, "feature_map is 'relu'"),
        ({"feature_map": RFF(gamma=3.0)}, "gamma is 3.0"),
        ({"keep_class_statistics": True}, "keep_class_statistics is True"),
    ],
)
def test_parameters_that_determine_the_sums_cannot_change_later(
    change: dict[str, Any], message: str
) -> None:
    model = RLSClassifier(n_random_features=8, feature_map=RFF(gamma=2.0)).fit(X, Y)
    model.set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)


def test_other_kinds_of_labels_are_refused_later() -> None:
    model = RLSClassifier().fit(X, Y)
    with pytest.raises(TypeError, match="labels must be numbers like the known classes"):
        model.partial_fit(X, ["a", "b"] * 10)


def test_a_batch_learner_has_no_partial_fit() -> None:
    assert not hasattr(RebalancedRLSClassifier(), "partial_fit")


@pytest.mark.parametrize("k", [0, 3, 1.5, None])
def test_k_can_be_the_number_of_classes(k: Any) -> None:
    with pytest.raises(ValueError, match="k must be an integer from 1 to 2"):
        RLSClassifier().fit(X, Y).predict_top_k(X, k=k)
