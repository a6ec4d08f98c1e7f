"""Pipelines in model files: the same predictions, and closed to all that is not listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

import evergrow
from evergrow import NCMClassifier, NCMForestClassifier, NCMMetric, RLSClassifier
from evergrow.storage.models.format import read_model
from tests.estimators import model_files

X, Y = (part[:300] for part in load_digits(return_X_y=True))
X = X + np.random.default_rng(0).normal(size=X.shape)


def svm(**options: Any) -> LinearSVC:
    return LinearSVC(max_iter=50, tol=1.0, random_state=0, **options)


PIPELINES: dict[str, Any] = {
    "scaler and means": make_pipeline(StandardScaler(), NCMClassifier()),
    "scaler without mean": make_pipeline(StandardScaler(with_mean=False), NCMClassifier()),
    "scaler without scale": make_pipeline(StandardScaler(with_std=False), NCMClassifier()),
    "norm and forest": make_pipeline(
        Normalizer("l1"), NCMForestClassifier(3, standardize=True, random_state=0)
    ),
    "projection": make_pipeline(PCA(9), RLSClassifier(random_state=0)),
    "whitening": make_pipeline(PCA(0.8, whiten=True, svd_solver="full"), svm()),
    "random projection": make_pipeline(PCA(5, svd_solver="randomized", random_state=0), svm()),
    "metric": make_pipeline(NCMMetric(4, max_iter=2, random_state=0), svm(fit_intercept=False)),
    "nested": make_pipeline(make_pipeline(StandardScaler(), PCA(4)), "passthrough", svm()),
}
every_pipeline = pytest.mark.parametrize("name", PIPELINES)


def answers(model: Any, rows: Any) -> Any:
    method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    return getattr(model, method)(rows)


@every_pipeline
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loaded_pipeline_answers_bit_for_bit_the_same(
    name: str, dtype: Any, tmp_path: Path
) -> None:
    rows = X.astype(dtype)
    model = PIPELINES[name].fit(rows, Y)
    loaded = model_files.reload(model, tmp_path)
    np.testing.assert_array_equal(answers(loaded, rows), answers(model, rows))
    np.testing.assert_array_equal(answers(loaded, rows[:3]), answers(model, rows[:3]))
    assert str(loaded.get_params()) == str(model.get_params())


def test_names_of_features_survive(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    loaded = model_files.reload(make_pipeline(StandardScaler(), svm()).fit(frame, Y), tmp_path)
    assert loaded.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[list("dcba")])


def test_a_scaler_that_saw_gaps_goes_on_as_without_saving(tmp_path: Path) -> None:
    rows = X[:, :3].copy()
    rows[0, 1] = np.nan
    scaler = StandardScaler().fit(rows)
    loaded = model_files.reload(scaler, tmp_path)
    for one in (scaler, loaded):
        one.partial_fit(X[:50, :3])
    np.testing.assert_array_equal(loaded.transform(X[:, :3]), scaler.transform(X[:, :3]))


class Scaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            make_pipeline(MinMaxScaler(), NCMClassifier()),
            "step 'minmaxscaler'.* MinMaxScaler .*PCA",
        ),
        (make_pipeline(Scaler(), NCMClassifier()), "step 'scaler'.* Scaler cannot be saved.*PCA"),
        (RandomForestClassifier(2), "RandomForestClassifier cannot be saved"),
        (svm(class_weight={0: 2.0}), "class_weight of LinearSVC cannot be saved"),
    ],
)
def test_a_model_that_is_not_listed_is_refused_by_name(
    model: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match=message):
        evergrow.save(model.fit(X, Y), tmp_path / "model.evergrow")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", [StandardScaler(), Normalizer(), NCMMetric()])
def test_what_has_learnt_nothing_cannot_be_saved(step: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        evergrow.save(Pipeline([("step", step)]), tmp_path / "model.evergrow")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.evergrow"
    rows = X[:, :6]
    evergrow.save(make_pipeline(StandardScaler(), PCA(3), svm()).fit(rows, Y), path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("0/mean_", model_files.at(0, np.nan)),
        model_files.forge("0/mean_", lambda a: a[1:]),
        model_files.forge("0/mean_", lambda a: a.astype(np.int64)),
        model_files.forge("0/mean_", None),
        model_files.forge("0/scale_", model_files.at(0, 0.0)),
        model_files.forge("0/scale_", None),
        model_files.forge("0/var_", model_files.at(0, -1.0)),
        model_files.forge("1/components_", lambda a: a[:, 1:].copy()),
        model_files.forge("1/components_", lambda a: a[1:].copy()),
        model_files.forge("1/components_", lambda a: a[:0].copy()),
        model_files.forge("1/components_", model_files.at(0, np.inf)),
        model_files.forge("1/components_", lambda a: a[0].copy()),
        model_files.forge("1/mean_", None),
        model_files.forge("1/explained_variance_", model_files.at(0, -1.0)),
        model_files.forge("2/coef_", lambda a: a[1:].copy()),
        model_files.forge("2/coef_", lambda a: a[:, 1:].copy()),
        model_files.forge("2/coef_", model_files.at(0, np.nan)),
        model_files.forge("2/intercept_", lambda a: a[1:].copy()),
        model_files.forge("2/intercept_", None),
    ],
)
def test_an_array_that_does_not_fit_is_refused(saved: Path, change: model_files.Change) -> None:
    model_files.check_refused(saved, change)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("steps", None),
        ("steps", []),
        ("steps", {"a": 1}),
        ("steps/0/0", "pca"),
        ("steps/0/0", "a__b"),
        ("steps/0/0", "memory"),
        ("steps/0/0", ""),
        ("steps/0/0", 7),
        ("steps/0/1", "passthrough"),
        ("steps/0/1", {}),
        ("steps/0/1/estimator", "MinMaxScaler"),
        ("steps/0/1/estimator", "LinearSVC"),
        ("steps/0/1/parameters", {"nobody": 1}),
        ("steps/0/1/parameters/with_mean", "yes"),
        ("steps/0/1/n_features", 5),
        ("steps/0/1/n_features", -1),
        ("steps/0/1/n_features", "6"),
        ("steps/0/1/numbers", None),
        ("steps/0/1/numbers/n_samples_seen_", -3),
        ("steps/0/1/numbers/n_samples_seen_", "many"),
        ("steps/0/1/by_columns", [["mean_"]]),
        ("steps/0/1/by_columns", None),
        ("steps/0/1/feature_names", ["a"]),
        ("steps/1/1/parameters/n_components", "all"),
        ("steps/1/1/numbers/n_samples_", 0.5),
        ("steps/1/1/numbers/noise_variance_", float("nan")),
        ("steps/2/1/classes", None),
        ("steps/2/1/classes/values", [0, 1, 2]),
        ("steps/2/1/classes/values", [0]),
        ("parameters", {"memory": "/tmp", "verbose": False}),
        ("parameters", {"verbose": 1}),
    ],
)
def test_a_header_that_does_not_fit_is_refused(saved: Path, path: str, value: Any) -> None:
    model_files.check_refused(saved, model_files.forge(path, value))


def test_steps_must_fit_each_other(saved: Path, tmp_path: Path) -> None:
    evergrow.save(make_pipeline(PCA(4), svm()).fit(X[:, :6], Y), tmp_path / "other.evergrow")
    other, arrays = read_model(tmp_path / "other.evergrow")

    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["steps"][1][1] = other["steps"][0][1]
        tensors |= {f"1/{name[2:]}": array for name, array in arrays.items() if name[0] == "0"}

    model_files.check_refused(saved, change, "takes 3 features, the one before it gives 4")


def test_a_classifier_cannot_stand_before_the_end(saved: Path) -> None:
    last = ["last", None]
    model_files.check_refused(
        saved, lambda header, _: header["steps"].append(last), "cannot transform"
    )


def test_pipelines_inside_each_other_without_end_are_refused(saved: Path) -> None:
    def nest(header: dict[str, Any], _: dict[str, Any]) -> None:
        for _ in range(300):
            header["steps"] = [["a", dict(header)]]

    model_files.check_refused(saved, nest)
