"""Metrics that learn from one level of labels, alone and in pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import evergrow
from evergrow import ModelFileError, NCMMetric
from evergrow.storage.models.format import read_model, write_model
from tests.estimators.subcategory.levels import coarse_only, hidden, samples, small


def test_the_fine_metric_learns_from_samples_with_a_fine_label() -> None:
    X, Y = samples(200)
    given = hidden(Y)
    known = given[:, 1] >= 0
    expected = NCMMetric(2, random_state=0).fit(X[known], Y[known, 1])
    metric = NCMMetric(2, level="fine", random_state=0).fit(X, given)
    np.testing.assert_array_equal(metric.components_, expected.components_)


def test_the_coarse_metric_learns_from_all_coarse_labels() -> None:
    X, Y = samples(200)
    expected = NCMMetric(2, random_state=0).fit(X, Y[:, 0])
    metric = NCMMetric(2, level="coarse", random_state=0).fit(X, hidden(Y))
    np.testing.assert_array_equal(metric.transform(X), expected.transform(X))


@pytest.mark.parametrize("level", ["fine", "coarse"])
def test_a_pipeline_with_a_metric_is_fitted_with_both_levels_and_saved(
    level: Any, tmp_path: Path
) -> None:
    X, Y = samples(300)
    X = np.hstack([X, 30 * np.random.default_rng(0).normal(size=(300, 5))])
    metric = NCMMetric(3, level=level, random_state=0)
    pipeline = make_pipeline(metric, small()).fit(X[:200], hidden(Y[:200]))
    bare = small(standardize="none").fit(X[:200], hidden(Y[:200]))
    assert pipeline.score(X[200:], Y[200:]) > bare.score(X[200:], Y[200:])
    evergrow.save(pipeline, tmp_path / "pipeline.evergrow")
    loaded = evergrow.load(tmp_path / "pipeline.evergrow")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert loaded[0].get_params() == metric.get_params()


def test_names_of_features_come_out_numbered() -> None:
    X, Y = samples(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    metric = NCMMetric(2, level="fine").set_output(transform="pandas").fit(frame, Y)
    assert metric.transform(frame).columns.tolist() == ["ncmmetric0", "ncmmetric1"]


def test_a_flat_list_of_fine_labels_needs_a_hierarchy() -> None:
    X, Y = samples(60)
    flat = [f"f{f}" for f in Y[:, 1]]
    metric = NCMMetric(2, level="fine", random_state=0)
    with pytest.raises(ValueError, match="give two columns"):
        metric.fit(X, flat)
    metric.fit(X, flat, hierarchy={f"f{f}": f"c{f // 3}" for f in range(12)})
    assert metric.transform(X).shape == (60, 2)


def test_the_level_of_a_loaded_metric_is_checked(tmp_path: Path) -> None:
    X, Y = samples(60)
    NCMMetric(2, level="fine").fit(X, Y).save(tmp_path / "metric.evergrow")
    header, tensors = read_model(tmp_path / "metric.evergrow")
    header["parameters"]["level"] = 3
    write_model(tmp_path / "hostile", header, tensors)
    with pytest.raises(ModelFileError, match="level must be"):
        evergrow.load(tmp_path / "hostile")


def test_weights_count_only_on_the_level() -> None:
    X, Y = samples(200)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], 200)
    given = hidden(Y)
    known = given[:, 1] >= 0
    expected = NCMMetric(2, random_state=0).fit(X[known], Y[known, 1], weights[known])
    metric = NCMMetric(2, level="fine", random_state=0).fit(X, given, weights)
    np.testing.assert_array_equal(metric.components_, expected.components_)


def test_a_level_and_its_labels_are_checked() -> None:
    X, Y = samples(60)
    with pytest.raises(ValueError, match=r"level must be None or one of \['coarse', 'fine'\], got"):
        NCMMetric(level="both").fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"level='fine' needs fine labels.*use level='coarse'"):
        NCMMetric(level="fine").fit(X, coarse_only(Y))
    half = np.vstack([Y[:30], coarse_only(Y[30:])])
    with pytest.raises(ValueError, match="all examples with a fine class have a weight of 0"):
        NCMMetric(level="fine").fit(X, half, sample_weight=np.arange(60) >= 30)
    with pytest.raises(ValueError, match="hierarchy is only for level='fine' and level='coarse'"):
        NCMMetric().fit(X, Y[:, 0], hierarchy={0: 0})
