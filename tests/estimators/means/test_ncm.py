"""NCMClassifier and NCMMetric through their public interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import NCMClassifier, NCMMetric
from evergrow.estimators.means import metric_learning as learning
from tests.conftest import Arrays
from tests.estimators.means.cases import METRICS, assert_same, blobs, quick_metric

every_metric = pytest.mark.parametrize("name", METRICS)

# Which examples are held out and which meet in a mini-batch follows their number.
_BY_ROWS = "mini-batches and the held-out part are drawn by row, not by weight"


def expected_failures(estimator: Any) -> dict[str, str]:
    learns = isinstance(estimator, NCMMetric) or isinstance(estimator.metric, NCMMetric)
    return {"check_sample_weight_equivalence_on_dense_data": _BY_ROWS} if learns else {}


@parametrize_with_checks(
    [
        *(make() for make in METRICS.values()),
        *(NCMMetric(1, max_iter=5, level=level) for level in (None, "coarse")),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


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
def test_one_example_per_class_is_enough(name: str) -> None:
    model = METRICS[name]().fit([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]], ["a", "b", "c"])
    assert model.predict([[0.0, 0.9], [3.0, 3.0]]).tolist() == ["a", "c"]
    assert np.isfinite(model.predict_proba([[0.0, 0.9]])).all()
    model = METRICS[name]().partial_fit([[5.0, 5.0]], ["only"])
    assert model.predict_proba([[0.0, 0.0]]).tolist() == [[1.0]]


@every_metric
def test_a_huge_number_is_only_far_away(name: str) -> None:
    X, y = blobs()
    model = METRICS[name]().fit(X, y)
    for far in (1e307, -1e307):
        assert np.isfinite(model.predict_proba(np.full((1, 5), far))).all()


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


def test_one_example_per_class_needs_no_shrinkage_but_the_classes_own_variance() -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]]), [0, 1, 2]
    for shrinkage in (0.0, 0.1, 1.0):
        model = NCMClassifier(metric="mahalanobis", shrinkage=shrinkage).fit(X, y)
        distances = ((X[:, None] - X[None]) ** 2 / X.var(axis=0)).sum(axis=2)
        np.testing.assert_allclose(model._comparable_scores(X), -distances / 2, atol=1e-9)


X, Y = blobs(300)


def test_it_finds_the_direction_that_separates_classes() -> None:
    random = np.random.default_rng(0)
    y = np.arange(400) % 2
    data = np.column_stack([y + 0.2 * random.normal(size=400), 100 * random.normal(size=400)])
    first, second = NCMMetric(1, random_state=0).fit(data, y).components_[0]
    assert abs(second) * 100 < 0.05 * abs(first)


def test_learning_raises_the_likelihood(digits: Arrays) -> None:
    data, _, y, _ = digits
    likelihoods = NCMMetric(random_state=0).fit(data, y).log_likelihoods_
    assert likelihoods.max() > likelihoods[0] + 0.02


def test_neither_unit_nor_offset_of_a_feature_matters() -> None:
    units, offsets = np.array([1.0, 8.0, 0.25, 1024.0, 1e-6]), np.array([0.0, 50.0, 0.0, 9.0, 1.0])
    plain = NCMMetric(max_iter=3, random_state=0).fit(X, Y)
    scaled = NCMMetric(max_iter=3, random_state=0).fit((X + offsets) * units, Y)
    np.testing.assert_allclose(scaled.log_likelihoods_, plain.log_likelihoods_, atol=1e-3)
    distances = [W.T @ W for W in (scaled.components_ * units, plain.components_)]
    np.testing.assert_allclose(*distances, atol=1e-2 * np.abs(distances[1]).max())


def test_too_little_shrinkage_for_too_few_examples_is_named() -> None:
    with pytest.raises(ValueError, match="set shrinkage above 1e-300"):
        NCMMetric(shrinkage=1e-300).fit(X[:4], np.zeros(4))


def test_every_class_is_learnt_from_even_if_it_has_one_example() -> None:
    for seed in range(20):
        # In the order of classes every second one is held out, the only one of class 1 too.
        codes = np.array([0] * 9 + [1] + [2] * 11, dtype=np.int32)
        held_out = learning._held_out(codes, 0.5, np.random.RandomState(seed))
        assert set(codes[~held_out]) == {0, 1, 2}
        assert held_out.sum() == 9


def test_it_stops_when_held_out_examples_gain_no_more() -> None:
    patient = NCMMetric(max_iter=60, n_iter_no_change=2, random_state=0).fit(X, Y)
    assert 2 <= patient.n_iter_ < 60
    assert len(patient.log_likelihoods_) == patient.n_iter_
    assert NCMMetric(max_iter=2, n_iter_no_change=9, tol=0.0).fit(X, Y).n_iter_ == 2


def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = quick_metric().fit(X, Y)
    state = dict(vars(metric))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        metric.fit(X[:100], Y[:100])
    assert vars(metric) == state


def test_features_get_names(digits: Arrays) -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    metric = quick_metric(2).fit(frame, Y)
    assert metric.feature_names_in_.tolist() == list("abcde")
    assert metric.get_feature_names_out().tolist() == ["ncmmetric0", "ncmmetric1"]
    out = metric.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == ["ncmmetric0", "ncmmetric1"]
