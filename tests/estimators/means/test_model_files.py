"""Model files of class means and metrics: exact, and damaged or hostile files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evergrow import NCMClassifier, NCMMetric
from tests.estimators.means.cases import METRICS, blobs, quick_metric
from tests.estimators.model_files import at, check_refused, forge, reload

X, Y = blobs()
every_metric = pytest.mark.parametrize("name", METRICS)


@every_metric
def test_a_loaded_model_predicts_bit_for_bit_the_same(name: str, tmp_path: Path) -> None:
    model = METRICS[name]().fit(X, Y)
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.n_features_in_ == 5


def test_examples_without_features_can_be_saved(tmp_path: Path) -> None:
    model = NCMClassifier().fit(np.zeros((4, 2)), ["a", "a", "b", "b"])
    assert reload(model, tmp_path).class_counts_.tolist() == [2, 2]


def test_a_metric_is_saved_and_loaded(tmp_path: Path) -> None:
    metric = quick_metric(2).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    loaded = reload(metric, tmp_path)
    assert vars(loaded).keys() == vars(metric).keys()
    np.testing.assert_array_equal(loaded.components_, metric.components_)
    np.testing.assert_array_equal(loaded.log_likelihoods_, metric.log_likelihoods_)
    assert loaded.n_iter_ == metric.n_iter_
    assert loaded.feature_names_in_.tolist() == list("abcde")
    assert loaded.get_params() == metric.get_params()


@pytest.mark.parametrize("name", ["euclidean", "mahalanobis", "mahalanobis per class"])
def test_rounding_errors_of_forgotten_examples_can_be_loaded(name: str, tmp_path: Path) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        gone, weights = random.normal(size=(5, 5)), random.uniform(0.1, 3.0, 5)
        kept = X.copy()
        kept[:, 3] = 0.0
        model = METRICS[name]().fit(kept, Y).partial_fit(gone, [9] * 5, sample_weight=weights)
        for k in (3, 1, 4, 0, 2):
            model.forget(gone[k : k + 1], [9], sample_weight=weights[k : k + 1])
        loaded = reload(model, tmp_path)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


FORGED: list[tuple[str, str, Any]] = [
    ("euclidean", "moments.class_sums", at(0, 1e300)),
    ("euclidean", "moments.class_sums", np.zeros((3, 5))),
    ("euclidean", "moments.class_sums", np.zeros((4, 0))),
    ("euclidean", "moments.class_weights", at(0, -1.0)),
    ("euclidean", "moments.class_weights", at(0, 0.0)),
    ("euclidean", "moments.class_examples", at(0, 0)),
    ("euclidean", "moments.class_examples", at(0, -3)),
    ("euclidean", "moments.class_examples", at(0, 2**53)),
    ("euclidean", "moments.class_squares", at(0, -1.0)),
    ("euclidean", "moments.gram", np.zeros(15)),
    ("euclidean", "fitted/moments", None),
    ("euclidean", "fitted/moments/peak", -1.0),
    ("euclidean", "fitted/labels", {"dtype": "<i8", "values": [0, 1, 2, 3, 4]}),
    ("euclidean", "feature_names", ["a"]),
    ("euclidean", "parameters", [1]),
    ("euclidean", "parameters/metric", "cosine"),
    ("euclidean", "parameters/metric", "mahalanobis"),
    ("euclidean", "parameters/speed", 1),
    ("mahalanobis", "parameters/shrinkage", 7.0),
    ("mahalanobis", "moments.gram", None),
    ("mahalanobis", "moments.gram", np.zeros(14)),
    ("mahalanobis", "moments.gram", at(0, -1.0)),
    ("mahalanobis", "moments.class_grams", np.zeros((4, 15))),
    ("mahalanobis per class", "moments.gram", None),
    ("mahalanobis per class", "moments.class_grams", None),
    ("mahalanobis per class", "moments.class_grams", np.zeros((3, 15))),
    ("mahalanobis per class", "moments.class_grams", at(0, -1.0)),
    ("mahalanobis per class", "moments.class_grams", at(1, 1e300)),
    ("learnt", "parameters/metric", {"estimator": "os.system"}),
    ("learnt", "parameters/metric", "euclidean"),
    ("learnt", "parameters/metric/parameters/max_iter", -1),
    ("learnt", "parameters/metric/parameters/speed", 1),
    ("learnt", "fitted/metric", None),
    ("learnt", "fitted/metric/estimator", "NCMForestClassifier"),
    ("learnt", "fitted/metric/parameters", None),
    ("learnt", "metric/components", np.ones((2, 4))),
    ("learnt", "metric/components", at(0, 1e150)),
    ("learnt", "metric/components", np.full((2, 5), 1e139)),
    ("learnt", "metric/components", np.ones((0, 5))),
    ("learnt", "metric/log_likelihoods", np.ones(0)),
]


@pytest.mark.parametrize(("name", "path", "value"), FORGED)
def test_a_forged_file_is_refused(name: str, path: str, value: Any, tmp_path: Path) -> None:
    reload(METRICS[name]().fit(X, Y), tmp_path)
    check_refused(tmp_path / "model.evergrow", forge(path, value))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("euclidean", {"metric": "mahalanobis"}),
        ("mahalanobis", {"metric": "euclidean"}),
        ("mahalanobis", {"keep_class_statistics": True}),
        ("euclidean", {"metric": NCMMetric()}),
        ("learnt", {"metric__shrinkage": 7.0}),
    ],
)
def test_parameters_that_do_not_fit_the_model_leave_the_old_file(
    name: str, change: dict[str, Any], tmp_path: Path
) -> None:
    model = METRICS[name]().fit(X, Y)
    model.save(tmp_path / "model.evergrow")
    before = (tmp_path / "model.evergrow").read_bytes()
    with pytest.raises(ValueError, match=next(iter(change)).split("__")[-1]):
        model.set_params(**change).save(tmp_path / "model.evergrow")
    assert (tmp_path / "model.evergrow").read_bytes() == before
