"""Wrong input of any classifier gets an error that says what is allowed; nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from evergrow import InvalidInputError, NCMForestClassifier, NCMMetric, RLSClassifier
from evergrow.estimators import (
    RFF,
    Auto,
    Bootstrap,
    ClassMeans,
    Directions,
    HoldOut,
    LeaveOneOut,
    Regularised,
    ReLU,
    Storage,
    SVMs,
    Thresholds,
)
from tests.estimators.classifiers import KINDS, MODELS, SUMS, X, Y, can, every_model, fitted
from tests.estimators.means.cases import quick_metric


def with_value(value: float) -> Any:
    changed = X.copy()
    changed[3, 1] = value
    return changed


BAD_EXAMPLES: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "NaN": (with_value(np.nan), Y, ValueError, "NaN"),
    "infinite": (with_value(np.inf), Y, ValueError, "infinity"),
    "large": (with_value(1e200), Y, ValueError, "too large"),
    "largest": (with_value(1e308), Y, ValueError, "too large"),
    "no rows": (X[:0], [], ValueError, "0 sample"),
    "no features": (X[:, :0], Y, ValueError, "0 feature"),
    "lengths": (X, Y[:7], ValueError, "inconsistent numbers of samples"),
    "mixed": (X, [1, "a"] * 30, TypeError, "all strings or all numbers"),
    "mixed objects": (X, np.array([1, "a"] * 30, dtype=object), TypeError, "all strings or all"),
    "bytes": (X, [b"a", "a"] * 30, TypeError, "all strings or all numbers"),
    "array of bytes": (X, np.array([b"a", b"b"] * 30), TypeError, "bytes"),
    "some missing": (X, ["a", None] * 30, TypeError, "none missing"),
    "all missing": (X, [None] * 60, TypeError, "none missing"),
    "missing in pandas": (X, pd.Series(["a", pd.NA] * 30), TypeError, "none missing"),
    "NaN labels": (X, [0.0, np.nan] * 30, ValueError, "NaN"),
    "continuous": (X, X[:, 0], ValueError, "continuous"),
    "columns of labels": (X, X, ValueError, "1d array"),
    "sparse": (scipy.sparse.csr_matrix(X), Y, TypeError, "dense"),
    "strings": (np.array([["a", "b"]] * 60), Y, ValueError, "strings"),
    "a path": ("features.npz", Y, TypeError, "got a str: for pictures use ImageClassifier"),
    "a folder": (Path("pictures"), Y, TypeError, r"got a \w+Path: for pictures"),
    "paths": (["a.jpg"] * 60, Y, TypeError, "got a list of str: for pictures"),
    "column of paths": (pd.Series(["a.jpg"] * 60), Y, TypeError, "got a column of str: for pic"),
    "array of paths": (np.array(["a.jpg"] * 60), Y, TypeError, "got a column of str: for pictures"),
    "one row": (X[0], Y, ValueError, "2D array"),
    "no labels": (X, None, ValueError, "requires y"),
}
# Bad only for a model that has learnt already.
BAD_LATER: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "other labels": (X, Y.astype(str), TypeError, "numbers like the known classes"),
    "other features": (X[:, :4], Y, ValueError, "4 features"),
}
# Every way of learning, and of forgetting examples.
CALLS = [
    (name, method)
    for name in MODELS
    for method in ("fit", "partial_fit", "forget")
    if can(name, method) and (method != "forget" or name in SUMS)
]


def check_unchanged(model: Any, call: Callable[[], Any], error: Any, message: str) -> None:
    """Assert that a call is refused and changes nothing."""
    before, state = model.predict_proba(X), dict(vars(model))
    with np.errstate(over="ignore"), pytest.raises(error, match=message) as caught:
        call()
    # Anything else would be reported as a bug.
    assert isinstance(caught.value, InvalidInputError)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(
    ("name", "method", "case"),
    [
        (name, method, case)
        for name, method in CALLS
        for case in [*BAD_EXAMPLES, *(BAD_LATER if method == "partial_fit" else ())]
        # To a forest whose scale is fixed, a large number is only far away.
        if not (name in KINDS and method == "partial_fit" and case in ("large", "largest"))
    ],
)
def test_bad_examples_are_refused_and_nothing_changes(name: str, method: str, case: str) -> None:
    rows, y, error, message = {**BAD_EXAMPLES, **BAD_LATER}[case]
    if y is None and method == "forget":
        message = "both X and y, or neither"
    call = getattr(fitted(name), method)
    check_unchanged(fitted(name), lambda: call(rows, y), error, message)
    if method != "forget" and case not in BAD_LATER:
        new = MODELS[name]()
        state = dict(vars(new))
        with np.errstate(over="ignore"), pytest.raises(error, match=message) as caught:
            getattr(new, method)(rows, y)
        assert isinstance(caught.value, InvalidInputError)
        assert vars(new) == state


BAD_WEIGHTS: dict[str, tuple[Any, str]] = {
    "zero": (np.zeros(60), "0 for all|zero|non-zero"),
    "negative": (-np.ones(60), "[Nn]egative"),
    "NaN": (np.full(60, np.nan), "NaN"),
    "too few": (np.ones(7), "sample_weight"),
    "columns": (np.ones((60, 2)), "1D"),
    "large": (np.full(60, 1e200), "sample_weight must be at most"),
}


@pytest.mark.parametrize(("name", "method"), [call for call in CALLS if call[0] in SUMS])
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_refused_and_nothing_changes(name: str, method: str, case: str) -> None:
    weights, message = BAD_WEIGHTS[case]
    call = partial(getattr(fitted(name), method), X, Y, sample_weight=weights)
    check_unchanged(fitted(name), call, ValueError, message)


@pytest.mark.parametrize(
    ("rows", "y", "weights", "error", "message"),
    [
        *((rows, y, None, error, message) for rows, y, error, message in BAD_EXAMPLES.values()),
        *((X, Y, weights, ValueError, message) for weights, message in BAD_WEIGHTS.values()),
    ],
)
def test_a_metric_refuses_bad_examples_and_stays_as_it_was(
    rows: Any, y: Any, weights: Any, error: type[Exception], message: str
) -> None:
    metric = quick_metric().fit(X, Y)
    state = dict(vars(metric))
    with np.errstate(over="ignore"), pytest.raises(error, match=message) as caught:
        metric.fit(rows, y, sample_weight=weights)
    assert isinstance(caught.value, InvalidInputError)
    assert vars(metric) == state


QUERIES = ["predict", "predict_proba", "decision_function", "apply", "comparisons"]
QUERIES += ["predict_known", "novelty", "is_known"]
# A forest, which the rejecting classifier wraps, has no decision function.
ASKED = [(name, method) for name in MODELS for method in QUERIES if can(name, method)]
ASKED.remove(("rejecting", "decision_function"))


@pytest.mark.parametrize(("name", "method"), ASKED)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((4, 3)), "X has 3 features, but {} is expecting 5"),
        (np.zeros((0, 5)), "0 sample"),
        (with_value(np.nan), "NaN"),
        (np.zeros(5), "2D array"),
    ],
)
def test_bad_queries_are_refused(name: str, method: str, rows: Any, message: str) -> None:
    model = fitted(name)
    with pytest.raises(InvalidInputError, match=message.format(type(model).__name__)):
        getattr(model, method)(rows)


USES: dict[str, Callable[[Any], Any]] = {
    **{name: lambda model, name=name: getattr(model, name)(X) for name in QUERIES},
    "predict_top_k": lambda model: model.predict_top_k(X, 2),
    "explain": lambda model: model.explain(X[0]),
    "forget": lambda model: model.forget(classes=[1]),
    "merge": lambda model: model.merge(model),
    "rename_classes": lambda model: model.rename_classes({}),
    "save": lambda model: model.save("nowhere"),
}
LEARNT = ["classes_", "nbytes", "means_", "class_counts_", "estimator_", "level_"]
LEARNT += [
    "usual_scores_",
    "n_held_out_",
    "n_stored_",
    "stored_ids_",
    "coef_",
    "recoding_",
    "temperature_",
]
USES |= {name: lambda model, name=name: getattr(model, name) for name in LEARNT}


@pytest.mark.parametrize(
    ("name", "use"), [(name, use) for name in MODELS for use in USES if can(name, use)]
)
def test_an_unfitted_model_raises_not_fitted(name: str, use: str) -> None:
    model = MODELS[name]()
    if use == "decision_function" and name == "rejecting":
        model.set_params(estimator=RLSClassifier())
    with pytest.raises(NotFittedError, match="not fitted"):
        USES[use](model)


@pytest.mark.parametrize(
    ("kind", "field", "wrong", "message"),
    [
        (ClassMeans, "n_centroids", 1, "an integer from 2 to 65535"),
        (ClassMeans, "n_centroids", 1.5, r"a float in \(0, 1\]"),
        (ClassMeans, "n_centroids", "root", r"one of \['auto', 'log2', 'sqrt'\]"),
        (ClassMeans, "n_assignments", 0, "'auto' or an integer from 1 to 1048576"),
        (ClassMeans, "min_gain", -0.1, r"a float in \[0, inf\)"),
        (ClassMeans, "min_gain", float("nan"), r"a float in \[0, inf\)"),
        (ClassMeans, "min_gain", float("inf"), r"a float in \[0, inf\)"),
        (ClassMeans, "min_gain", 10**400, r"a float in \[0, inf\)"),
        (Regularised, "n_subsets", 1, "an integer from 2 to 16384"),
        (Regularised, "n_assignments", "all", "'auto' or an integer from 1 to 1048576"),
        (Regularised, "scale", 0, r"a float in \(0, inf\)"),
        (Regularised, "cost", -0.1, r"a float in \[0, inf\)"),
        (Regularised, "scoring_samples", 0, "None or an integer from 1 to 268435456"),
        (Thresholds, "n_candidates", 0, "an integer from 1 to 1048576"),
        (Thresholds, "n_candidates", "cube", r"one of \['log2', 'sqrt'\]"),
        (Directions, "n_candidates", 1.5, r"a float in \(0, 1\]"),
        (SVMs, "n_candidates", "sqrt", "an integer from 1 to 1048576"),
        (SVMs, "n_candidates", 0.5, "an integer from 1"),
        (SVMs, "regularization", 0.0, r"a float in \(0, inf\)"),
        (SVMs, "regularization", float("inf"), r"a float in \(0, inf\)"),
        (Bootstrap, "share", 2.0, r"a float in \(0, 1\]"),
        (Storage, "per_class", 0, "None or an integer from 1"),
        (Storage, "dtype", "float64", r"one of \['float16', 'float32'\]"),
    ],
)
def test_a_wrong_field_of_a_value_is_named(kind: Any, field: str, wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{kind.__name__}\.{field} must be .*{message}.*, got"):
        kind(**{field: wrong})
    value = kind()
    with pytest.raises(ValueError, match=rf"^{kind.__name__}\.{field} must be"):
        value.set_params(**{field: wrong})
    assert value == kind()


PARAMETERS: dict[str, list[tuple[str, Any, str]]] = {
    "NCMForestClassifier": [
        ("n_estimators", 0, "an integer from 1 to 65536"),
        ("n_estimators", 2.5, "an integer from 1 to 65536"),
        ("n_estimators", 2**70, "an integer from 1 to 65536"),
        ("n_estimators", True, "an integer from 1 to 65536"),
        ("splits", "means", "'auto' or a value of ClassMeans or Regularised"),
        ("splits", Thresholds(), "a value of ClassMeans or Regularised"),
        ("min_samples_leaf", 0, "an integer from 1 to 268435456"),
        ("max_samples", 0.0, r"None or a float in \(0, 1\] or an integer from 1 to 268435456"),
        ("max_samples", 0, "an integer from 1"),
        ("max_samples", "all", "from 1 to 268435456 or a value of Bootstrap"),
        ("storage", "4GiB", "None or a value of Storage"),
        ("standardize", None, "True or False"),
        ("n_jobs", 0, "None or an integer"),
        ("n_jobs", 2**62, "an integer from 1 to 32768"),
        ("n_jobs", 1.5, "None or an integer"),
        ("random_state", -1, "an integer from 0"),
        ("random_state", "seed", "an integer from 0"),
        ("verbose", -1, "an integer from 0"),
    ],
    "AxisForestClassifier": [
        ("splits", ClassMeans(), "'auto' or a value of Thresholds"),
        ("splits", Directions(), "a value of Thresholds"),
    ],
    "LinearForestClassifier": [
        ("splits", Thresholds, "'auto' or a value of Directions"),
    ],
    "SVMForestClassifier": [
        ("splits", None, "'auto' or a value of SVMs"),
        ("min_samples_leaf", 0, "an integer from 1"),
    ],
    "rls": [
        ("regularization", 0.0, r"a float in \(0, inf\) or 'auto'"),
        ("regularization", -1.0, r"a float in \(0, inf\)"),
        ("regularization", "best", "'auto'"),
        ("regularization", np.nan, ""),
        ("regularization", True, ""),
        ("recoding", 1.5, r"a float in \[0, 1\] or 'auto'"),
        ("recoding", None, ""),
        ("fit_intercept", 1, "True or False"),
        ("standardize", "yes", "True or False"),
        ("features", "tanh", "None or 'auto' or a value of ReLU or RFF or Auto"),
        ("features", ReLU, "a value of ReLU"),
        ("selection", "paper", "'leave-one-out' or a value of LeaveOneOut or HoldOut"),
        ("keep_class_statistics", 3, "True or False"),
        ("random_state", -1, ""),
    ],
    "euclidean": [
        ("metric", "cosine", r"one of \['euclidean', 'mahalanobis'\] or an NCMMetric"),
        ("metric", NCMMetric, "an NCMMetric"),
        ("metric", None, "an NCMMetric"),
        ("shrinkage", -0.1, r"a float in \[0, 1\]"),
        ("shrinkage", 1.5, r"a float in \[0, 1\]"),
        ("shrinkage", "auto", r"a float in \[0, 1\]"),
        ("keep_class_statistics", 1, "True or False"),
    ],
    "rejecting": [
        ("estimator", None, "a classifier"),
        ("estimator", NCMForestClassifier, "a classifier"),
        ("false_alarms", -0.1, r"a float in \[0, 1\]"),
        ("false_alarms", 1.1, r"a float in \[0, 1\]"),
        ("false_alarms", "few", r"a float in \[0, 1\]"),
        ("unknown_label", float("nan"), "a string or a number"),
        ("unknown_label", [1], "a string or a number"),
        ("measure", "distance", r"one of \['auto', 'cosine', 'estimator'\]"),
        ("validation_every", 1, "an integer of at least 2"),
        ("max_held_out", 19, "an integer of at least 20"),
        ("random_state", -1, "an integer from 0"),
    ],
}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReLU(0), "ReLU.n must be an integer from 1 to 1000000, got 0"),
        (lambda: RFF(2.5), "RFF.n must be an integer from 1 to 1000000, got 2.5"),
        (lambda: RFF(gamma=0.0), r"RFF.gamma must be a float in \(0, inf\) or 'scale', got 0.0"),
        (lambda: RFF(gamma="auto"), "RFF.gamma must be .* or 'scale', got 'auto'"),
        (lambda: Auto("much"), "Auto.max_memory must be a size such as '4GiB'"),
        (lambda: LeaveOneOut(0), "LeaveOneOut.max_stored must be an integer of at least 1"),
        (lambda: HoldOut(every=1), "HoldOut.every must be an integer of at least 2"),
        (lambda: HoldOut(refit=None), "HoldOut.refit must be True or False"),
        (lambda: RLSClassifier(features=ReLU(9)).set_params(features__n=-1), "ReLU.n must be"),
        (lambda: RLSClassifier(features=ReLU(9), blocks=(4,)).fit(X, Y), "mix the columns"),
        (lambda: RLSClassifier(features="auto", selection=HoldOut()).fit(X, Y), "by leave-one-out"),
    ],
)
def test_fields_of_least_squares_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "parameter", "value", "allowed"),
    [(name, *case) for name, cases in PARAMETERS.items() for case in cases],
)
def test_each_parameter_is_checked_by_name_and_range(
    name: str, parameter: str, value: Any, allowed: str
) -> None:
    model = MODELS[name]().set_params(**{parameter: value})
    with pytest.raises(ValueError, match=rf"{parameter} must be .*{allowed}.*, got"):
        model.fit(X, Y)
    assert not hasattr(model, "_fitted")


@every_model
def test_every_parameter_has_a_rule(name: str) -> None:
    model = MODELS[name]()
    assert set(model._rules) == set(model.get_params(deep=False))
