"""The parameters of an embedder: their rules, and how a model file stores them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.foundation.params import Integer, Satisfies
from evergrow.storage.models.header import (
    MACHINE_PARAMETERS,
    check_array,
    parameters_of,
    plain_parameters,
)
from evergrow.vision.embedding.model_zoo import PRETRAINED
from evergrow.vision.embedding.networks import OnnxModel
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.torch_module import is_torch_module
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits

_SUFFIX = ".onnx"
# Key that marks a network that is included in the model file.
_INSIDE = "inside"


def _is_model(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(_is_single_model(one) for one in value)
    return _is_single_model(value)


def _is_single_model(value: object) -> bool:
    if isinstance(value, str):
        return value in PRETRAINED or value.lower().endswith(_SUFFIX)
    return isinstance(value, (os.PathLike, OnnxModel)) or callable(value)


IS_MODEL = Satisfies(
    f"one of {sorted(PRETRAINED)}, the path of a file that ends in {_SUFFIX}, a torch module, "
    "a callable, or a list of these",
    _is_model,
)
ARE_PREPROCESSINGS = Satisfies(
    "a list of these",
    lambda value: (
        isinstance(value, (tuple, list))
        and bool(value)
        and all(one is None or isinstance(one, Preprocessing) for one in value)
    ),
)
# The folder need not exist.
IS_FOLDER = Satisfies(
    "the path of a folder",
    lambda value: isinstance(value, (str, os.PathLike)) and bool(os.fspath(value)),
)


# More than any network has.
_MAX_STAGE = 99


def _are_stages(value: object) -> bool:
    if not isinstance(value, (tuple, list)) or len(set(map(str, value))) != len(value):
        return False
    return all(Integer(1, _MAX_STAGE).admits(one) for one in value)


ARE_STAGES = Satisfies("a tuple of distinct numbers of stages, such as (5, 6, 7)", _are_stages)


def named_weights(model: object) -> Any:
    """Name and weights hash of a network that is known by name; None for others.

    A list for a list of networks.
    """
    if isinstance(model, (tuple, list)):
        return [named_weights(one) for one in model]
    if not isinstance(model, str) or model not in PRETRAINED:
        return None
    return {"name": model, "sha256": PRETRAINED[model].weights_sha256()}


def parameters_to_json(
    parameters: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.uint8]]]:
    """Parameters as JSON values and arrays; a ``TypeError`` for a callable model."""
    plain, tensors = plain_parameters(parameters), {}
    model, limits = plain["model"], plain["limits"]
    for name, one in _array_names(model):
        if not isinstance(one, str):
            tensors[name] = np.frombuffer(_onnx_content(one), dtype=np.uint8)
    plain["model"] = _for_each(_model_to_json, model)
    plain["preprocessing"] = _for_each(_preprocessing_to_json, plain["preprocessing"])
    plain["stages"] = [int(stage) for stage in plain["stages"]]
    plain["limits"] = None if limits is None else plain_parameters(asdict(limits))
    # A file must not decide where the computer that loads it writes.
    plain["cache"] = plain["cache"] is not False
    return {**plain, **MACHINE_PARAMETERS}, tensors


def _for_each(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to a value, or to all entries of a list."""
    if isinstance(value, (tuple, list)):
        return [function(one) for one in value]
    return function(value)


def _array_names(model: Any) -> list[tuple[str, Any]]:
    """The models and the names of the arrays that would contain them."""
    if isinstance(model, (tuple, list)):
        return [(f"onnx{number}", one) for number, one in enumerate(model)]
    return [("onnx", model)]


def _model_to_json(model: Any) -> Any:
    if isinstance(model, str):
        return model
    return {_INSIDE: hashlib.sha256(_onnx_content(model)).hexdigest()}


def _preprocessing_to_json(preprocessing: Preprocessing | None) -> Any:
    return None if preprocessing is None else preprocessing.to_json()


def _onnx_content(model: Any) -> bytes:
    if isinstance(model, OnnxModel):
        return model.content
    if is_torch_module(model):
        what, how = "a torch module", "export the module with torch.onnx.export"
    else:
        what, how = "a callable model", "export the model to ONNX"
    raise InvalidTypeError(
        f"an Embedder with {what} cannot be saved, because a model file contains no code; {how} "
        f"and give the path of the file, which ends in {_SUFFIX}"
    )


def parameters_from_json(
    header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters from an untrusted file, and the hashes of the weights by name."""
    parameters = {**parameters_of(header), **MACHINE_PARAMETERS}
    model, cache = parameters.get("model"), parameters.get("cache", True)
    found = [_model_from_json(one, tensors.get(name)) for name, one in _array_names(model)]
    parameters["model"] = found if isinstance(model, list) else found[0]
    if not isinstance(cache, bool):
        raise ModelFileError("the model file names a cache folder")
    if parameters.get("preprocessing") is not None:
        given = parameters["preprocessing"]
        parameters["preprocessing"] = _for_each(_preprocessing_from_json, given)
    if isinstance(parameters.get("stages"), list):
        parameters["stages"] = tuple(parameters["stages"])
    if parameters.get("limits") is not None:
        parameters["limits"] = _tighten(ReadLimits(**parameters["limits"]))
    return parameters, _saved_weights(header.get("weights"), parameters["model"])


def _tighten(limits: ReadLimits) -> ReadLimits:
    """Limits from a file: they may be stricter than the default but never wider."""
    return ReadLimits(
        min(limits.max_pixels, DEFAULT_LIMITS.max_pixels),
        min(limits.max_bytes, DEFAULT_LIMITS.max_bytes),
    )


def _preprocessing_from_json(values: Any) -> Preprocessing | None:
    return None if values is None else Preprocessing.from_json(values)


def _model_from_json(entry: Any, array: npt.NDArray[Any] | None) -> str | OnnxModel:
    if isinstance(entry, str) and entry in PRETRAINED:
        return entry
    if not isinstance(entry, dict):
        # Never a path: a file must not decide which other files are read.
        raise ModelFileError(f"the model file names an unknown network {entry!r}")
    content = check_array(array, "onnx", np.uint8, (None,)).tobytes()
    model = OnnxModel(content, bounded=True)
    if entry != {_INSIDE: model.sha256}:
        raise ModelFileError("the model file is inconsistent: its ONNX model has another hash")
    return model


def _saved_weights(found: Any, model: Any) -> dict[str, str]:
    """The hashes by name; a ``ModelFileError`` unless every named network has one."""
    models = model if isinstance(model, list) else [model]
    entries = found if isinstance(model, list) else [found]
    if not isinstance(entries, list) or len(entries) != len(models):
        raise ModelFileError("the model file does not name the weights it was saved with")
    saved = {}
    for entry, name in zip(entries, models, strict=True):
        if not isinstance(name, str):
            continue
        if not isinstance(entry, dict) or set(entry) != {"name", "sha256"} or entry["name"] != name:
            raise ModelFileError("the model file does not name the weights it was saved with")
        saved[name] = str(entry["sha256"])
    return saved
