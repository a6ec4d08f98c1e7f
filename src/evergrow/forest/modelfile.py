"""Forests to model files and back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.errors import ModelFileError
from evergrow.files import write_model
from evergrow.forest.fitted import FittedForest
from evergrow.forest.strategies import strategy_from_json, strategy_to_json
from evergrow.labels import ClassList
from evergrow.version import __version__

__all__ = ["forest_from_file", "forest_to_file"]

# Types of class labels that can be saved, and how JSON holds each; object arrays hold strings.
_LABEL_TYPES: dict[str, type] = {"<U": str, "|O": str, "|b1": bool, "|i1": int, "|u1": int}
_LABEL_TYPES |= {f"<{kind}{size}": int for kind in "iu" for size in (2, 4, 8)}
_LABEL_TYPES |= {f"<f{size}": float for size in (2, 4, 8)}


def forest_to_file(
    estimator: Any, fitted: FittedForest, path: str | os.PathLike[str], *, inference_only: bool
) -> None:
    """Write a fitted forest estimator."""
    names = getattr(estimator, "feature_names_in_", None)
    learnt, tensors = fitted.to_tensors(inference_only=inference_only)
    header = {
        **learnt,
        "library_version": __version__,
        "estimator": type(estimator).__name__,
        "parameters": _plain_parameters(estimator.get_params(deep=False)),
        "classes": _classes_to_json(fitted.labels.classes),
        "feature_names": None if names is None else names.tolist(),
        "inference_only": bool(inference_only) or not fitted.has_training_rows,
    }
    write_model(path, header, tensors)


def forest_from_file(
    header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
) -> tuple[FittedForest, dict[str, Any], npt.NDArray[Any] | None]:
    """Fitted forest, parameters and feature names from what a file held."""
    parameters, names = header.get("parameters"), header.get("feature_names")
    if not isinstance(parameters, dict):
        raise ModelFileError("the model file has no parameters")
    if isinstance(parameters.get("update"), dict):
        parameters = {**parameters, "update": strategy_from_json(parameters["update"])}
    fitted = FittedForest.from_tensors(_classes_from_json(header.get("classes")), header, tensors)
    if names is None:
        return fitted, parameters, None
    if not isinstance(names, list) or len(names) != fitted.n_features:
        raise ModelFileError("the model file names the wrong number of features")
    if not all(type(name) is str for name in names):
        raise ModelFileError("the model file names features by something other than strings")
    return fitted, parameters, np.array(names, dtype=object)


def _plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    # A generator has a state that only its owner can go on with.
    if isinstance(plain["random_state"], np.random.RandomState):
        plain["random_state"] = None
    if not isinstance(plain["update"], str):
        plain["update"] = strategy_to_json(plain["update"])
    # The file of one model is not the memory of another.
    plain["memory"] = None
    return plain


def _classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    # The width of a string array follows from its strings.
    name = "<U" if classes.dtype.kind == "U" else classes.dtype.newbyteorder("<").str
    kind, values = _LABEL_TYPES.get(name), classes.tolist()
    if kind is None or not all(type(value) is kind for value in values):
        raise TypeError(f"classes of type {classes.dtype} cannot be saved: use integers or strings")
    return {"dtype": name, "values": values}


def _classes_from_json(entry: Any) -> ClassList:
    name = entry.get("dtype") if isinstance(entry, dict) else None
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(values, list) or not values:
        raise ModelFileError("the model file lists no classes")
    kind = _LABEL_TYPES.get(name) if isinstance(name, str) else None
    if name is None or kind is None or not all(type(value) is kind for value in values):
        raise ModelFileError("the model file lists classes of mixed or unexpected types")
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=name)
    except OverflowError as error:
        raise ModelFileError(f"the model file lists a class out of range: {error}") from error
    # Also false for what the type cannot hold, and for what is not a number.
    if classes.tolist() != values or len(set(values)) != len(values):
        raise ModelFileError("the model file lists a class twice or one that its type cannot hold")
    return ClassList(classes)
