"""ONNX files: untrusted ones are checked, and external weights included, before they are run."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import display_name
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.sources import import_extra

# The limit of protocol buffers.
_MAX_BYTES = 2**31 - 1
# Types that store several values in one byte; in NumPy each value takes one byte.
_PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
# A model defines its batch size and image size; this is about a thousand images of 512 x 512.
_MAX_BATCH_BYTES = 1 << 32
_FLOAT_BYTES = 4
# Limits of a network that came with a model file: bytes of its largest array and of all of them,
# for one batch of its own size or for one image.
_MAX_ARRAY_BYTES = 1 << 28
_MAX_ALL_BYTES = 1 << 31
# Operators that repeat others.
_REPEATING = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_DEFAULT_SIDE = Preprocessing().height_and_width[0]


@dataclass(frozen=True)
class ImageInput:
    """The input of an image network: its name and shape, None for variable sizes."""

    name: str
    shape: tuple[int | None, ...]

    def check(self, preprocessing: Preprocessing) -> None:
        """Raise a ``ValueError`` if the prepared images do not fit."""
        for expected, prepared in zip(self.shape[1:], preprocessing.shape, strict=True):
            if expected not in (None, prepared):
                raise InvalidInputError(
                    f"the ONNX model takes images of shape {self.shape[1:]}, "
                    f"preprocessing returns {preprocessing.shape}: change its size or layout"
                )
        batch = (self.shape[0] or 1, *preprocessing.shape)
        if math.prod(batch) * _FLOAT_BYTES > _MAX_BATCH_BYTES:
            raise InvalidInputError(
                f"the ONNX model takes batches of shape {batch}, which are larger than the limit "
                f"of {_MAX_BATCH_BYTES} bytes: export it with a variable batch size"
            )


@dataclass(frozen=True)
class ImageModel:
    """The input of an image network, its main output, and its outputs of earlier stages."""

    images: ImageInput
    head: str
    stages: tuple[int, ...]

    def outputs(self, stages: Sequence[int], name: str) -> list[str]:
        """The names of the outputs to compute; a ``ValueError`` for a stage that it lacks."""
        missing = [stage for stage in stages if stage not in self.stages]
        if missing:
            have = f"the stages {', '.join(map(str, self.stages))}" if self.stages else "no stages"
            raise InvalidInputError(
                f"{name} has no stage {missing[0]}: it has {have}. Stages of an ONNX model are "
                f"outputs with names such as {stage_name(missing[0])!r}: export it with these, or "
                "leave the stage out"
            )
        return [self.head, *map(stage_name, stages)]


def stage_name(stage: int) -> str:
    """The name of the output of a stage.

    >>> stage_name(7)
    'stage7'
    """
    return f"stage{stage}"


def default_preprocessing(image_input: ImageInput) -> Preprocessing:
    """Default preprocessing for a network of which only the input shape is known."""
    _, first, _, last = image_input.shape
    if 3 not in (first, last):
        raise InvalidInputError(
            f"the ONNX model takes images of shape {image_input.shape[1:]}, which have no axis "
            "of 3 channels: set preprocessing"
        )
    layout = "nchw" if first == 3 else "nhwc"
    sides = image_input.shape[2:] if layout == "nchw" else image_input.shape[1:3]
    height, width = (side or _DEFAULT_SIDE for side in sides)
    return Preprocessing(size=(height, width), layout=layout)


def read_onnx(path: str | os.PathLike[str]) -> bytes:
    """Read an ONNX file, including weights that it stores in other files.

    Those files must lie in the folder of the model: a model must not read arbitrary files.
    """
    source = Path(path)
    onnx = import_extra("onnx")
    content = _limited_bytes(source)
    model = parse_onnx(content, display_name(source))
    external = [tensor for tensor in _constants(model) if _is_external(onnx, tensor)]
    if not external:
        # Unchanged: serialized again, it might have another hash.
        return content
    _check_external(external, source)
    try:
        onnx.load_external_data_for_model(model, str(source.parent))
        return cast("bytes", model.SerializeToString(deterministic=True))
    except Exception as error:
        raise InvalidInputError(
            f"the weights of {display_name(source)} cannot be read: {error}"
        ) from error


def check_onnx(content: bytes, name: str) -> ImageModel:
    """Check an ONNX model and describe it; a ``ValueError`` if it is not a complete model."""
    onnx = import_extra("onnx")
    model = parse_onnx(content, name)
    if any(_is_external(onnx, tensor) for tensor in _constants(model)):
        raise InvalidInputError(f"{name} stores weights in other files")
    try:
        onnx.checker.check_model(model)
    # The checker raises errors of its own and of the libraries that it uses.
    except Exception as error:
        raise InvalidInputError(f"{name} is not a valid ONNX model: {error}") from error
    return _describe(onnx, model.graph, name)


def check_bounded(content: bytes, name: str, batch: Sequence[int]) -> None:
    """Check that a network from a stranger takes a known and limited amount of memory.

    A network is a program. A ``ValueError`` if it has operators that repeat others or that are not
    of ONNX itself, or an array whose size is not known before it is run, or is too large, for input
    of shape ``batch``.
    """
    onnx = import_extra("onnx")
    model = parse_onnx(content, name)
    if model.functions:
        raise InvalidInputError(f"{name} defines functions, which a model file may not")
    for node in _nodes(model):
        if node.domain not in ("", "ai.onnx") or node.op_type in _REPEATING:
            shown = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            raise InvalidInputError(f"{name} uses {shown}, which a model file may not")
    constants = {tensor.name for tensor in model.graph.initializer}
    (images,) = [one for one in model.graph.input if one.name not in constants]
    for dimension, size in zip(images.type.tensor_type.shape.dim, batch, strict=True):
        dimension.dim_value = size
    # What the file says of the sizes between is not believed.
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise InvalidInputError(f"{name} is not a valid ONNX model: {error}") from error
    known = {one.name: one for one in (*inferred.graph.value_info, *inferred.graph.output)}
    total = 0
    for node in inferred.graph.node:
        for output in filter(None, node.output):
            total += _output_bytes(onnx, known.get(output), output, name)
    if total > _MAX_ALL_BYTES:
        raise InvalidInputError(
            f"{name} computes {total} bytes from one batch, a model file may take {_MAX_ALL_BYTES}"
        )


def _nodes(message: Any) -> Iterator[Any]:
    """Yield all operations of a model, also those of subgraphs."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in [value] if hasattr(value, "ListFields") else value:
            if inner.DESCRIPTOR.name == "NodeProto":
                yield inner
            yield from _nodes(inner)


def _output_bytes(onnx: Any, found: Any, output: str, name: str) -> int:
    """The size of an array of a network; a ``ValueError`` if it is not known or too large."""
    kind = found.type.tensor_type if found is not None else None
    if kind is None or not kind.HasField("shape") or kind.elem_type == onnx.TensorProto.UNDEFINED:
        raise InvalidInputError(f"{name} computes {output!r}, whose size is not known beforehand")
    if not all(one.HasField("dim_value") and one.dim_value >= 0 for one in kind.shape.dim):
        raise InvalidInputError(f"{name} computes {output!r}, whose size is not known beforehand")
    if kind.elem_type == onnx.TensorProto.STRING:
        raise InvalidInputError(f"{name} computes text, which a model file may not")
    width = int(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize)
    n_bytes: int = width * math.prod(one.dim_value for one in kind.shape.dim)
    if n_bytes > _MAX_ARRAY_BYTES:
        raise InvalidInputError(
            f"{name} computes {output!r} of {n_bytes} bytes, a model file may take "
            f"{_MAX_ARRAY_BYTES} for an array"
        )
    return n_bytes


def _limited_bytes(path: Path) -> bytes:
    what = "the ONNX model"
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInputError(f"{what} {display_name(path)} is not a regular file")
        if found.st_size > _MAX_BYTES:
            raise InvalidInputError(
                f"{what} {display_name(path)} is larger than {_MAX_BYTES} bytes"
            )
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{what} {display_name(path)} cannot be read: {error.strerror}"
        ) from error


def parse_onnx(content: bytes, name: str) -> Any:
    """Parse an ONNX file, unchecked; a ``ValueError`` that names it if it is anything else."""
    try:
        model = import_extra("onnx").load_model_from_string(content)
    # The parser has several implementations with different errors.
    except Exception as error:
        raise InvalidInputError(f"{name} is not an ONNX model: {error}") from error
    if not model.graph.node:
        raise InvalidInputError(f"{name} is not an ONNX model: it has no operations")
    return model


def _constants(message: Any) -> Iterator[Any]:
    """Yield all tensors of a model: in graphs and subgraphs, attributes, functions and training."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in [value] if hasattr(value, "ListFields") else value:
            if inner.DESCRIPTOR.name == "TensorProto":
                yield inner
            else:
                yield from _constants(inner)


def _is_external(onnx: Any, tensor: Any) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def _check_external(tensors: list[Any], source: Path) -> None:
    """Raise a ``ValueError`` for weights that are too large or outside the folder of the model."""
    folder = Path(os.path.realpath(source.parent))
    n_bytes, files = 0, {}
    for tensor in tensors:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        path = Path(os.path.realpath(folder / location))
        if not location or os.path.isabs(location) or not path.is_relative_to(folder):
            raise InvalidInputError(
                f"{display_name(source)} stores weights in {display_name(location)}: they must lie "
                "in the folder of the model"
            )
        files[path] = _file_size(path, source)
        n_bytes += _check_length(tensor, entries, files[path], source)
    if n_bytes > _MAX_BYTES:
        raise InvalidInputError(
            f"the weights of {display_name(source)} are larger than {_MAX_BYTES} bytes"
        )
    # Otherwise many tensors could refer to one small file and become a large model.
    if n_bytes > sum(files.values()):
        raise InvalidInputError(
            f"the weights of {display_name(source)} use the same bytes several times"
        )


def _check_length(tensor: Any, entries: dict[str, str], available: int, source: Path) -> int:
    """Return the size of a tensor in a file; a ``ValueError`` if the file does not contain it."""
    what = f"{display_name(source)} stores the weights {display_name(tensor.name)} in another file"
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", available - offset))
    except ValueError as error:
        raise InvalidInputError(f"{what}, at an offset that is not a number") from error
    needed = _n_bytes(tensor)
    if needed is None or length != needed:
        raise InvalidInputError(f"{what}: they need {needed} bytes, but it states {length}")
    if offset < 0 or offset + length > available:
        raise InvalidInputError(f"{what}, which is too short")
    return length


def _n_bytes(tensor: Any) -> int | None:
    """Size of a tensor by its shape and type; None for a type without a fixed size."""
    onnx = import_extra("onnx")
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    if name in ("UNDEFINED", "STRING") or any(size < 0 for size in tensor.dims):
        return None
    bits = _PACKED_BITS.get(name)
    if bits is None:
        bits = 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    n_values = int(math.prod(tensor.dims))
    return -(-n_values * bits // 8)


def _file_size(path: Path, source: Path) -> int:
    if not path.is_file():
        raise InvalidInputError(
            f"{display_name(source)} stores weights in {display_name(path)}: there is no such file"
        )
    return path.stat().st_size


def _describe(onnx: Any, graph: Any, name: str) -> ImageModel:
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [one for one in graph.input if one.name not in constants]
    outputs = [one.name for one in graph.output]
    found = {one: re.fullmatch(r"stage([1-9][0-9]?)", one) for one in outputs}
    # The only output is the features, whatever it is called.
    heads = [one for one in outputs if found[one] is None] if len(outputs) > 1 else outputs
    if len(inputs) != 1 or len(heads) != 1:
        raise InvalidInputError(
            f"{name} must have one input, the images, and one output, the features, apart from "
            f"outputs called {stage_name(1)}, {stage_name(2)} and so on; "
            f"it has {len(inputs)} and {len(heads)}"
        )
    stages = sorted(int(match[1]) for one, match in found.items() if match and one not in heads)
    return ImageModel(_find_input(onnx, inputs[0], name), heads[0], tuple(stages))


def _find_input(onnx: Any, image_input: Any, name: str) -> ImageInput:
    found = image_input.type.tensor_type
    dimensions = [one.dim_value if one.HasField("dim_value") else None for one in found.shape.dim]
    if found.elem_type != onnx.TensorProto.FLOAT or len(dimensions) != 4:
        kind = onnx.TensorProto.DataType.Name(found.elem_type)
        raise InvalidInputError(
            f"the input of {name} must be FLOAT with 4 dimensions, such as (n, 3, 224, 224); "
            f"it is {kind} with {len(dimensions)}"
        )
    # Some exporters write 0 or less for a variable size.
    shape = tuple(size if size is not None and size > 0 else None for size in dimensions)
    return ImageInput(image_input.name, shape)
