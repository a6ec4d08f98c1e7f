"""Fitted values to the header and arrays of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.serialization import (
    from_tensors,
    parameters_from_json,
    parameters_to_json,
    to_tensors,
)
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.guessers import GUESSERS
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.estimators.subcategory.value.fitted import PROPOSER, FittedSubcategories, Stack
from evergrow.estimators.subcategory.value.stored_samples import StoredSamples, UnconfirmedSamples
from evergrow.foundation.errors import ModelFileError
from evergrow.storage.models.header import (
    arrays_inside,
    check_array,
    common_header,
    feature_names,
    with_values,
)

Tensors = dict[str, npt.NDArray[Any]]

# Prefix of the arrays of the first of two stacked forests.
_FIRST = "first/"


def to_file(
    estimator: Any, fitted: FittedSubcategories, *, inference_only: bool
) -> tuple[dict[str, Any], Tensors]:
    """Header and arrays of a fitted estimator."""
    learnt, tensors = to_tensors(fitted.forest, inference_only=inference_only)
    rows_left_out = inference_only or not fitted.forest.has_training_rows
    unconfirmed = UnconfirmedSamples.none() if rows_left_out else fitted.unconfirmed
    tensors |= {"unconfirmed.ids": unconfirmed.ids, "unconfirmed.coarse": unconfirmed.coarse}
    parameters = parameters_to_json(estimator.get_params(deep=False))
    header = {
        **learnt,
        # The hierarchy holds the classes.
        **common_header(estimator, parameters, None),
        "inference_only": bool(rows_left_out),
        "hierarchy": fitted.tree.to_json(),
        "method": fitted.method,
    }
    if fitted.stack is not None:
        stack = fitted.stack
        inside, arrays = to_tensors(stack.first, inference_only=rows_left_out)
        header["stack"] = {
            "scale": stack.scale,
            "learns_all": stack.learns_all,
            "n_learnt": stack.n_learnt,
            "n_grown": stack.n_grown,
            "first": inside,
        }
        tensors |= {f"{_FIRST}{name}": array for name, array in arrays.items()}
        tensors |= {"stack.mean": stack.features.mean, "stack.scale": stack.features.scale}
    return header, tensors


def from_file(
    header: dict[str, Any], tensors: Tensors
) -> tuple[FittedSubcategories, dict[str, Any], npt.NDArray[Any] | None]:
    """The fitted value, the parameters and the feature names from a header and arrays."""
    tree = LabelTree.from_json(header.get("hierarchy"))
    method = header.get("method")
    if not isinstance(method, str) or method not in METHODS:
        raise ModelFileError(f"the model file was trained by an unknown method {method!r}")
    own = {name: array for name, array in tensors.items() if not name.startswith(_FIRST)}
    forest = from_tensors(tree.core_labels, header, own, PROPOSER)
    stack = _read_stack(header.get("stack"), tensors, tree) if METHODS[method].is_stacked else None
    if stack is not None and forest.n_features != stack.n_features + len(tree.coarse_ids):
        raise ModelFileError(
            "the model file is inconsistent: the features of its two forests do not match"
        )
    if stack is not None and forest.has_training_rows and not stack.first.has_training_rows:
        raise ModelFileError("the model file lacks the samples of the first of its two forests")
    fitted = FittedSubcategories(tree, forest, method, _read_unconfirmed(own, forest, tree), stack)
    parameters = with_values(parameters_from_json(header), GUESSERS.values())
    return fitted, parameters, feature_names(header, fitted.n_features)


def _read_unconfirmed(
    tensors: Tensors, forest: FittedForest, tree: LabelTree
) -> UnconfirmedSamples:
    ids = check_array(tensors.get("unconfirmed.ids"), "unconfirmed.ids", np.int64, (None,))
    name = "unconfirmed.coarse"
    coarse = check_array(tensors.get(name), name, np.int32, (len(ids),))
    bare = np.flatnonzero(tree.is_bare)
    unconfirmed = UnconfirmedSamples(ids, coarse)
    known = bool(np.isin(coarse, bare).all()) and bool((np.diff(ids) > 0).all())
    known = known and bool(np.isin(ids, forest.stored_ids).all())
    if not known or not StoredSamples.of(forest, unconfirmed, tree).guesses_fit:
        raise ModelFileError("the model file is inconsistent: its unconfirmed samples are damaged")
    return unconfirmed


def _read_stack(entry: Any, tensors: Tensors, tree: LabelTree) -> Stack:
    scale = entry.get("scale") if isinstance(entry, dict) else None
    inside = entry.get("first") if isinstance(entry, dict) else None
    if not isinstance(scale, float) or not 0 <= scale < np.inf or not isinstance(inside, dict):
        raise ModelFileError("the model file lacks the first of its two forests")
    arrays = arrays_inside(tensors, _FIRST)
    first = from_tensors(tree.coarse_level().core_labels, inside, arrays, PROPOSER)
    shape = (first.n_features,)
    mean = check_array(tensors.get("stack.mean"), "stack.mean", np.float64, shape)
    spread = check_array(tensors.get("stack.scale"), "stack.scale", np.float64, shape)
    if not (spread > 0).all():
        raise ModelFileError("the model file is inconsistent: the array stack.scale is damaged")
    counts = [entry.get(name) for name in ("n_learnt", "n_grown")]
    learns_all = entry.get("learns_all")
    whole = all(type(count) is int and 0 <= count < 2**53 for count in counts)
    if not isinstance(learns_all, bool) or not whole:
        raise ModelFileError("the model file is inconsistent: its two forests are damaged")
    return Stack(first, Standardization(mean, spread), scale, learns_all, *counts)
