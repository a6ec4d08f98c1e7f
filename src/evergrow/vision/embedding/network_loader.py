"""From the parameters of an embedder to its network."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import display_name
from evergrow.vision.embedding.joined_network import JoinedNetwork
from evergrow.vision.embedding.model_zoo import PRETRAINED
from evergrow.vision.embedding.networks import CallableNetwork, Network, OnnxModel, OnnxNetwork
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.torch_module import TorchNetwork, is_torch_module


def as_list(parameter: Any) -> list[Any]:
    """The models, or their preprocessings: a list of one unless there are several."""
    return list(parameter) if isinstance(parameter, (tuple, list)) else [parameter]


def is_path(model: object) -> bool:
    """Whether a model is the path of a file; a string may also be a known name."""
    return isinstance(model, os.PathLike) or (isinstance(model, str) and model not in PRETRAINED)


@dataclass(frozen=True)
class NetworkLoader:
    """Loads networks with the same stages and threads.

    ``check_weights`` gets the name of a known network and the hash of its weights, and raises an
    error if these are not the ones that were used before.
    """

    stages: tuple[int, ...]
    n_threads: int
    cache_folder: Path | None
    check_weights: Callable[[str, str], None]

    def load_all(
        self, models: Sequence[Any], preprocessings: Sequence[Preprocessing | None], paths: Any
    ) -> Network:
        """Load one network, or several as one; ``paths`` are the models as they were given."""
        given = zip(models, preprocessings, as_list(paths), strict=True)
        networks = [self._load(*one) for one in given]
        if len(networks) == 1:
            return networks[0]
        return JoinedNetwork(dict(zip(_network_names(models), networks, strict=True)))

    def _load(self, model: Any, preprocessing: Preprocessing | None, path: Any) -> Network:
        if isinstance(model, str):
            return self._load_pretrained(model, preprocessing)
        if isinstance(model, OnnxModel):
            name = f"the ONNX model {display_name(path)}" if is_path(path) else "the ONNX model"
            return self._load_onnx(model.content, name, preprocessing, bounded=model.bounded)
        if self.stages:
            raise InvalidInputError(
                "stages must be () if the model is a callable or a torch module: only known "
                "networks and ONNX files have stages"
            )
        if is_torch_module(model):
            return TorchNetwork(model, preprocessing)
        if preprocessing is not None:
            raise InvalidInputError("preprocessing must be None if the model is a callable")
        return CallableNetwork(model)

    def _load_pretrained(self, name: str, preprocessing: Preprocessing | None) -> Network:
        pretrained = PRETRAINED[name]
        weights = pretrained.weights_sha256()
        self.check_weights(name, weights)
        content = pretrained.onnx(self.cache_folder, self.stages)
        return self._load_onnx(content, name, preprocessing or pretrained.preprocessing, weights)

    def _load_onnx(
        self,
        content: bytes,
        name: str,
        preprocessing: Preprocessing | None,
        weights: str | None = None,
        *,
        bounded: bool = False,
    ) -> Network:
        return OnnxNetwork(
            content,
            name=name,
            preprocessing=preprocessing,
            n_threads=self.n_threads,
            stages=self.stages,
            weights=weights,
            bounded=bounded,
        )


def _network_names(models: Sequence[Any]) -> list[str]:
    """A known name where it is unique, else the number of the network."""
    known = [model if isinstance(model, str) else None for model in models]
    return [
        name if name is not None and known.count(name) == 1 else str(number)
        for number, name in enumerate(known)
    ]
