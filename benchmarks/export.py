"""ONNX files next to the models they were exported from: size, and time of a prediction."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Array, image_features, mixture
from benchmarks.measure import median_seconds, show_table
from benchmarks.pictures import photographs
from evergrow import (
    AxisForestClassifier,
    ImageClassifier,
    LinearForestClassifier,
    NCMClassifier,
    NCMForestClassifier,
    RejectingClassifier,
    RLSClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import ReLU
from evergrow.export import save_onnx
from evergrow.export.onnx.weights import WEIGHTS, Weights

ROWS_AT_ONCE = 100
# Rows that are also timed one by one.
ROWS_ALONE = 100
FORESTS = (NCMForestClassifier, AxisForestClassifier, LinearForestClassifier, SVMForestClassifier)


class ExportedModel:
    """The file of a model in onnxruntime, on one core."""

    def __init__(self, model: Any, weights: Weights = "float32") -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            save_onnx(model, path, weights=weights)
            self.megabytes = path.stat().st_size / 1e6
            start = time.perf_counter()
            self._session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
            self.loading = time.perf_counter() - start
        self._input = self._session.get_inputs()[0].name

    def milliseconds(self, batches: Iterable[Array]) -> float:
        """Time per row or image."""
        n_inputs, begin = 0, time.perf_counter()
        for batch in batches:
            self._session.run(None, {self._input: batch})
            n_inputs += len(batch)
        return 1e3 * (time.perf_counter() - begin) / n_inputs


def rows(quick: bool) -> None:
    """Models of vectors, one of each kind."""
    data = mixture(1500, 32, 10, n_test=300) if quick else image_features()
    # A fifth of the training data, of all classes.
    X, y = (data.X, data.y) if quick else (data.X[::5], data.y[::5])
    models: dict[str, Any] = {
        "RLSClassifier": RLSClassifier(random_state=0),
        "RLSClassifier, 2000 relu": RLSClassifier(features=ReLU(2000), random_state=0),
        "NCMClassifier": NCMClassifier(),
        "NCMClassifier, mahalanobis": NCMClassifier(metric="mahalanobis"),
        "RejectingClassifier of RLS": RejectingClassifier(
            RLSClassifier(random_state=0), random_state=0
        ),
        **{one.__name__: one(random_state=0, n_jobs=-1) for one in FORESTS},
    }
    table = []
    for name, model in models.items():
        model.fit(X, y)
        exported = ExportedModel(model)
        alone = exported.milliseconds(data.X_test[:ROWS_ALONE, None])
        n = len(data.X_test)
        batched = exported.milliseconds(
            data.X_test[i : i + ROWS_AT_ONCE] for i in range(0, n, ROWS_AT_ONCE)
        )
        library = 1e3 * median_seconds(lambda: model.predict_proba(data.X_test), 1) / n  # noqa: B023
        table.append((name, exported.megabytes, alone, batched, library))
    columns = ["model", "MB", "ms, one row", "ms, 100 rows at once", "library, ms"]
    show_table(f"exported rows: {data.name}; times per row", columns, table)


def images(quick: bool) -> None:
    """A model of photographs, with weights in four, two and one bytes."""
    name, shown, classes = photographs(quick)
    model = ImageClassifier(learner=RLSClassifier(random_state=0), random_state=0)
    model.fit(shown[::2], classes[::2])
    table = []
    for weights in WEIGHTS:
        exported = ExportedModel(model, weights)
        asked = shown[1 : 20 if quick else 600 : 2]
        exported.milliseconds(image[None] for image in asked[:3])
        spent = exported.milliseconds(np.ascontiguousarray(image[None]) for image in asked)
        table.append((weights, exported.megabytes, exported.loading, spent))
    columns = ["weights", "MB", "loading, s", "ms per image"]
    show_table(f"exported images: {name}, about 300 x 200 pixels", columns, table)
