"""NCMMetric through its public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from evergrow import NCMMetric
from evergrow.estimators.means import metric_learning as learning
from evergrow.estimators.means import ncm_metric as module
from tests.conftest import Arrays
from tests.estimators.means.cases import blobs, quick_metric

X, Y = blobs(300)


def test_it_projects_by_its_components() -> None:
    metric = quick_metric(2).fit(X, Y)
    assert metric.components_.shape == (2, 5)
    assert metric.components_.dtype == np.float64
    np.testing.assert_allclose(metric.transform(X), X @ metric.components_.T, rtol=1e-12)


def test_it_has_as_many_components_as_features_up_to_512() -> None:
    assert quick_metric().fit(X, Y).components_.shape == (5, 5)
    wide = np.random.default_rng(0).normal(size=(12, 530))
    assert NCMMetric(max_iter=1).fit(wide, np.arange(12) % 2).components_.shape == (512, 530)


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


def test_the_seed_decides() -> None:
    first, same, other = (
        NCMMetric(max_iter=2, random_state=seed).fit(X, Y).components_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_neither_unit_nor_offset_of_a_feature_matters() -> None:
    units, offsets = np.array([1.0, 8.0, 0.25, 1024.0, 1e-6]), np.array([0.0, 50.0, 0.0, 9.0, 1.0])
    plain = NCMMetric(max_iter=3, random_state=0).fit(X, Y)
    scaled = NCMMetric(max_iter=3, random_state=0).fit((X + offsets) * units, Y)
    np.testing.assert_allclose(scaled.log_likelihoods_, plain.log_likelihoods_, atol=1e-3)
    distances = [W.T @ W for W in (scaled.components_ * units, plain.components_)]
    np.testing.assert_allclose(*distances, atol=1e-2 * np.abs(distances[1]).max())


def test_features_that_are_constant_within_classes_have_no_effect() -> None:
    padded = np.column_stack([X, np.full(300, 0.1), Y])
    metric = NCMMetric(max_iter=3, random_state=0).fit(padded, Y)
    assert np.isfinite(metric.components_).all()
    assert abs(metric.log_likelihoods_[-1]) < 0.1


def test_too_little_shrinkage_for_too_few_examples_is_named() -> None:
    with pytest.raises(ValueError, match="set shrinkage above 1e-300"):
        NCMMetric(shrinkage=1e-300).fit(X[:4], np.zeros(4))


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_a_handful_of_examples_is_enough(n: int) -> None:
    metric = NCMMetric(max_iter=4, random_state=0).fit(X[:n], Y[:n])
    assert np.isfinite(metric.transform(X)).all()


def test_every_class_is_learnt_from_even_if_it_has_one_example() -> None:
    for seed in range(20):
        # In the order of classes every second one is held out, the only one of class 1 too.
        codes = np.array([0] * 9 + [1] + [2] * 11, dtype=np.int32)
        held_out = learning._held_out(codes, 0.5, np.random.RandomState(seed))
        assert set(codes[~held_out]) == {0, 1, 2}
        assert held_out.sum() == 9


def test_the_same_share_of_each_class_is_held_out() -> None:
    codes = np.repeat(np.arange(5, dtype=np.int32), 40)
    held_out = learning._held_out(codes, 0.1, np.random.RandomState(0))
    assert np.bincount(codes[held_out]).tolist() == [4] * 5


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


def test_a_failure_leaves_no_trace_of_the_data() -> None:
    metric = quick_metric().fit(X, Y)
    state = dict(vars(metric))
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        metric.fit(frame, Y, np.full(300, -1.0))
    assert vars(metric) == state


def test_weights_shift_what_is_learnt() -> None:
    weights = np.where(Y == 0, 50.0, 0.02)
    even, uneven = (quick_metric().fit(X, Y, w).components_ for w in (None, weights))
    assert (even != uneven).any()
    np.testing.assert_allclose(quick_metric().fit(X, Y, np.full(300, 4.0)).components_, even)


def test_features_get_names(digits: Arrays) -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    metric = quick_metric(2).fit(frame, Y)
    assert metric.feature_names_in_.tolist() == list("abcde")
    assert metric.get_feature_names_out().tolist() == ["ncmmetric0", "ncmmetric1"]
    out = metric.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == ["ncmmetric0", "ncmmetric1"]


def test_it_works_in_a_pipeline_with_other_estimators(digits: Arrays) -> None:
    data, X_test, y, y_test = digits
    pipeline = make_pipeline(NCMMetric(9, random_state=0), KNeighborsClassifier())
    assert pipeline.fit(data, y).score(X_test, y_test) > 0.95


def test_what_was_learnt_cannot_be_written_to() -> None:
    metric = NCMMetric(max_iter=1, random_state=0).fit(X, Y)
    for array in (metric.components_, metric.log_likelihoods_):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0


@pytest.mark.parametrize("use", ["transform", "_to_file"])
def test_a_metric_that_is_trained_meanwhile_transforms_as_before(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = NCMMetric(max_iter=1, random_state=0).fit(X, Y)
    other = NCMMetric(max_iter=1, random_state=0).fit(X[:, :2], Y)
    expected = metric.components_

    def meanwhile(plain: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            found = plain(*arguments, **options)
            metric.__dict__ = dict(vars(other))
            return found

        return call

    for name in ("validate_rows", "check_parameters"):
        monkeypatch.setattr(
            f"evergrow.estimators.means.ncm_metric.{name}", meanwhile(getattr(module, name))
        )
    if use == "transform":
        np.testing.assert_allclose(metric.transform(X), X @ expected.T)
    else:
        np.testing.assert_array_equal(metric._to_file()[1]["components"], expected)
