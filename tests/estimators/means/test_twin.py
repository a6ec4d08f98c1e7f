"""Class means agree with their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMClassifier, NCMMetric
from evergrow.estimators.means.metric_learning import gradient, log_likelihood
from tests.budget import budget
from tests.estimators.means.cases import Array, blobs, quick_metric
from tests.reference import class_means as twin
from tests.reference import ncm_metric as metric_twin

EVEN = np.ones(120)
UNEVEN = np.random.default_rng(3).uniform(0.1, 4.0, 120)


@pytest.mark.parametrize("weights", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_the_means_are_those_of_the_paper(weights: Array) -> None:
    X, y = blobs()
    found = NCMClassifier().fit(X, y, weights).means_
    np.testing.assert_allclose(found, twin.class_means(X, y, weights), rtol=1e-12)


@pytest.mark.parametrize("weights", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize(
    ("metric", "shrinkage"), [("euclidean", 0.1), ("mahalanobis", 0.1), ("mahalanobis", 0.0)]
)
def test_probabilities_are_those_of_the_formulas(
    weights: Array, offset: float, metric: str, shrinkage: float
) -> None:
    X, y = blobs()
    X, X_test = X + offset, blobs(seed=1)[0] + offset
    found = NCMClassifier(metric=metric, shrinkage=shrinkage).fit(X, y, weights)
    P = twin.precision(metric, shrinkage, X, y, weights)
    expected = twin.probabilities(X_test, twin.class_means(X, y, weights), P)
    np.testing.assert_allclose(found.predict_proba(X_test), expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_scores_are_minus_half_the_squared_distance_up_to_a_number_per_example(metric: str) -> None:
    X, y = blobs()
    scores = NCMClassifier(metric=metric).fit(X, y).decision_function(X)
    P = twin.precision(metric, 0.1, X, y, EVEN)
    expected = -0.5 * twin.squared_distances(X, twin.class_means(X, y, EVEN), P)
    between = scores - scores[:, :1] - (expected - expected[:, :1])
    np.testing.assert_allclose(between, 0.0, atol=1e-9)


def test_a_learnt_metric_measures_after_its_projection() -> None:
    X, y = blobs()
    found = NCMClassifier(metric=quick_metric(3)).fit(X, y)
    W = found.metric_.components_
    expected = twin.probabilities(X, twin.class_means(X, y, EVEN), W.T @ W)
    np.testing.assert_allclose(found.predict_proba(X), expected, rtol=1e-9, atol=1e-15)


@settings(max_examples=budget(40))
@given(
    n=st.integers(1, 12),
    n_classes=st.integers(1, 4),
    d=st.integers(1, 5),
    m=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_likelihood_and_gradient_are_the_sums_over_examples_and_classes(
    n: int, n_classes: int, d: int, m: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    W, means, X = (random.normal(size=size) for size in ((m, d), (n_classes, d), (n, d)))
    y, weights = random.integers(0, n_classes, n), random.uniform(0.1, 3.0, n)
    codes = y.astype(np.int32)
    expected = metric_twin.log_likelihood(W, means, X, y, weights)
    assert log_likelihood(W, means, X, codes, weights) == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(
        gradient(W, means, X, codes, weights),
        metric_twin.gradient(W, means, X, y, weights),
        rtol=1e-8,
        atol=1e-9,
    )


def test_the_gradient_is_the_slope_of_the_likelihood() -> None:
    random = np.random.default_rng(0)
    W, means, X = (random.normal(size=size) for size in ((2, 3), (4, 3), (9, 3)))
    y, weights = random.integers(0, 4, 9), random.uniform(0.1, 3.0, 9)
    slope = metric_twin.gradient(W, means, X, y, weights)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = 1e-6
        ahead, behind = (
            metric_twin.log_likelihood(W + sign * step, means, X, y, weights) for sign in (1, -1)
        )
        numeric = (ahead - behind) / 2e-6 * weights.sum()
        assert slope[place] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def test_the_reported_likelihood_is_that_of_the_examples_when_none_are_held_out() -> None:
    X, y = blobs()
    metric = NCMMetric(validation_fraction=0.0, max_iter=1, random_state=0).fit(X, y, UNEVEN)
    means = twin.class_means(X, y, UNEVEN)
    expected = metric_twin.log_likelihood(metric.components_, means, X, y, UNEVEN)
    assert metric.log_likelihoods_[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", "learnt"])
def test_how_well_an_example_fits_a_class_is_minus_half_the_squared_distance(metric: str) -> None:
    X, y = blobs()
    found = NCMClassifier(metric=quick_metric(3) if metric == "learnt" else metric).fit(X, y)
    if metric == "learnt":
        W = found.metric_.components_
        P = W.T @ W
    else:
        P = twin.precision(metric, 0.1, X, y, EVEN)
    queries = np.concatenate([X, 100 * X])
    expected = -0.5 * twin.squared_distances(queries, twin.class_means(X, y, EVEN), P)
    np.testing.assert_allclose(found._comparable_scores(queries), expected, rtol=1e-8, atol=1e-8)
