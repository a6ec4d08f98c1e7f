"""Everything that a loaded model is asked to do, and which errors are allowed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import evergrow
from evergrow import ModelFileError
from evergrow.foundation.errors import EvergrowError
from evergrow.storage.ragged import RaggedArray
from tests.fuzz.models import IMAGES, N_FEATURES, NEW_X, NEW_Y, TWO_LEVELS, X

# What a caller of an estimator must expect.
ALLOWED = (EvergrowError, ValueError)


def load_or_refuse(path: str) -> Any:
    """The model; None if the file is refused. Any other error is a fault and is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return evergrow.load(path)
        except ModelFileError:
            return None


def use(model: Any, path: str) -> list[str]:
    """Do everything with a model, save it to ``path`` and load it again.

    Returns the calls that raised an allowed error; other errors are faults and are raised.
    """
    refused = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, call in _calls(model):
            try:
                call()
            except ALLOWED:
                refused.append(name)
        try:
            evergrow.save(model, path)
        except ALLOWED:
            return [*refused, "save"]
        # What a model writes, it must be able to read.
        try:
            evergrow.load(path)
        except ModelFileError as error:
            raise AssertionError(f"a saved model is refused: {error}") from error
        finally:
            os.unlink(path)
    return refused


def _calls(model: Any) -> list[tuple[str, Callable[[], Any]]]:
    inputs = _inputs(model)
    found: list[tuple[str, Callable[[], Any]]] = [
        (name, lambda name=name: getattr(model, name)(inputs))
        for name in ("predict", "predict_proba", "decision_function", "transform", "novelty")
        if hasattr(model, name)
    ]
    if hasattr(model, "explain"):
        found.append(("explain", lambda: model.explain(inputs[0])))
    if hasattr(model, "predict_top_k"):
        found.append(("predict_top_k", lambda: model.predict_top_k(inputs, 2)))
    attributes = ("classes_", "temperature_", "regularization_", "class_counts_")
    found += [(name, lambda name=name: getattr(model, name, None)) for name in attributes]
    if hasattr(model, "partial_fit"):
        found.append(("partial_fit", lambda: _learn(model, inputs)))
    if hasattr(model, "rename_classes"):
        found.append(("rename_classes", lambda: model.rename_classes({"a": "z"})))
        found.append(("merge classes", lambda: model.rename_classes({"b": "c"})))
    if hasattr(model, "forget"):
        found.append(("forget", lambda: model.forget(classes=_first_class(model))))
    if hasattr(model, "predict"):
        found.append(("predict again", lambda: model.predict(inputs)))
    return found


def _first_class(model: Any) -> Any:
    return np.asarray(model.classes_).tolist()[:1]


def _inputs(model: Any) -> Any:
    """Test data that fits the model: rows, images, or descriptors of images."""
    kind = type(model).__name__
    if kind in ("ImageClassifier", "LocalFeatures", "Embedder"):
        return IMAGES[:3]
    if kind in ("BagOfWords", "FisherVectors"):
        if getattr(model, "features", None) is not None:
            return IMAGES[:3]
        return RaggedArray.of([_rows(model, X)[:4], _rows(model, X)[4:9]])
    return _rows(model, X)[:9]


def _rows(model: Any, rows: Any) -> Any:
    width = getattr(model, "n_features_in_", N_FEATURES)
    return np.resize(rows, (len(rows), width)) if width < 4096 else rows


def _learn(model: Any, inputs: Any) -> Any:
    kind = type(model).__name__
    if kind == "ImageClassifier":
        return model.partial_fit(inputs, NEW_Y[:3])
    if kind == "SubcategoryForestClassifier":
        return model.partial_fit(_rows(model, X[:6]), TWO_LEVELS[:6])
    return model.partial_fit(_rows(model, NEW_X), NEW_Y)
