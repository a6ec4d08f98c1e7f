"""Wrong input gets an error that says what was wrong and what is allowed; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from evergrow import NCMClassifier, NCMForestClassifier, NCMMetric
from tests.estimators.means.cases import METRICS, blobs, quick_metric

X, Y = blobs(40, n_classes=3)
NAMES = np.array(["ant", "bee", "cat"])
every_metric = pytest.mark.parametrize("name", METRICS)


def with_value(value: float) -> np.ndarray[Any, Any]:
    changed = X.copy()
    changed[3, 1] = value
    return changed


BAD_DATA = [
    (with_value(np.nan), Y, None, ValueError, "NaN"),
    (with_value(np.inf), Y, None, ValueError, "infinity"),
    (with_value(1e200), Y, None, ValueError, "too large"),
    (np.zeros((0, 5)), [], None, ValueError, "0 sample"),
    (X, Y[:7], None, ValueError, "inconsistent numbers of samples"),
    (X, [1, "a"] * 20, None, TypeError, "all strings or all numbers"),
    (X, [None] * 40, None, TypeError, "none missing"),
    (X, X[:, 0], None, ValueError, "continuous"),
    (X, X, None, ValueError, "1d array"),
    (scipy.sparse.csr_matrix(X), Y, None, TypeError, "dense"),
    (X, None, None, ValueError, "requires y"),
    (X, Y, np.zeros(40), ValueError, "zero"),
    (X, Y, -np.ones(40), ValueError, "[Nn]egative"),
    (X, Y, np.full(40, np.nan), ValueError, "NaN"),
    (X, Y, np.ones(7), ValueError, "sample_weight"),
    (X, Y, np.full(40, 1e200), ValueError, "sample_weight must be at most"),
]


@every_metric
@pytest.mark.parametrize("method", ["fit", "partial_fit", "forget"])
@pytest.mark.parametrize(("data", "y", "weight", "error", "message"), BAD_DATA)
def test_bad_examples_are_refused_and_nothing_changes(
    name: str, method: str, data: Any, y: Any, weight: Any, error: type[Exception], message: str
) -> None:
    model = METRICS[name]().fit(X, Y)
    state = dict(vars(model))
    if y is None and method == "forget":
        message = "both X and y, or neither"
    with pytest.raises(error, match=message):
        getattr(model, method)(data, y, sample_weight=weight)
    assert vars(model) == state


@pytest.mark.parametrize(("data", "y", "weight", "error", "message"), BAD_DATA)
def test_a_metric_refuses_bad_examples_and_stays_as_it_was(
    data: Any, y: Any, weight: Any, error: type[Exception], message: str
) -> None:
    metric = quick_metric().fit(X, Y)
    state = dict(vars(metric))
    with pytest.raises(error, match=message):
        metric.fit(data, y, sample_weight=weight)
    assert vars(metric) == state


@every_metric
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((4, 3)), "X has 3 features, but NCMClassifier is expecting 5"),
        (np.zeros((0, 5)), "0 sample"),
        (with_value(np.nan), "NaN"),
        (np.zeros(5), "2D array"),
    ],
)
def test_bad_queries_are_refused(name: str, method: str, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(METRICS[name]().fit(X, Y), method)(data)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(X),
        lambda model: model.predict_proba(X),
        lambda model: model.decision_function(X),
        lambda model: model.predict_top_k(X, 2),
        lambda model: model.means_,
        lambda model: model.class_counts_,
        lambda model: model.classes_,
        lambda model: model.forget(X, Y),
        lambda model: model.forget(classes=[1]),
        lambda model: model.merge(NCMClassifier().fit(X, Y)),
        lambda model: NCMClassifier().fit(X, Y).merge(model),
        lambda model: model.rename_classes({}),
        lambda model: model.save("nowhere"),
    ],
)
def test_an_unfitted_model_raises_not_fitted(use: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        use(NCMClassifier())


@pytest.mark.parametrize("use", [lambda m: m.transform(X), lambda m: m.save("nowhere")])
def test_an_unfitted_metric_raises_not_fitted(use: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        use(NCMMetric())


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("metric", "cosine", r"one of \['euclidean', 'mahalanobis'\] or an NCMMetric"),
        ("metric", NCMMetric, "an NCMMetric"),
        ("metric", None, "an NCMMetric"),
        ("shrinkage", -0.1, r"a float in \[0, 1\]"),
        ("shrinkage", 1.5, r"a float in \[0, 1\]"),
        ("shrinkage", "auto", r"a float in \[0, 1\]"),
        ("keep_class_statistics", 1, "True or False"),
    ],
)
def test_each_parameter_is_checked_by_name_and_range(
    parameter: str, value: Any, allowed: str
) -> None:
    with pytest.raises(ValueError, match=rf"{parameter} must be .*{allowed}.*, got"):
        NCMClassifier(**{parameter: value}).fit(X, Y)


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


@pytest.mark.parametrize("kind", [NCMClassifier, NCMMetric])
def test_every_parameter_has_a_rule(kind: Any) -> None:
    assert set(kind._rules) == set(kind().get_params(deep=False))


@every_metric
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: m.forget(), ValueError, "examples .X and y., classes, or both"),
        (lambda m: m.forget(X), ValueError, "both X and y, or neither"),
        (lambda m: m.forget(X, classes=["ant"]), ValueError, "both X and y, or neither"),
        (lambda m: m.forget(X[:1], ["cow"]), ValueError, r"unknown classes \['cow'\]"),
        (lambda m: m.forget(classes=["cow"]), ValueError, r"unknown classes \['cow'\]"),
        (
            lambda m: m.forget(np.vstack([X, X]), ["bee"] * 80),
            ValueError,
            r"class 'bee': \d+ examples were learnt, 80 are to be forgotten",
        ),
        (
            lambda m: m.forget(X[:1], ["bee"], sample_weight=[100.0]),
            ValueError,
            r"class 'bee': examples with a total weight of \d+ were learnt, but a weight of 100",
        ),
        (
            lambda m: m.forget(X[:1] + 900, ["bee"]),
            ValueError,
            "class 'bee': these are not the examples that were learnt",
        ),
        (lambda m: m.forget(X, NAMES[Y]), ValueError, "forget would leave no examples"),
        (lambda m: m.forget(classes=NAMES), ValueError, "forget would leave no examples"),
        (lambda m: m.partial_fit(X, Y), TypeError, "must be strings like the known classes"),
        (
            lambda m: m.partial_fit(X, NAMES[Y], classes=np.array([["ant"]])),
            ValueError,
            "flat list",
        ),
        (lambda m: m.partial_fit(X[:, :2], NAMES[Y]), ValueError, "2 features"),
        (lambda m: m.rename_classes({"cow": "x"}), ValueError, r"unknown classes \['cow'\]"),
        (lambda m: m.rename_classes({"ant": 1}), TypeError, "all strings or all numbers"),
        (lambda m: m.rename_classes(["ant"]), TypeError, "names must map"),
        (lambda m: m.merge("model"), TypeError, "merge needs another NCMClassifier, got str"),
        (lambda m: m.merge(NCMForestClassifier()), TypeError, "got NCMForestClassifier"),
    ],
)
def test_a_refused_change_leaves_all_as_it_was(
    name: str, change: Any, error: type[Exception], message: str
) -> None:
    model = METRICS[name]().fit(X, NAMES[Y])
    before, state = model.predict_proba(X), dict(vars(model))
    with pytest.raises(error, match=message):
        change(model)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_class_without_its_statistics_cannot_be_forgotten_and_the_error_says_what_to_do() -> None:
    model = NCMClassifier(metric="mahalanobis").fit(X, NAMES[Y])
    state = dict(vars(model))
    with pytest.raises(ValueError, match=r"\['bee'\].*forget\(X, y\).*keep_class_statistics=True"):
        model.forget(classes=["bee"])
    assert vars(model) == state


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


@pytest.mark.parametrize(
    "changed",
    [{"metric": "mahalanobis"}, {"metric": quick_metric()}, {"keep_class_statistics": True}],
    ids=str,
)
@pytest.mark.parametrize("method", ["partial_fit", "forget"])
def test_the_metric_cannot_change_without_fitting_again(
    changed: dict[str, Any], method: str
) -> None:
    metric = "mahalanobis" if "keep_class_statistics" in changed else "euclidean"
    model = NCMClassifier(metric=metric).fit(X, Y).set_params(**changed)
    with pytest.raises(ValueError, match=r"but the model was trained .*fit again to change it"):
        getattr(model, method)(X, Y)


def test_a_singular_covariance_needs_shrinkage() -> None:
    model = NCMClassifier(metric="mahalanobis", shrinkage=0.0).fit(X[:5], Y[:5])
    with pytest.raises(ValueError, match="set shrinkage above 0"):
        model.predict(X)
    model.partial_fit(X[5:], Y[5:])
    assert model.score(X, Y) > 0.8
