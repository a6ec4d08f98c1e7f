"""What is in a file besides the answers, and models that cannot be exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import evergrow
from evergrow import (
    ImageClassifier,
    InvalidInputError,
    InvalidTypeError,
    NCMClassifier,
    NCMForestClassifier,
)
from evergrow.export import save_onnx, to_onnx
from evergrow.export.onnx import graph
from evergrow.export.onnx.comparison import OnnxAnswers
from evergrow.vision.embedding.model_zoo import PRETRAINED

X = np.eye(4, dtype=np.float32).repeat(30, axis=0) + np.random.default_rng(0).normal(
    0, 0.1, (120, 4)
).astype(np.float32)
Y = np.arange(4).repeat(30)


def metadata(content: bytes) -> dict[str, Any]:
    found = onnx.load_model_from_string(content).metadata_props
    return {one.key: json.loads(one.value) for one in found}


LABELS: dict[str, tuple[list[Any], str]] = {
    "strings": (["a", "b", "c", "d"], "string"),
    "quotes and unicode": (['say "no"', "it's\n", "猫 \U0001f408", "<b>&amp;"], "string"),
    "a lone surrogate": (["\ud800", "b", "c", "d"], "string"),
    "integers": ([-3, 0, 7, 2**53 + 1], "integer"),
    "floats": ([0.0, 1.0, 2.0, 4.0], "float"),
}


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_classes_that_json_cannot_hold_are_refused(unit: str) -> None:
    days = np.datetime64("2026-01-01", unit) + np.arange(4).astype(f"timedelta64[{unit}]")
    with pytest.raises(InvalidTypeError, match=r"datetime64.*cannot be exported"):
        to_onnx(NCMClassifier().fit(X, days[Y]))


@pytest.mark.parametrize("name", LABELS)
def test_classes_of_any_type_are_in_the_metadata(name: str, tmp_path: Path) -> None:
    labels, kind = LABELS[name]
    model = NCMClassifier().fit(X, np.array(labels)[Y])
    save_onnx(model, tmp_path / "model.onnx")
    answers = OnnxAnswers(tmp_path / "model.onnx")
    assert answers.metadata["class_type"] == kind
    assert answers.classes == model.classes_.tolist()
    assert [type(one) for one in answers.classes] == [type(one) for one in labels]


def test_version_networks_hashes_and_licences_are_in_the_metadata() -> None:
    images = [np.full((9, 9, 3), 30 * k, np.uint8) for k in range(6)]
    model = ImageClassifier("embed", "means").fit(images, ["dark"] * 3 + ["bright"] * 3)
    found = metadata(to_onnx(model, weights="int8"))
    assert found["evergrow.version"] == evergrow.__version__
    assert found["evergrow.weights"] == "int8"
    assert len(found["evergrow.graph_sha256"]) == 64
    (network,) = found["evergrow.networks"]
    known = PRETRAINED["efficientnet-lite0"]
    assert (network["name"], network["licence"]) == ("efficientnet-lite0", "Apache-2.0")
    assert network["sha256"] == known.weights_sha256()
    assert network["preprocessing"] == known.preprocessing.to_json()
    assert list(network["blocks"].values()) == [1280]


def test_a_step_of_another_kind_is_refused() -> None:
    model = make_pipeline(MinMaxScaler(), NCMClassifier()).fit(X, Y)
    with pytest.raises(InvalidTypeError, match="the step MinMaxScaler cannot be exported, only"):
        to_onnx(model)


@pytest.mark.parametrize("model", [NCMClassifier(), ImageClassifier(), NCMForestClassifier()])
def test_a_model_that_is_not_fitted_is_refused(model: Any) -> None:
    with pytest.raises(NotFittedError):
        to_onnx(model)


@pytest.mark.parametrize("model", [3, "model.evergrow", None, NCMClassifier])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(InvalidTypeError, match="cannot be exported"):
        to_onnx(model)


def test_unknown_weights_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="weights must be one of"):
        to_onnx(NCMClassifier().fit(X, Y), weights="int4")  # type: ignore[arg-type]


def test_a_model_of_more_than_two_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_MAX_BYTES", 1000)
    with pytest.raises(InvalidInputError, match="two gigabytes"):
        to_onnx(NCMForestClassifier(5, random_state=0).fit(X, Y))


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    with pytest.raises(InvalidTypeError):
        save_onnx(LogisticRegression().fit(X, Y), path)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]
