"""The parameters of an embedder: their rules, and how a model file stores them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.storage.modelfile import OF_THE_MACHINE, check_array, parameters_of, plain_parameters
from evergrow.vision.embedding.model_zoo import PRETRAINED
from evergrow.vision.embedding.networks import OnnxModel
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits

_SUFFIX = ".onnx"
# Key that marks a network that is included in the model file.
_INSIDE = "inside"


@dataclass(frozen=True)
class ModelRule:
    """The name of a network, the path or content of an ONNX file, or a callable."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if isinstance(value, str):
            return value in PRETRAINED or value.lower().endswith(_SUFFIX)
        return isinstance(value, (os.PathLike, OnnxModel)) or callable(value)

    def __str__(self) -> str:
        """Say what is allowed."""
        names = ", ".join(repr(name) for name in sorted(PRETRAINED))
        return f"one of [{names}], the path of a file that ends in {_SUFFIX}, or a callable"


@dataclass(frozen=True)
class CacheFolder:
    """The path of a folder that need not exist."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, (str, os.PathLike)) and bool(os.fspath(value))

    def __str__(self) -> str:
        """Say what is allowed."""
        return "the path of a folder"


def named_weights(model: object) -> dict[str, str] | None:
    """Name and weights hash of a network that is known by name; None for others."""
    if not isinstance(model, str) or model not in PRETRAINED:
        return None
    return {"name": model, "sha256": PRETRAINED[model].weights_sha256()}


def parameters_to_json(
    parameters: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.uint8]]]:
    """Parameters as JSON values and arrays; a ``TypeError`` for a callable model."""
    plain, tensors = plain_parameters(parameters), {}
    model, preprocessing, limits = (plain[name] for name in ("model", "preprocessing", "limits"))
    if not (isinstance(model, str) and model in PRETRAINED):
        content = _onnx_content(model)
        plain["model"] = {_INSIDE: hashlib.sha256(content).hexdigest()}
        tensors["onnx"] = np.frombuffer(content, dtype=np.uint8)
    plain["preprocessing"] = None if preprocessing is None else preprocessing.to_json()
    plain["limits"] = None if limits is None else plain_parameters(asdict(limits))
    # A file must not decide where the computer that loads it writes.
    plain["cache"] = plain["cache"] is not False
    return {**plain, **OF_THE_MACHINE}, tensors


def _onnx_content(model: Any) -> bytes:
    if isinstance(model, OnnxModel):
        return model.content
    raise InvalidTypeError(
        "an Embedder with a callable model cannot be saved, because a model file contains no code; "
        "export the model to ONNX and give the path"
    )


def parameters_from_json(
    header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Parameters from an untrusted file, and name and hash of the weights."""
    parameters = {**parameters_of(header), **OF_THE_MACHINE}
    model, cache = parameters.get("model"), parameters.get("cache", True)
    if isinstance(model, dict):
        parameters["model"] = _included_onnx(model, tensors)
    elif model not in PRETRAINED:
        # Never a path: a file must not decide which other files are read.
        raise ModelFileError(f"the model file names an unknown network {model!r}")
    if not isinstance(cache, bool):
        raise ModelFileError("the model file names a cache folder")
    if parameters.get("preprocessing") is not None:
        parameters["preprocessing"] = Preprocessing.from_json(parameters["preprocessing"])
    if parameters.get("limits") is not None:
        parameters["limits"] = _tighten(ReadLimits(**parameters["limits"]))
    return parameters, None if isinstance(model, dict) else _saved_weights(header, model)


def _tighten(limits: ReadLimits) -> ReadLimits:
    """Limits from a file: they may be stricter than the default but never wider."""
    return ReadLimits(
        min(limits.max_pixels, DEFAULT_LIMITS.max_pixels),
        min(limits.max_bytes, DEFAULT_LIMITS.max_bytes),
    )


def _included_onnx(entry: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> OnnxModel:
    content = check_array(tensors.get("onnx"), "onnx", np.uint8, (None,)).tobytes()
    model = OnnxModel(content)
    if entry != {_INSIDE: model.sha256}:
        raise ModelFileError("the model file is inconsistent: its ONNX model has another hash")
    return model


def _saved_weights(header: dict[str, Any], model: Any) -> tuple[str, str]:
    found = header.get("weights")
    if not isinstance(found, dict) or set(found) != {"name", "sha256"} or found["name"] != model:
        raise ModelFileError("the model file does not name the weights it was saved with")
    return str(found["name"]), str(found["sha256"])
