"""NCMClassifier through its public interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import NCMClassifier, NCMMetric
from tests.conftest import Arrays
from tests.estimators.means.cases import METRICS, assert_same, blobs, quick_metric
from tests.estimators.model_files import reload

every_metric = pytest.mark.parametrize("name", METRICS)

# Which examples are held out and which meet in a mini-batch follows their number.
_BY_ROWS = "mini-batches and the held-out part are drawn by row, not by weight"


def expected_failures(estimator: Any) -> dict[str, str]:
    learns = isinstance(estimator, NCMMetric) or isinstance(estimator.metric, NCMMetric)
    return {"check_sample_weight_equivalence_on_dense_data": _BY_ROWS} if learns else {}


@parametrize_with_checks(
    [*(make() for make in METRICS.values()), NCMMetric(max_iter=5), NCMMetric(1, max_iter=5)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("metric", "least"), [("euclidean", 0.89), ("mahalanobis", 0.945), (NCMMetric(), 0.955)]
)
def test_every_metric_reads_digits(metric: Any, least: float, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    if isinstance(metric, NCMMetric):
        metric.set_params(random_state=0)
    assert NCMClassifier(metric=metric).fit(X, y).score(X_test, y_test) > least


def test_euclidean_is_scikit_learns_nearest_centroid(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    # Scikit-learn warns of features that are the same throughout a class.
    varying = np.min([X[y == c].std(axis=0) for c in range(10)], axis=0) > 0
    X, X_test = X[:, varying], X_test[:, varying]
    ours, theirs = NCMClassifier().fit(X, y), NearestCentroid().fit(X, y)
    np.testing.assert_allclose(ours.means_, theirs.centroids_, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


def test_mahalanobis_is_linear_discriminant_analysis_with_equal_priors() -> None:
    X, y = blobs(300)
    lda = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.25] * 4).fit(X, y)
    ours = NCMClassifier(metric="mahalanobis", shrinkage=0.0).fit(X, y)
    assert (ours.predict(X) == lda.predict(X)).mean() > 0.99


@every_metric
def test_two_classes_have_one_score_and_more_have_one_each(name: str) -> None:
    X, y = blobs()
    two = METRICS[name]().fit(X, y % 2)
    assert two.decision_function(X).shape == (120,)
    np.testing.assert_array_equal(two.predict(X), (two.decision_function(X) > 0).astype(int))
    assert METRICS[name]().fit(X, y).decision_function(X).shape == (120, 4)
    assert METRICS[name]().fit(X, y * 0).decision_function(X).shape == (120, 1)


@every_metric
def test_probabilities_are_shares_and_their_logarithms_are_exact(name: str) -> None:
    X, y = blobs()
    model = METRICS[name]().fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), shares)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X))


@every_metric
def test_one_example_per_class_is_enough(name: str) -> None:
    model = METRICS[name]().fit([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]], ["a", "b", "c"])
    assert model.predict([[0.0, 0.9], [3.0, 3.0]]).tolist() == ["a", "c"]
    assert np.isfinite(model.predict_proba([[0.0, 0.9]])).all()
    model = METRICS[name]().partial_fit([[5.0, 5.0]], ["only"])
    assert model.predict_proba([[0.0, 0.0]]).tolist() == [[1.0]]


def test_of_equally_near_means_the_first_wins() -> None:
    model = NCMClassifier().partial_fit([[4.0], [6.0]], ["z", "z"])
    model.partial_fit([[-6.0], [-4.0]], ["a", "a"])
    assert model.predict([[0.0]]).tolist() == ["z"]


@every_metric
@pytest.mark.parametrize(("offset", "unit"), [(1e5, 1.0), (0.0, 1e-9), (0.0, 1e12), (-1e3, 1e-2)])
def test_neither_offset_nor_unit_of_the_features_matters(
    name: str, offset: float, unit: float
) -> None:
    y = np.arange(200) % 4
    X = offset + unit * (y[:, None] + np.random.default_rng(0).normal(scale=0.1, size=(200, 3)))
    model = METRICS[name]().fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.predict_proba(X).max(axis=1).min() > 0.5


@every_metric
def test_a_huge_number_is_only_far_away(name: str) -> None:
    X, y = blobs()
    model = METRICS[name]().fit(X, y)
    for far in (1e307, -1e307):
        assert np.isfinite(model.predict_proba(np.full((1, 5), far))).all()


@every_metric
def test_a_constant_feature_has_no_effect(name: str, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    assert (X.std(axis=0) == 0).any()
    assert METRICS[name]().fit(X, y).score(X_test, y_test) > 0.88


def test_it_works_inside_scikit_learns_tools(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    search = GridSearchCV(NCMClassifier(metric="mahalanobis"), {"shrinkage": [0.1, 0.99]}, cv=3)
    assert search.fit(X, y).best_params_ == {"shrinkage": 0.1}
    learnt = GridSearchCV(
        NCMClassifier(metric=quick_metric()), {"metric__n_components": [1, 9]}, cv=2
    )
    assert learnt.fit(X, y).best_params_ == {"metric__n_components": 9}
    pipeline = make_pipeline(quick_metric(9), NCMClassifier())
    assert pipeline.fit(X, y).score(X_test, y_test) > 0.9


def test_predictions_follow_shrinkage_at_once() -> None:
    X, y = blobs()
    model = NCMClassifier(metric="mahalanobis", shrinkage=0.9).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(shrinkage=0.0)
    expected = NCMClassifier(metric="mahalanobis", shrinkage=0.0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(model.set_params(shrinkage=0.9).predict_proba(X), before)


def test_a_changed_shrinkage_has_the_same_effect_after_loading(tmp_path: Path) -> None:
    X, y = blobs()
    model = NCMClassifier(metric="mahalanobis").fit(X, y).set_params(shrinkage=0.9)
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_shrinkage_out_of_range_is_refused_when_predicting() -> None:
    X, y = blobs()
    model = NCMClassifier(metric="mahalanobis").fit(X, y).set_params(shrinkage=2.0)
    with pytest.raises(ValueError, match="shrinkage must be a float in"):
        model.predict(X)


def test_models_of_different_shrinkage_can_be_merged() -> None:
    X, y = blobs()
    model = NCMClassifier(metric="mahalanobis", shrinkage=0.3).fit(X[:60], y[:60])
    model.merge(NCMClassifier(metric="mahalanobis", shrinkage=0.9).fit(X[60:], y[60:]))
    assert_same(model, NCMClassifier(metric="mahalanobis", shrinkage=0.3).fit(X, y), X)


@pytest.fixture(scope="module")
def image_features(measuring_data: Path) -> Arrays:
    """X_train, X_test, y_train, y_test of 100 classes."""
    with np.load(measuring_data / "cifar100_efflite0_pca256.npz") as data:
        train, test = (data["X_train"][::3], data["y_train"][::3]), (data["X_test"], data["y_test"])
    return train[0], test[0], train[1], test[1]


def test_a_learnt_metric_beats_mahalanobis_beats_euclidean_on_image_features(
    image_features: Arrays,
) -> None:
    X, X_test, y, y_test = image_features
    plain, shaped, learnt = (
        NCMClassifier(metric=metric).fit(X, y).score(X_test, y_test)
        for metric in ("euclidean", "mahalanobis", NCMMetric(random_state=0))
    )
    assert plain + 0.05 < shaped
    assert shaped + 0.02 < learnt


def test_a_metric_learnt_from_few_classes_serves_the_others_less_well(
    image_features: Arrays,
) -> None:
    X, X_test, y, y_test = image_features
    few = y < 20
    model = NCMClassifier(metric=NCMMetric(random_state=0))
    all_at_once = clone(model).fit(X, y).score(X_test, y_test)
    model.fit(X[few], y[few]).partial_fit(X[~few], y[~few])
    assert model.score(X_test, y_test) < all_at_once - 0.03


def test_mahalanobis_means_the_same_whatever_the_units_of_single_features_are() -> None:
    X, y = blobs()
    units = np.array([1.0, 1e-3, 1e4, 10.0, 0.2])
    model = NCMClassifier(metric="mahalanobis", shrinkage=0.5)
    plain = clone(model).fit(X, y).predict_log_proba(X)
    np.testing.assert_allclose(model.fit(X * units, y).predict_log_proba(X * units), plain)


def test_one_example_per_class_needs_no_shrinkage_but_the_classes_own_variance() -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]]), [0, 1, 2]
    for shrinkage in (0.0, 0.1, 1.0):
        model = NCMClassifier(metric="mahalanobis", shrinkage=shrinkage).fit(X, y)
        distances = ((X[:, None] - X[None]) ** 2 / X.var(axis=0)).sum(axis=2)
        np.testing.assert_allclose(model._comparable_scores(X), -distances / 2, atol=1e-9)


def test_features_of_very_different_units_all_count() -> None:
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    signal = (y + random.normal(0, 0.1, 300)) / 1e3
    X = np.column_stack([random.normal(0, 3e7, 300), random.normal(0, 3e7, 300), signal])
    assert NCMClassifier(metric="mahalanobis").fit(X, y).score(X, y) == 1.0
