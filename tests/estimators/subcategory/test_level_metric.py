"""Metrics that learn from one level of labels, alone and in pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import evergrow
from evergrow import ModelFileError, NCMMetric
from evergrow.estimators import LevelMetric
from evergrow.storage.models.format import read_model, write_model
from tests.estimators.subcategory.levels import coarse_only, hidden, samples, small


@parametrize_with_checks([LevelMetric(NCMMetric(max_iter=5, random_state=0), level="coarse")])
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_fine_metric_learns_from_samples_with_a_fine_label() -> None:
    X, Y = samples(200)
    given = hidden(Y)
    known = given[:, 1] >= 0
    expected = NCMMetric(2, random_state=0).fit(X[known], Y[known, 1])
    metric = LevelMetric(NCMMetric(2, random_state=0)).fit(X, given)
    np.testing.assert_array_equal(metric.metric_.components_, expected.components_)


def test_the_coarse_metric_learns_from_all_coarse_labels() -> None:
    X, Y = samples(200)
    expected = NCMMetric(2, random_state=0).fit(X, Y[:, 0])
    metric = LevelMetric(NCMMetric(2, random_state=0), level="coarse").fit(X, hidden(Y))
    np.testing.assert_array_equal(metric.transform(X), expected.transform(X))


@pytest.mark.parametrize("level", ["fine", "coarse"])
def test_a_pipeline_with_a_metric_is_fitted_with_both_levels_and_saved(
    level: Any, tmp_path: Path
) -> None:
    X, Y = samples(300)
    X = np.hstack([X, 30 * np.random.default_rng(0).normal(size=(300, 5))])
    metric = LevelMetric(NCMMetric(3, random_state=0), level=level)
    pipeline = make_pipeline(metric, small()).fit(X[:200], hidden(Y[:200]))
    bare = small(standardize="none").fit(X[:200], hidden(Y[:200]))
    assert pipeline.score(X[200:], Y[200:]) > bare.score(X[200:], Y[200:])
    evergrow.save(pipeline, tmp_path / "pipeline.evergrow")
    loaded = evergrow.load(tmp_path / "pipeline.evergrow")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert loaded[0].get_params(deep=False)["level"] == level
    assert loaded[0].metric.get_params() == metric.metric.get_params()


def test_names_of_features_come_out_numbered() -> None:
    X, Y = samples(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    metric = LevelMetric(NCMMetric(2)).set_output(transform="pandas").fit(frame, Y)
    assert metric.transform(frame).columns.tolist() == ["levelmetric0", "levelmetric1"]


def test_a_flat_list_of_fine_labels_needs_a_hierarchy() -> None:
    X, Y = samples(60)
    flat = [f"f{f}" for f in Y[:, 1]]
    metric = LevelMetric(NCMMetric(2, random_state=0))
    with pytest.raises(ValueError, match="give two columns"):
        metric.fit(X, flat)
    metric.fit(X, flat, hierarchy={f"f{f}": f"c{f // 3}" for f in range(12)})
    assert metric.transform(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "both"}, r"level must be one of \['coarse', 'fine'\], got 'both'"),
        ({"metric": "learnt"}, "metric must be None or a transformer such as NCMMetric"),
        ({"metric": NCMMetric}, "metric must be None or a transformer"),
    ],
)
def test_wrong_parameters_are_refused(options: Any, message: str) -> None:
    X, Y = samples(60)
    with pytest.raises(ValueError, match=message):
        LevelMetric(**options).fit(X, Y)


def test_fine_labels_that_are_all_missing_are_refused() -> None:
    X, Y = samples(60)
    with pytest.raises(ValueError, match=r"level='fine' needs fine labels.*use level='coarse'"):
        LevelMetric().fit(X, coarse_only(Y))
    with pytest.raises(NotFittedError):
        LevelMetric().transform(X)


def test_only_metrics_that_load_finds_are_saved(tmp_path: Path) -> None:
    X, Y = samples(60)
    path = tmp_path / "metric.evergrow"
    with pytest.raises(TypeError, match="with metric=PCA cannot be saved"):
        LevelMetric(PCA(2)).fit(X, Y).save(path)
    with pytest.raises(TypeError, match="with metric=ERCForest cannot be saved"):
        LevelMetric(evergrow.ERCForest(2, random_state=0)).fit(X, Y).save(path)
    LevelMetric(NCMMetric(2)).fit(X, Y).save(path)
    for change in ({"metric": None}, {"parameters": {}}, {"parameters": {"level": 3}}):
        header, tensors = read_model(path)
        write_model(tmp_path / "hostile", {**header, **change}, tensors)
        with pytest.raises(ModelFileError):
            evergrow.load(tmp_path / "hostile")
