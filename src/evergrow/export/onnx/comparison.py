"""An exported ONNX file next to the model it was made from, on labelled inputs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.export.onnx.graph import import_onnx
from evergrow.export.onnx.model_file import IMAGES, OUTPUTS, PREFIX, ROWS
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import display_name
from evergrow.vision.images.reader import read_image

# Rows that are answered at once: forests take much memory for each.
_ROWS_AT_ONCE = 64
_CLASS_TYPES: dict[str, type] = {
    "boolean": bool,
    "integer": int,
    "float": float,
    "string": str,
}


@dataclass(frozen=True)
class Comparison:
    """Accuracy of an exported file and of its model; the result of :func:`compare_onnx`.

    Attributes
    ----------
    n_inputs : int
        Number of inputs.
    accuracy : float
        Accuracy of the model. The answer "unknown" counts as wrong.
    accuracy_exported : float
        Accuracy of the exported file.
    agreement : float
        Share of inputs for which both give the same answer.
    largest_difference : float
        The largest difference between two probabilities.
    """

    n_inputs: int
    accuracy: float
    accuracy_exported: float
    agreement: float
    largest_difference: float

    @property
    def points_lost(self) -> float:
        """Accuracy that the file has lost, in percentage points."""
        return 100 * (self.accuracy - self.accuracy_exported)


class OnnxAnswers:
    """The answers of a file that :func:`save_onnx` has written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = display_name(path)
        # As in the library, the runtime must not send telemetry.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        runtime = import_onnx("onnxruntime")
        if not os.path.isfile(path):
            raise InvalidInputError(f"no such file: {name}")
        try:
            self._session = runtime.InferenceSession(
                os.fspath(path), providers=["CPUExecutionProvider"]
            )
        # The errors of the runtime have no other common class.
        except Exception as error:
            raise InvalidInputError(
                f"{name} is not an ONNX file that can be run: {error}"
            ) from error
        found = self._session.get_modelmeta().custom_metadata_map
        self.metadata = {
            key.removeprefix(PREFIX): json.loads(value)
            for key, value in found.items()
            if key.startswith(PREFIX)
        }
        names = tuple(one.name for one in self._session.get_outputs())
        if "classes" not in self.metadata or names != OUTPUTS:
            raise InvalidInputError(f"{name} was not written by Evergrow's export")
        self.takes_images = self._session.get_inputs()[0].name == IMAGES

    @property
    def classes(self) -> list[Any]:
        """The classes, in the order of the columns of the probabilities."""
        convert = _CLASS_TYPES[self.metadata["class_type"]]
        return [convert(label) for label in self.metadata["classes"]]

    def run(self, X: Any) -> list[npt.NDArray[Any]]:
        """The four outputs for images, which are read, or for rows."""
        found = [self._session.run(list(OUTPUTS), given) for given in self._inputs(X)]
        if not found:
            raise InvalidInputError("there must be at least one input")
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _inputs(self, X: Any) -> Iterator[dict[str, npt.NDArray[Any]]]:
        if self.takes_images:
            for source in X:
                yield {IMAGES: read_image(source)[None]}
            return
        rows = np.asarray(X, dtype=np.float32)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            yield {ROWS: rows[first : first + _ROWS_AT_ONCE]}


def compare_onnx(model: Any, path: str | os.PathLike[str], X: Any, y: npt.ArrayLike) -> Comparison:
    """Measure how much accuracy an exported ONNX file has lost.

    Parameters
    ----------
    model : estimator
        The model that was exported.
    path : path
        The file that :func:`save_onnx` wrote.
    X : sequence of images, or array-like of shape (n_samples, n_features)
        Test inputs that were not used for training.
    y : array-like of shape (n_samples,)
        The true classes.

    Returns
    -------
    comparison : evergrow.export.Comparison
        The accuracy of both, and how often their answers agree.

    Examples
    --------
    >>> import tempfile
    >>> from evergrow import NCMClassifier
    >>> from evergrow.export import compare_onnx, save_onnx
    >>> model = NCMClassifier().fit([[0, 0], [4, 4]], ["near", "far"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_onnx(model, f"{folder}/model.onnx")
    ...     found = compare_onnx(model, f"{folder}/model.onnx", [[1, 1], [3, 3]], ["near", "near"])
    >>> found.accuracy, found.accuracy_exported, found.agreement
    (0.5, 0.5, 1.0)
    """
    answers = OnnxAnswers(path)
    if answers.classes != model.classes_.tolist():
        raise InvalidInputError(f"{display_name(path)} was exported from a model of other classes")
    index, probabilities, _, is_unknown = answers.run(X)
    own, truth = model.predict(X), np.asarray(y)
    found = np.asarray(model.classes_)[index].astype(object)
    found[is_unknown] = answers.metadata["unknown_label"]
    difference = np.abs(np.asarray(model.predict_proba(X)) - probabilities).max()
    return Comparison(
        len(truth),
        float(np.mean(own == truth)),
        float(np.mean(found == truth)),
        float(np.mean(found == own)),
        float(difference),
    )
