"""Evergrow's models in MLflow: logged, loaded, served, and without pickle."""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evergrow
from evergrow import (
    AxisForestClassifier,
    Embedder,
    ERCForest,
    ImageClassifier,
    LinearForestClassifier,
    ModelFileError,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SubcategoryForestClassifier,
    SVMForestClassifier,
)
from evergrow.vision import OnnxModel
from tests.vision.classifier.pictures import encode_png, pictures
from tests.vision.embedding.models import onnx_model

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
mlflow = pytest.importorskip("mlflow")
pytest.importorskip("skops")

import evergrow.mlflow  # noqa: E402
from evergrow.integrations.skops import trusted_types  # noqa: E402

X, Y = load_digits(return_X_y=True)
X, Y = X[:300], Y[:300]
NAMES = np.array([f"digit {k}" for k in range(10)])
IMAGES, COLOURS = pictures("red", "green", "blue")
PNGS = [encode_png(image) for image in IMAGES]
FILES = {
    "MLmodel",
    "conda.yaml",
    "model.evergrow",
    "python_env.yaml",
    "registered_model_meta",
    "requirements.txt",
}


def embedder() -> Embedder:
    return Embedder(OnnxModel(onnx_model().SerializeToString()), cache=False)


# Every estimator of the package, fitted.
MODELS: dict[str, Callable[[], Any]] = {
    "AxisForestClassifier": lambda: AxisForestClassifier(3, random_state=0).fit(X, Y),
    "ERCForest": lambda: ERCForest(3, n_words=20, random_state=0).fit(X, Y),
    "Embedder": lambda: embedder().fit(PNGS),
    "ImageClassifier": lambda: ImageClassifier(embedder(), "means").fit(PNGS, COLOURS),
    "LinearForestClassifier": lambda: LinearForestClassifier(3, random_state=0).fit(X, Y),
    "NCMClassifier": lambda: NCMClassifier(metric="mahalanobis").fit(X, NAMES[Y]),
    "NCMForestClassifier": lambda: NCMForestClassifier(3, random_state=0).fit(X, NAMES[Y]),
    "NCMMetric": lambda: NCMMetric(4, max_iter=3, random_state=0).fit(X, Y),
    "RLSClassifier": lambda: RLSClassifier(random_state=0).fit(X, Y),
    "RejectingClassifier": lambda: RejectingClassifier(NCMClassifier()).fit(X, NAMES[Y]),
    "SVMForestClassifier": lambda: SVMForestClassifier(3, random_state=0).fit(X, Y),
    "SubcategoryForestClassifier": lambda: SubcategoryForestClassifier(3, random_state=0).fit(
        X, np.column_stack([Y // 2, Y])
    ),
}
IN_IMAGES = ("Embedder", "ImageClassifier")


@cache
def fitted(name: str) -> Any:
    return MODELS[name]()


def asked(name: str) -> Any:
    return PNGS if name in IN_IMAGES else X[:20]


def answer(name: str, model: Any) -> Any:
    return (model.predict if hasattr(model, "predict") else model.transform)(asked(name))


@pytest.fixture(scope="module", autouse=True)
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("mlflow")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    number = mlflow.create_experiment("tests", (folder / "artifacts").as_uri())
    mlflow.set_experiment(experiment_id=number)
    yield
    mlflow.set_tracking_uri(before)


@cache
def logged(name: str) -> str:
    with mlflow.start_run():
        return str(evergrow.mlflow.log_model(fitted(name)).model_uri)


every_estimator = pytest.mark.parametrize("name", MODELS)


def test_every_estimator_of_the_package_is_here() -> None:
    public = [getattr(evergrow, name) for name in evergrow.__all__]
    assert set(MODELS) == {each.__name__ for each in public if hasattr(each, "fit")}


@every_estimator
def test_a_loaded_model_gives_the_same_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, expected = logged(name), answer(name, fitted(name))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was unpickled")

    for function in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, function, refuse)
    np.testing.assert_array_equal(answer(name, evergrow.mlflow.load_model(uri)), expected)
    served = mlflow.pyfunc.load_model(uri)
    given = pd.DataFrame({"image": PNGS}) if name in IN_IMAGES else X[:20]
    np.testing.assert_array_equal(served.predict(given), expected)


@every_estimator
def test_the_artefact_is_the_model_file_and_text(name: str) -> None:
    folder = Path(mlflow.artifacts.download_artifacts(logged(name)))
    assert {path.name for path in folder.rglob("*")} <= FILES
    for path in folder.iterdir():
        if path.name != "model.evergrow":
            path.read_text(encoding="utf-8")
    loaded = evergrow.load(folder / "model.evergrow", expect=type(fitted(name)))
    np.testing.assert_array_equal(answer(name, loaded), answer(name, fitted(name)))


@every_estimator
def test_a_served_model_gives_the_same_answers(name: str) -> None:
    from fastapi.testclient import TestClient
    from mlflow.pyfunc import scoring_server

    with TestClient(scoring_server.init(mlflow.pyfunc.load_model(logged(name)))) as client:
        reply = client.post("/invocations", json=_request(name))
    assert reply.status_code == 200, reply.text
    np.testing.assert_array_equal(reply.json()["predictions"], answer(name, fitted(name)))


def _request(name: str) -> dict[str, Any]:
    if name not in IN_IMAGES:
        return {"inputs": X[:20].tolist()}
    rows = [[base64.b64encode(png).decode()] for png in PNGS]
    return {"dataframe_split": {"columns": ["image"], "data": rows}}


@pytest.mark.parametrize("name", ["NCMForestClassifier", "ImageClassifier"])
def test_the_command_of_mlflow_predicts(name: str, tmp_path: Path) -> None:
    evergrow.mlflow.save_model(fitted(name), tmp_path / "model")
    asks, tells = tmp_path / "asked.json", tmp_path / "told.json"
    asks.write_text(json.dumps(_request(name)), encoding="utf-8")
    command = [sys.executable, "-m", "mlflow", "models", "predict", "--env-manager", "local"]
    command += ["-m", str(tmp_path / "model"), "-i", str(asks), "-o", str(tells), "-t", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(tells.read_text(encoding="utf-8"))["predictions"]
    np.testing.assert_array_equal(found, answer(name, fitted(name)))


@every_estimator
def test_the_flavour_of_scikit_learn_takes_it_with_skops(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    options = {"serialization_format": "skops", "skops_trusted_types": trusted_types()}
    mlflow.sklearn.save_model(model, tmp_path / "model", pip_requirements=["evergrow"], **options)
    assert not list(tmp_path.rglob("*.pkl"))
    loaded = mlflow.sklearn.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(answer(name, loaded), answer(name, model))


def test_a_logged_model_learns_on() -> None:
    model = evergrow.mlflow.load_model(logged("RLSClassifier"))
    assert model.partial_fit(X[:5] + 9, [99] * 5).classes_.tolist() == [*range(10), 99]


def test_a_pipeline_is_logged_with_its_steps() -> None:
    model = make_pipeline(StandardScaler(), NCMClassifier()).fit(X, Y)
    with mlflow.start_run():
        uri = evergrow.mlflow.log_model(model).model_uri
    loaded = mlflow.pyfunc.load_model(uri)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_probabilities_are_served_if_they_are_asked_for(tmp_path: Path) -> None:
    model = fitted("NCMClassifier")
    evergrow.mlflow.save_model(model, tmp_path / "model", pyfunc_predict_fn="predict_proba")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X[:9]), model.predict_proba(X[:9]))


def test_named_features_are_in_the_signature_and_are_checked(tmp_path: Path) -> None:
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = NCMClassifier().fit(table, Y)
    evergrow.mlflow.save_model(model, tmp_path / "model", input_example=table[:2])
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert loaded.metadata.get_input_schema().input_names() == ["a", "b", "c"]
    # MLflow brings columns into the order of the signature.
    np.testing.assert_array_equal(loaded.predict(table[["c", "a", "b"]]), model.predict(table))
    with pytest.raises(mlflow.MlflowException, match="missing inputs"):
        loaded.predict(table[["a"]])


def test_metrics_are_those_of_evaluate() -> None:
    model = RejectingClassifier(RLSClassifier(random_state=0), random_state=0).fit(X, Y)
    with mlflow.start_run() as run:
        found = evergrow.mlflow.log_evaluation(model, X, Y, prefix="train_")
    stored = mlflow.get_run(run.info.run_id).data.metrics
    assert stored == found
    answers = model.predict(X)
    assert found["train_accuracy"] == (answers == Y).mean()
    assert found["train_n_rejected"] == (answers == -1).sum() > 0
    recalls = [(answers[k == Y] == k).mean() for k in range(10)]
    assert found["train_mean_class_accuracy"] == pytest.approx(np.mean(recalls))
    with mlflow.start_run():
        ranked = evergrow.mlflow.log_evaluation(fitted("RLSClassifier"), X, Y)
    assert ranked["accuracy"] < ranked["top5"] <= 1.0


@pytest.mark.parametrize("data", [["/etc/passwd"], [np.zeros((4, 4, 3))]])
def test_served_images_are_bytes_and_never_names_of_files(data: Any) -> None:
    folder = mlflow.artifacts.download_artifacts(logged("ImageClassifier"))
    served = evergrow.mlflow._load_pyfunc(f"{folder}/model.evergrow")
    with pytest.raises(TypeError, match="images must be bytes"):
        served.predict(pd.DataFrame({"image": data}))
    with pytest.raises(ValueError, match="one column of bytes, got 2"):
        served.predict(pd.DataFrame({"image": PNGS[:1], "other": PNGS[:1]}))


def test_options_of_load_reach_it() -> None:
    with pytest.raises(ModelFileError, match="expected is RLSClassifier"):
        evergrow.mlflow.load_model(logged("NCMClassifier"), expect=RLSClassifier)
    with pytest.raises(ModelFileError, match="contains a network"):
        evergrow.mlflow.load_model(logged("Embedder"), networks=False)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (LogisticRegression(), {}, TypeError, "must be an estimator of Evergrow"),
        (NCMClassifier(), {}, ValueError, "not fitted"),
        (NCMMetric(), {"pyfunc_predict_fn": "predict"}, ValueError, "must be one of"),
        (make_pipeline(KernelPCA(2), NCMClassifier()).fit(X, Y), {}, TypeError, "KernelPCA"),
        (fitted("RLSClassifier"), {"input_example": object()}, Exception, "Expected one of"),
    ],
)
def test_what_cannot_be_logged_is_refused_and_nothing_is_left(
    model: Any, options: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        evergrow.mlflow.save_model(model, tmp_path / "model", **options)
    assert not (tmp_path / "model").exists()
