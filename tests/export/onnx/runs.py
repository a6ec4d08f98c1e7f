"""Runs exported models next to the originals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from evergrow import RejectingClassifier
from evergrow.export import to_onnx

Arrays = list[np.ndarray[Any, Any]]


def run(content: bytes, **inputs: np.ndarray[Any, Any]) -> Arrays:
    """All outputs of a model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(content, options).run(None, inputs))


def assert_answers_are_the_same(
    model: Any, rows: Any, tolerance: float = 1e-6, **options: Any
) -> None:
    """Check all outputs of an exported model of vectors."""
    rows = np.asarray(rows, dtype=np.float32)
    index, shares, score, is_unknown = run(to_onnx(model, **options), features=rows)
    assert (index.dtype, shares.dtype, score.dtype, is_unknown.dtype) == ("i8", "f4", "f4", "?")
    rejects = isinstance(model, RejectingClassifier)
    known = model.predict_known(rows) if rejects else model.predict(rows)
    assert model.classes_[index].tolist() == known.tolist()
    np.testing.assert_allclose(shares, model.predict_proba(rows), atol=tolerance)
    if rejects:
        np.testing.assert_allclose(score, model.novelty(rows), rtol=1e-4, atol=1e-5)
        assert is_unknown.tolist() == (~model.is_known(rows)).tolist()
    else:
        assert not score.any()
        assert not is_unknown.any()
