"""The ending of a file chooses the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import evergrow
from evergrow import InvalidInputError, NCMClassifier
from evergrow.export import save_as

MODEL = NCMClassifier().fit(np.eye(3, dtype=np.float32), ["a", "b", "c"])


def test_the_ending_chooses_the_format(tmp_path: Path) -> None:
    save_as(MODEL, tmp_path / "model.evergrow")
    save_as(MODEL, tmp_path / "model.ONNX")
    assert evergrow.load(tmp_path / "model.evergrow").classes_.tolist() == ["a", "b", "c"]
    assert onnx.load(tmp_path / "model.ONNX").producer_name == "evergrow"


@pytest.mark.parametrize("name", ["model", "model.onnxx", "model.onnx.zip"])
def test_another_ending_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must end in \.evergrow or \.html or \.onnx"):
        save_as(MODEL, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "weights", "says"),
    [
        ("model.evergrow", "int8", "only files that end in .html or .onnx contain the weights"),
        ("model.onnx", "int3", "weights must be one of"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    name: str, weights: Any, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        save_as(MODEL, tmp_path / name, weights=weights)
    assert not list(tmp_path.iterdir())
