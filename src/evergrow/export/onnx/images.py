"""From pixels to vectors: the preparation of images, their networks, and blocks of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.export.networks import NetworkFile
from evergrow.export.onnx.graph import MIN_OPSET, Graph, import_onnx
from evergrow.export.onnx.resizing import resize_images
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.onnx_file import parse_onnx
from evergrow.vision.embedding.preprocessing import Preprocessing

# Read by every supported version of the runtime.
_IR_VERSION = 8
_DEFAULT_DOMAINS = ("", "ai.onnx")


class Networks:
    """Parsed networks, all in the operators of one version of ONNX; perhaps none."""

    def __init__(self, files: Sequence[NetworkFile]) -> None:
        self.files = files
        models = [parse_onnx(file.content, f"the network {file.name}") for file in files]
        self.opset = max([MIN_OPSET, *(_opset(model) for model in models)])
        self.models = [
            _convert(model, self.opset, file.name)
            for model, file in zip(models, files, strict=True)
        ]

    @property
    def ir_version(self) -> int:
        """The format of the file: the latest one among the networks."""
        return max([_IR_VERSION, *(int(model.ir_version) for model in self.models)])

    @property
    def opsets(self) -> dict[str, int]:
        """Versions of the operators, by domain; that of ONNX itself has no name."""
        others = {
            one.domain: int(one.version)
            for model in self.models
            for one in model.opset_import
            if one.domain not in _DEFAULT_DOMAINS
        }
        return {"": self.opset, **others}

    @property
    def functions(self) -> list[Any]:
        """The functions that the networks define."""
        return [function for model in self.models for function in model.functions]

    @property
    def initializers(self) -> list[Any]:
        """The weights of all networks, once :meth:`embed` was called."""
        return [tensor for model in self.models for tensor in model.graph.initializer]

    @property
    def sparse_initializers(self) -> list[Any]:
        """Their sparse weights, likewise."""
        return [tensor for model in self.models for tensor in model.graph.sparse_initializer]

    @property
    def fixed_batch(self) -> bool:
        """Whether a network takes a fixed number of images only."""
        return any(file.model.images.shape[0] is not None for file in self.files)

    def embed(self, graph: Graph, images: str) -> str:
        """Add everything from uint8 images to float32 vectors of shape (n, n_features)."""
        parts = []
        for number, (file, model) in enumerate(zip(self.files, self.models, strict=True)):
            blocks = _run_network(graph, images, file, model, f"network{number}/")
            # As the library does: blocks next to each other must have comparable lengths.
            if len(blocks) > 1 or len(self.files) > 1:
                blocks = [scale_to_unit_length(graph, block) for block in blocks]
            parts += blocks
        return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def scale_to_unit_length(graph: Graph, rows: str) -> str:
    """Scale float32 rows to length one; a row of zeros stays."""
    exact = graph.cast(rows, np.float64)
    squares = graph.reduce("ReduceSumSquare", exact, [1], keep=True)
    is_zero = graph.add("Equal", squares, graph.constant(0.0))
    lengths = graph.add("Sqrt", graph.add("Where", is_zero, graph.constant(1.0), squares))
    return graph.cast(graph.add("Div", exact, lengths), np.float32)


def _run_network(
    graph: Graph, images: str, file: NetworkFile, model: Any, prefix: str
) -> list[str]:
    """Prepare images, run one network, and return its blocks of features."""
    preprocessing = file.preprocessing
    pixels = resize_images(graph, images, preprocessing)
    prepared = _normalize(graph, pixels, preprocessing)
    n_images = file.model.images.shape[0]
    if n_images is not None and n_images > 1:
        shape = graph.constant([n_images, *preprocessing.shape], np.int64)
        prepared = graph.add("Expand", prepared, shape)
    inner = import_onnx().compose.add_prefix_graph(model.graph, prefix)
    graph.rename(prepared, prefix + file.model.images.name)
    graph.nodes.extend(inner.node)
    model.graph.CopyFrom(inner)
    blocks = []
    for number, (output, width) in enumerate(file.blocks):
        block = graph.cast(prefix + output, np.float32)
        if number:
            block = _average(graph, block, width, preprocessing.layout)
        block = graph.add("Reshape", block, graph.constant([-1, width], np.int64))
        if n_images is not None and n_images > 1:
            first, end = (graph.constant([bound], np.int64) for bound in (0, 1))
            block = graph.add("Slice", block, first, end)
        blocks.append(block)
    return blocks


def _normalize(graph: Graph, pixels: str, preprocessing: Preprocessing) -> str:
    """Order axes and channels, subtract the mean, and scale."""
    if preprocessing.channels == "bgr":
        pixels = graph.add("Gather", pixels, graph.constant([2, 1, 0], np.int64), axis=3)
    if preprocessing.layout == "nchw":
        pixels = graph.add("Transpose", pixels, perm=[0, 3, 1, 2])
    values = graph.cast(pixels, np.float32)

    def per_channel(numbers: Any) -> npt.NDArray[np.float32]:
        array = np.asarray(numbers, dtype=np.float32)
        return array.reshape(-1, 1, 1) if preprocessing.layout == "nchw" and array.ndim else array

    values = graph.add("Sub", values, graph.constant(per_channel(preprocessing.mean), np.float32))
    return graph.add("Div", values, graph.constant(per_channel(preprocessing.scale), np.float32))


def _average(graph: Graph, stage: str, width: int, layout: str) -> str:
    """Average over the positions in an image; a stage that has none stays as it is."""
    shape = [0, width, -1] if layout == "nchw" else [0, -1, width]
    flat = graph.add("Reshape", stage, graph.constant(shape, np.int64))
    return graph.reduce("ReduceMean", flat, [2 if layout == "nchw" else 1])


def _opset(model: Any) -> int:
    found = [one.version for one in model.opset_import if one.domain in _DEFAULT_DOMAINS]
    # A file without a version is of the first one.
    return int(found[0]) if found else 1


def _convert(model: Any, opset: int, name: str) -> Any:
    """The same network in the operators of a later version."""
    if _opset(model) == opset:
        return model
    try:
        return import_onnx("onnx.version_converter").convert_version(model, opset)
    # The converter raises errors of its own, and of the library that it is written in.
    except Exception as error:
        raise InvalidInputError(
            f"the network {name} is of version {_opset(model)} of ONNX's operators and cannot be "
            f"converted to version {opset}: export it for that version; {error}"
        ) from error
