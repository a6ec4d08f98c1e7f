"""Forests to model files and back."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from evergrow.estimators.forest.strategies import strategy_from_json, strategy_to_json
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.storage.modelfile import (
    class_list,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)


def forest_to_file(
    estimator: Any, fitted: FittedForest, *, inference_only: bool
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Header and arrays of a fitted forest estimator."""
    learnt, tensors = fitted.to_tensors(inference_only=inference_only)
    parameters = forest_parameters(estimator.get_params(deep=False))
    header = {
        **learnt,
        **common_header(estimator, parameters, fitted.labels),
        "inference_only": bool(inference_only) or not fitted.has_training_rows,
    }
    return header, tensors


def forest_from_file(
    header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
) -> tuple[FittedForest, dict[str, Any], npt.NDArray[Any] | None]:
    """Fitted forest, parameters and feature names from what a file held."""
    fitted = FittedForest.from_tensors(class_list(header), header, tensors)
    return fitted, parameters_of_forest(header), feature_names(header, fitted.n_features)


def parameters_of_forest(header: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the header of a forest lists."""
    parameters = parameters_of(header)
    if isinstance(parameters.get("update"), dict):
        parameters = {**parameters, "update": strategy_from_json(parameters["update"])}
    return parameters


def forest_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a forest as JSON holds them."""
    plain = plain_parameters(parameters)
    if not isinstance(plain["update"], str):
        plain["update"] = strategy_to_json(plain["update"])
    # The file of one model is not the memory of another.
    plain["memory"] = None
    return plain
