"""What least squares has learnt as a header and arrays of a model file, and back."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from evergrow.estimators.linear.equations import SCORINGS, Ridge
from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.fitted import FittedRLS, FixedWeights
from evergrow.estimators.linear.penalties import RULES, SelectionRequest
from evergrow.estimators.linear.selection import Selection
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Moments
from evergrow.estimators.sums.serialization import (
    MOST_LEARNT,
    Arrays,
    holdout_from_arrays,
    holdout_header,
    holdout_to_arrays,
    moments_from_arrays,
    moments_to_arrays,
)
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.models.header import check_array

# What the values selected were asked for.
_WISHES = {field.name for field in fields(SelectionRequest)}


def fitted_to_arrays(
    fitted: FittedRLS, fixed: FixedWeights | None = None
) -> tuple[dict[str, Any], Arrays]:
    """Return everything except the classes: numbers for a header, and named arrays.

    With ``fixed`` only what predicting needs.
    """
    fixed = fitted.fixed if fixed is None else fixed
    selection = fitted.selection
    header: dict[str, Any] = {
        "features": asdict(fitted.features),
        "intercept": fitted.intercept,
        "held_out": holdout_header(fitted.holdout),
        "selection": None if selection is None else _selection_to_json(selection),
        "fixed": None
        if fixed is None
        else {
            "penalty": fixed.ridge.penalty,
            "standardize": fixed.ridge.standardize,
            "intercept": fixed.ridge.intercept,
            "scoring": fixed.ridge.scoring,
            "by_means": fixed.ridge.by_means,
            "temperature": fixed.temperature,
        },
    }
    if fixed is None:
        arrays = {**moments_to_arrays(fitted.moments), **holdout_to_arrays(fitted.holdout)}
    else:
        # No sums: those of a class with one example would reveal that example.
        arrays = {
            "weights": fixed.weights,
            "own_scores": fixed.own_scores,
            "class_weights": fitted.moments.class_weights,
            "class_examples": fitted.moments.class_examples,
        }
    if selection is not None:
        arrays["selection.class_examples"] = selection.class_examples
    return header, arrays


def fitted_from_arrays(labels: ClassList, header: dict[str, Any], arrays: Arrays) -> FittedRLS:
    """Rebuild from :func:`fitted_to_arrays`; a ``ModelFileError`` for damaged content."""
    features = _read_map(header.get("features"))
    intercept = header.get("intercept")
    if not isinstance(intercept, bool):
        raise ModelFileError("the model file does not say whether there is an intercept")
    sizes = (features.n_features + intercept, len(labels))
    selection = _read_selection(header.get("selection"), arrays, len(labels))
    if header.get("fixed") is not None:
        moments, fixed = _read_fixed(header["fixed"], arrays, sizes)
        nothing = Holdout.none(1, 0).with_classes(len(labels))
        return FittedRLS(labels, moments, features, intercept, nothing, selection, fixed)
    moments = moments_from_arrays(arrays, *sizes)
    if moments.settled is None:
        raise ModelFileError("the model file lacks the array 'gram'")
    holdout = holdout_from_arrays(header.get("held_out"), arrays, features.n_inputs, len(labels))
    return FittedRLS(labels, moments, features, intercept, holdout, selection)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ModelFileError("the model file has a damaged header: a number is out of range")
    return value


def _counts(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        raise ModelFileError("the model file has a damaged header: blocks")
    return tuple(_count(value) for value in values)


def _number(value: Any) -> float:
    if not isinstance(value, float) or not 0 <= value < float("inf"):
        raise ModelFileError("the model file has a damaged header: a value is out of range")
    return value


def _read_map(entry: Any) -> FeatureMap:
    if not isinstance(entry, dict) or entry.get("kind") not in ("none", "relu", "rff"):
        raise ModelFileError("the model file has an unknown feature map")
    n_inputs, n_random, seed = (
        _count(entry.get(name)) for name in ("n_inputs", "n_random", "seed")
    )
    gamma = entry.get("gamma")
    if not isinstance(gamma, float) or not 0 < gamma < float("inf") or n_inputs < 1:
        raise ModelFileError("the model file has a damaged feature map")
    with_inputs = entry.get("with_inputs")
    has_random = n_random > 0 or with_inputs
    if type(with_inputs) is not bool or has_random != (entry["kind"] != "none"):
        raise ModelFileError("the model file has a damaged feature map")
    return FeatureMap(entry["kind"], n_inputs, n_random, seed, gamma, with_inputs)


def _read_fixed(entry: Any, arrays: Arrays, sizes: tuple[int, int]) -> tuple[Moments, FixedWeights]:
    width, n_classes = sizes
    weights = check_array(arrays.get("weights"), "weights", np.float64, (n_classes, width))
    counts = check_array(arrays.get("class_weights"), "class_weights", np.float64, (n_classes,))
    examples = check_array(arrays.get("class_examples"), "class_examples", np.int64, (n_classes,))
    if (examples < 0).any() or float(examples.sum(dtype=np.float64)) > MOST_LEARNT:
        raise ModelFileError("the model file is inconsistent: a count is out of range")
    if (counts < 0).any() or not counts.any() or ((counts > 0) != (examples > 0)).any():
        raise ModelFileError("the model file is inconsistent: it has classes without weight")
    flags = [entry.get(name) for name in ("standardize", "intercept")] if entry else []
    if not isinstance(entry, dict) or not all(isinstance(flag, bool) for flag in flags):
        raise ModelFileError("the model file does not describe the problem that its weights solve")
    none = Moments.none(width, n_classes, gram=False)
    moments = replace(none, class_weights=counts, class_examples=examples)
    scoring, temperature = entry.get("scoring"), entry.get("temperature")
    if scoring not in SCORINGS or _number(temperature) == 0:
        raise ModelFileError("the model file has a damaged header: a value is out of range")
    by_means = entry.get("by_means")
    if type(by_means) is not bool:
        raise ModelFileError("the model file does not describe the problem that its weights solve")
    ridge = Ridge(_number(entry.get("penalty")), flags[0], flags[1], None, scoring, by_means)
    own = check_array(arrays.get("own_scores"), "own_scores", np.float64, (n_classes,))
    return moments, FixedWeights(weights, own, ridge, _number(temperature))


def _selection_to_json(chosen: Selection) -> dict[str, Any]:
    return {
        "penalty": chosen.penalty,
        "recoding": chosen.recoding,
        "temperature": chosen.temperature,
        "wish": asdict(chosen.request),
        "n_examples": chosen.n_examples,
        "weight": chosen.weight,
        "blocks": chosen.blocks,
        "by_means": chosen.by_means,
    }


def _read_selection(entry: Any, arrays: Arrays, n_classes: int) -> Selection | None:
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ModelFileError("the model file has a damaged header: selection")
    penalty, recoding, temperature = (
        _number(entry.get(name)) for name in ("penalty", "recoding", "temperature")
    )
    if recoding > 1 or temperature == 0:
        raise ModelFileError("the model file has a damaged header: a value is out of range")
    wish = entry.get("wish")
    if not isinstance(wish, dict) or set(wish) != _WISHES:
        raise ModelFileError("the model file has a damaged header: the requested values")
    rule, scoring = wish["rule"], wish["scoring"]
    blocks, used = _counts(wish["blocks"]), _counts(entry.get("blocks"))
    if used and (used[0] != 0 or list(used) != sorted(set(used)) or used[-1] >= len(blocks)):
        raise ModelFileError("the model file is inconsistent: it uses blocks that it does not have")
    if type(wish["standardize"]) is not bool or rule not in RULES or scoring not in SCORINGS:
        raise ModelFileError("the model file has a damaged header: the requested values")
    penalty_asked, recoding_asked = (
        None if wish[name] is None else _number(wish[name]) for name in ("penalty", "recoding")
    )
    n_random_blocks = _count(wish["n_random_blocks"])
    if n_random_blocks and n_random_blocks >= len(blocks):
        raise ModelFileError("the model file is inconsistent: it uses blocks that it does not have")
    asked = SelectionRequest(
        penalty_asked, recoding_asked, wish["standardize"], rule, blocks, scoring, n_random_blocks
    )
    then = check_array(
        arrays.get("selection.class_examples"), "selection.class_examples", np.int64, (None,)
    )
    if len(then) > n_classes or (then < 0).any():
        raise ModelFileError("the model file is inconsistent: its selection has too many classes")
    n_examples, weight = _count(entry.get("n_examples")), _number(entry.get("weight"))
    by_means = entry.get("by_means")
    if type(by_means) is not bool:
        raise ModelFileError("the model file has a damaged header: selection")
    return Selection(
        penalty, recoding, temperature, asked, n_examples, weight, then, used, by_means
    )
