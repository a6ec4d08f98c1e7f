"""Model files of class means and metrics: exact, and damaged or hostile files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evergrow import NCMClassifier, NCMMetric
from tests.estimators.means.cases import METRICS, blobs, quick_metric
from tests.estimators.model_files import (
    check_refused,
    drop,
    edit,
    edit_part,
    put,
    put_first,
    reload,
)

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


HOSTILE = {
    "no sums": ("euclidean", drop("class_sums")),
    "sums not finite": ("euclidean", put_first("class_sums", np.nan)),
    "sums beyond all examples": ("euclidean", put_first("class_sums", 1e300)),
    "sums of single precision": ("euclidean", put("class_sums", np.zeros((4, 5), np.float32))),
    "sums of too few classes": ("euclidean", put("class_sums", np.zeros((3, 5)))),
    "no features": ("euclidean", put("class_sums", np.zeros((4, 0)))),
    "sums without rows": ("euclidean", put("class_sums", np.zeros(20))),
    "weights below nothing": ("euclidean", put_first("class_weights", -1.0)),
    "weights too few": ("euclidean", put("class_weights", np.ones(3))),
    "examples without weight": ("euclidean", put_first("class_weights", 0.0)),
    "weight without examples": ("euclidean", put_first("class_examples", 0)),
    "examples below nothing": ("euclidean", put_first("class_examples", -3)),
    "examples not counted": ("euclidean", put("class_examples", np.ones(4))),
    "squares below nothing": ("euclidean", put_first("class_squares", -1.0)),
    "squares not finite": ("euclidean", put_first("class_squares", np.inf)),
    "no examples at all": (
        "euclidean",
        lambda _, tensors: tensors.update({name: 0 * tensors[name] for name in tensors}),
    ),
    "no gram": ("mahalanobis", drop("gram")),
    "gram not asked for": ("euclidean", put("gram", np.zeros(15))),
    "gram too small": ("mahalanobis", put("gram", np.zeros(14))),
    "gram not finite": ("mahalanobis", put_first("gram", np.nan)),
    "gram below nothing": ("mahalanobis", put_first("gram", -1.0)),
    "grams not asked for": ("mahalanobis", put("class_grams", np.zeros((4, 15)))),
    "no grams": ("mahalanobis per class", drop("class_grams")),
    "grams of too few classes": ("mahalanobis per class", put("class_grams", np.zeros((3, 15)))),
    "no classes": ("euclidean", edit(classes=None)),
    "too many classes": (
        "euclidean",
        edit(classes={"dtype": "<i8", "values": [0, 1, 2, 3, 4]}),
    ),
    "names of the wrong number": ("euclidean", edit(feature_names=["a"])),
    "an unknown metric": ("euclidean", edit_part("parameters", metric="cosine")),
    "a metric that was not learnt": ("euclidean", edit_part("parameters", metric="mahalanobis")),
    "a parameter out of range": ("mahalanobis", edit_part("parameters", shrinkage=7.0)),
    "an unknown parameter": ("euclidean", edit_part("parameters", speed=1)),
    "parameters of no kind": ("euclidean", edit(parameters=[1])),
    "a metric of no kind": ("learnt", edit_part("parameters", metric={"estimator": "os.system"})),
    "a metric within itself": (
        "learnt",
        edit_part("parameters", metric={"estimator": "NCMClassifier", "parameters": {}}),
    ),
    "a metric with a parameter out of range": (
        "learnt",
        edit_part("parameters", metric={"estimator": "NCMMetric", "parameters": {"max_iter": -1}}),
    ),
    "a metric with an unknown parameter": (
        "learnt",
        edit_part("parameters", metric={"estimator": "NCMMetric", "parameters": {"speed": 1}}),
    ),
    "no learnt metric": ("learnt", edit(metric=None)),
    "a learnt metric not asked for": ("learnt", edit_part("parameters", metric="euclidean")),
    "a learnt metric that is a forest": (
        "learnt",
        edit_part("metric", estimator="NCMForestClassifier"),
    ),
    "a learnt metric that is a list": ("learnt", edit(metric=[1])),
    "a learnt metric without parameters": ("learnt", edit_part("metric", parameters=None)),
    "a learnt metric of other features": ("learnt", put("metric.components", np.ones((2, 4)))),
    "a learnt metric not finite": ("learnt", put_first("metric.components", np.inf)),
    "a learnt metric beyond all features": ("learnt", put_first("metric.components", 1e150)),
    "a learnt metric that gives no numbers": (
        "learnt",
        put("metric.components", np.full((2, 5), 1e139)),
    ),
    "a learnt metric without components": ("learnt", drop("metric.components")),
    "an empty metric": ("learnt", put("metric.components", np.ones((0, 5)))),
    "no likelihoods": ("learnt", drop("metric.log_likelihoods")),
    "likelihoods of no epoch": ("learnt", put("metric.log_likelihoods", np.ones(0))),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_with_a_valid_checksum_is_refused(case: str, tmp_path: Path) -> None:
    name, change = HOSTILE[case]
    reload(METRICS[name]().fit(X, Y), tmp_path)
    check_refused(tmp_path / "model.evergrow", change)


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
