"""Forests of coarse and fine classes to model files and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.serialization import parameters_from_json, parameters_to_json
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.by_forest import ForestGuesser
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.hierarchy import LabelTree
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.estimators.subcategory.nearest import NearestGuesser
from evergrow.estimators.subcategory.ridge import RidgeGuesser
from evergrow.estimators.subcategory.stacking import Stack
from evergrow.estimators.subcategory.unconfirmed import Unconfirmed
from evergrow.foundation.errors import ModelFileError
from evergrow.storage.modelfile import (
    arrays_inside,
    check_array,
    common_header,
    feature_names,
    plain_parameters,
)

__all__ = ["from_file", "to_file"]

Tensors = dict[str, npt.NDArray[Any]]

_KINDS: dict[str, Any] = {"forest": ForestGuesser, "nn": NearestGuesser, "ridge": RidgeGuesser}

# What the arrays of the first of two stacked forests begin with.
_FIRST = "first/"


def to_file(
    estimator: Any, fitted: FittedSubcategories, *, inference_only: bool
) -> tuple[dict[str, Any], Tensors]:
    """Header and arrays of a fitted estimator."""
    learnt, tensors = fitted.forest.to_tensors(inference_only=inference_only)
    rows_left_out = inference_only or not fitted.forest.has_training_rows
    unconfirmed = Unconfirmed.none() if rows_left_out else fitted.unconfirmed
    tensors |= {"unconfirmed.ids": unconfirmed.ids, "unconfirmed.coarse": unconfirmed.coarse}
    parameters = parameters_to_json(estimator.get_params(deep=False))
    parameters["guess"] = _guess_to_json(parameters["guess"])
    header = {
        **learnt,
        # The classes are those of the hierarchy.
        **common_header(estimator, parameters, None),
        "inference_only": bool(rows_left_out),
        "hierarchy": fitted.tree.to_json(),
        "method": fitted.method,
    }
    if fitted.stack is not None:
        stack = fitted.stack
        # It is never updated.
        inside, arrays = stack.first.to_tensors(inference_only=True)
        header["stack"] = {"scale": stack.scale, "first": inside}
        tensors |= {f"{_FIRST}{name}": array for name, array in arrays.items()}
        tensors |= {"stack.mean": stack.features.mean, "stack.scale": stack.features.scale}
    return header, tensors


def from_file(
    header: dict[str, Any], tensors: Tensors
) -> tuple[FittedSubcategories, dict[str, Any], npt.NDArray[Any] | None]:
    """What was learnt, parameters and feature names from what a file held."""
    tree = LabelTree.from_json(header.get("hierarchy"))
    method = header.get("method")
    if not isinstance(method, str) or method not in METHODS:
        raise ModelFileError(f"the model file was trained by an unknown method {method!r}")
    own = {name: array for name, array in tensors.items() if not name.startswith(_FIRST)}
    forest = FittedForest.from_tensors(tree.core_labels, header, own)
    stack = _stack(header.get("stack"), tensors, tree) if METHODS[method].is_stacked else None
    if stack is not None and forest.n_features != stack.n_features + len(tree.coarse_ids):
        raise ModelFileError("the model file is inconsistent: its two forests do not fit")
    fitted = FittedSubcategories(tree, forest, method, _unconfirmed(own, forest, tree), stack)
    parameters = parameters_from_json(header)
    if isinstance(parameters.get("guess"), dict):
        parameters = {**parameters, "guess": _guess_from_json(parameters["guess"])}
    return fitted, parameters, feature_names(header, fitted.n_features)


def _guess_to_json(guess: Any) -> Any:
    if isinstance(guess, str):
        return guess
    name = next(name for name, kind in _KINDS.items() if isinstance(guess, kind))
    options = {field.name: getattr(guess, field.name) for field in fields(guess)}
    if options.get("forest") is not None:
        raise TypeError(
            "a model whose guess is a ForestGuesser with a forest of its own cannot be saved: set "
            "guess='forest' first"
        )
    return {"name": name, **plain_parameters(options)}


def _guess_from_json(entry: dict[str, Any]) -> Any:
    options = dict(entry)
    kind = _KINDS.get(str(options.pop("name", None)))
    plain = all(isinstance(value, (bool, int, float, type(None))) for value in options.values())
    if kind is None or not plain or set(options) - {field.name for field in fields(kind)}:
        raise ModelFileError(f"there is no way of guessing {entry}")
    return kind(**options)


def _unconfirmed(tensors: Tensors, forest: FittedForest, tree: LabelTree) -> Unconfirmed:
    ids = check_array(tensors.get("unconfirmed.ids"), "unconfirmed.ids", np.int64, (None,))
    name = "unconfirmed.coarse"
    coarse = check_array(tensors.get(name), name, np.int32, (len(ids),))
    known = bool(np.isin(coarse, tree.coarse_ids).all()) and bool((np.diff(ids) > 0).all())
    if not known or not np.isin(ids, forest.stored_ids).all():
        raise ModelFileError("the model file is inconsistent: its unconfirmed samples are damaged")
    return Unconfirmed(ids, coarse)


def _stack(entry: Any, tensors: Tensors, tree: LabelTree) -> Stack:
    scale = entry.get("scale") if isinstance(entry, dict) else None
    inside = entry.get("first") if isinstance(entry, dict) else None
    if not isinstance(scale, float) or not 0 <= scale < np.inf or not isinstance(inside, dict):
        raise ModelFileError("the model file lacks the first of its two forests")
    arrays = arrays_inside(tensors, _FIRST)
    first = FittedForest.from_tensors(tree.coarse_level().core_labels, inside, arrays)
    shape = (first.n_features,)
    mean = check_array(tensors.get("stack.mean"), "stack.mean", np.float64, shape)
    spread = check_array(tensors.get("stack.scale"), "stack.scale", np.float64, shape)
    if not (spread > 0).all():
        raise ModelFileError("the model file is inconsistent: the array stack.scale is damaged")
    return Stack(first, Standardization(mean, spread), scale)
