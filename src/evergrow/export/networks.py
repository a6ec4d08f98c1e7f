"""The networks of an embedder, as ONNX files with what has to be known to run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.errors import InvalidTypeError
from evergrow.vision.embedding.embedder import Embedder
from evergrow.vision.embedding.model_zoo import PRETRAINED
from evergrow.vision.embedding.networks import OnnxModel
from evergrow.vision.embedding.onnx_file import (
    ImageModel,
    check_onnx,
    default_preprocessing,
)
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.torch_module import is_torch_module


@dataclass(frozen=True)
class NetworkFile:
    """One network: its ONNX file, and how it is run.

    Attributes
    ----------
    name : str
        The name of a known network, else "network".
    content : bytes
        The ONNX file, with outputs for all stages that are used.
    model : ImageModel
        Its input and outputs.
    preprocessing : Preprocessing
        How images are prepared for it.
    blocks : tuple of (str, int)
        The outputs that are used, the head first, and their widths.
    sha256 : str
        Hash of its weights.
    licence : str or None
        The licence of its weights, if it is known.
    """

    name: str
    content: bytes
    model: ImageModel
    preprocessing: Preprocessing
    blocks: tuple[tuple[str, int], ...]
    sha256: str
    licence: str | None

    def describe(self) -> dict[str, Any]:
        """What a file says of the network, as JSON values."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "licence": self.licence,
            "preprocessing": self.preprocessing.to_json(),
            "blocks": dict(self.blocks),
        }


def network_files(embedder: Embedder) -> list[NetworkFile]:
    """The networks of an embedder; a ``TypeError`` for one that is not an ONNX file."""
    # Loading checks all parameters, and the weights against those of the model file.
    widths = list(embedder.network().blocks.values())
    stages = tuple(int(stage) for stage in embedder.stages)
    files, n_blocks = [], 1 + len(stages)
    for number, (model, preprocessing) in enumerate(
        zip(embedder._resolve_models(), embedder._preprocessings(), strict=True)
    ):
        own = widths[number * n_blocks : (number + 1) * n_blocks]
        files.append(_network_file(model, preprocessing, stages, own, embedder._cache_folder()))
    return files


def _network_file(
    model: Any,
    preprocessing: Preprocessing | None,
    stages: tuple[int, ...],
    widths: Sequence[int],
    cache: Any,
) -> NetworkFile:
    if isinstance(model, str):
        known = PRETRAINED[model]
        content, sha256 = known.onnx(cache, stages), known.weights_sha256()
        name, licence, preprocessing = model, known.licence, preprocessing or known.preprocessing
    elif isinstance(model, OnnxModel):
        content, sha256 = model.content, model.sha256
        name, licence = "network", None
    else:
        what = "a torch module" if is_torch_module(model) else "a function"
        raise InvalidTypeError(
            f"features by {what} cannot be exported: convert it to an ONNX file (torch.onnx.export "
            "does), and fit with Embedder('file.onnx')"
        )
    described = check_onnx(content, f"the network {name}")
    outputs = described.outputs(stages, f"the network {name}")
    return NetworkFile(
        name,
        content,
        described,
        preprocessing or default_preprocessing(described.images),
        tuple(zip(outputs, widths, strict=True)),
        sha256,
        licence,
    )
