"""What an exported file has lost is measured; files of others are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evergrow import InvalidInputError, NCMClassifier, RejectingClassifier, RLSClassifier
from evergrow.export import compare_onnx, save_onnx
from tests.vision.embedding.models import onnx_model

X = np.eye(4, dtype=np.float32).repeat(30, axis=0)
X = X + np.random.default_rng(0).normal(0, 0.3, X.shape).astype(np.float32)
Y = np.array(["a", "b", "c", "d"]).repeat(30)


def test_a_faithful_file_loses_nothing(tmp_path: Path) -> None:
    model = RejectingClassifier(RLSClassifier(random_state=0), random_state=0).fit(X, Y)
    save_onnx(model, tmp_path / "model.onnx")
    found = compare_onnx(model, tmp_path / "model.onnx", X, Y)
    assert found.n_inputs == len(X)
    assert found.accuracy == found.accuracy_exported == model.score(X, Y) < 1
    assert (found.agreement, found.points_lost) == (1.0, 0.0)
    assert found.largest_difference < 1e-6


def test_a_file_of_another_model_loses_what_it_loses(tmp_path: Path) -> None:
    model = NCMClassifier().fit(X, Y)
    wrong = NCMClassifier().fit(X, np.roll(Y, 30))
    save_onnx(wrong, tmp_path / "model.onnx")
    found = compare_onnx(model, tmp_path / "model.onnx", X, Y)
    assert found.accuracy == model.score(X, Y)
    assert found.accuracy_exported == wrong.score(X, Y)
    assert found.agreement == np.mean(model.predict(X) == wrong.predict(X)) < 0.2


def test_a_file_with_other_classes_is_refused(tmp_path: Path) -> None:
    save_onnx(NCMClassifier().fit(X, Y), tmp_path / "model.onnx")
    model = NCMClassifier().fit(X[:60], Y[:60])
    with pytest.raises(InvalidInputError, match="a model of other classes"):
        compare_onnx(model, tmp_path / "model.onnx", X, Y)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no model", "is not an ONNX file that can be run"),
        (onnx_model().SerializeToString(), "was not written by Evergrow"),
        (None, "no such file"),
    ],
)
def test_a_corrupt_or_foreign_file_is_refused(
    content: bytes | None, says: str, tmp_path: Path
) -> None:
    model = NCMClassifier().fit(X, Y)
    if content is not None:
        (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(InvalidInputError, match=says):
        compare_onnx(model, tmp_path / "model.onnx", X, Y)
