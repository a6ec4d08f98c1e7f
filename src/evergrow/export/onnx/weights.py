"""Weights of an ONNX network in half precision, or as 8-bit integers with scales.

Only the file becomes smaller: the graph turns the stored numbers back into float32 before it uses
them, so that every runtime with the operators of the network runs it. The integers become floats
by ``Cast`` and ``Mul``, not ``DequantizeLinear``: ONNX Runtime folds the former when it loads a
file, and repeats the latter in every run, which makes a network twice as slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from evergrow.export.onnx.graph import import_onnx
from evergrow.foundation.params import Choice, check_parameters
from evergrow.vision.embedding.onnx_file import parse_onnx

Weights = Literal["float32", "float16", "int8"]
WEIGHTS: tuple[Weights, ...] = ("float32", "float16", "int8")


@dataclass(frozen=True)
class HeadTypes:
    """Types in which the numbers behind the network are stored; all sums are in double precision.

    Attributes
    ----------
    weights : dtype
        One number per feature and class.
    large : dtype
        Matrices of two numbers of features: random projections, and metrics.
    """

    weights: type[np.floating[Any]]
    large: type[np.floating[Any]]


HEAD_TYPES = {
    "float32": HeadTypes(np.float64, np.float32),
    "float16": HeadTypes(np.float32, np.float16),
    "int8": HeadTypes(np.float32, np.float16),
}

# Smaller arrays, such as biases, are stored as they are: there is nothing to be saved.
_MIN_VALUES = 1024
# Smaller ones, and all of grouped convolutions, are no integers: these first layers take a
# twentieth of the bytes of a network, but most of its error would come from them.
_MIN_INTEGERS = 1 << 14
_LARGEST_HALF = float(np.finfo(np.float16).max)
_LARGEST_INTEGER = 127


def store_weights(network: bytes, weights: Weights) -> bytes:
    """Store the large arrays of an ONNX network in fewer bytes; return the new file.

    Parameters
    ----------
    network : bytes
        An ONNX file, all weights included.
    weights : {"float32", "float16", "int8"}
        How arrays of at least 1024 float32 numbers are stored: as they are; in half precision; or
        as integers from -127 to 127 with one scale per output channel. Integers are used only for
        weights of ``Conv``, ``ConvTranspose``, ``Gemm`` and ``MatMul``; those of grouped
        convolutions, and arrays of less than 16384 numbers, are in half precision then. An array
        with values that half precision cannot hold stays as it is.

    Returns
    -------
    content : bytes
        The same network with the same inputs and outputs; equal arguments give equal bytes.

    Examples
    --------
    >>> from evergrow.export.onnx.weights import store_weights
    >>> from evergrow.vision.embedding.model_zoo import PRETRAINED
    >>> network = PRETRAINED["efficientnet-lite0"].onnx(None)
    >>> sizes = [len(store_weights(network, one)) for one in ("float32", "float16", "int8")]
    >>> [round(size / 1e6, 1) for size in sizes]
    [13.4, 6.7, 3.7]
    """
    check_parameters({"weights": weights}, {"weights": [Choice(WEIGHTS)]})
    model = parse_onnx(network, "the network")
    if weights == "float32":
        return network
    store_graph_weights(model.graph, weights)
    return cast("bytes", model.SerializeToString(deterministic=True))


def store_graph_weights(graph: Any, weights: Weights) -> None:
    """Store the large arrays of a parsed graph in fewer bytes, in place."""
    store = _STORES.get(weights)
    if store is None:
        return
    _collect_constants(graph)
    axes = _channel_axes(graph)
    kept, nodes = [], []
    for tensor in graph.initializer:
        stored = store(tensor, axes.get(tensor.name)) if _is_large(tensor) else None
        kept += [tensor] if stored is None else stored.arrays
        nodes += [] if stored is None else stored.nodes
    # The file names restored arrays as the original does, so that no other operator changes; but
    # what an operator computes cannot be an input, as old files list their weights.
    computed = {name for node in nodes for name in node.output}
    inputs = [one for one in graph.input if one.name not in computed]
    _replace(graph.input, inputs)
    _replace(graph.initializer, kept)
    _replace(graph.node, [*nodes, *graph.node])


@dataclass(frozen=True)
class _Stored:
    """What replaces an array: smaller ones, and the operators that compute it from these."""

    arrays: list[Any]
    nodes: list[Any]


def _is_large(tensor: Any) -> bool:
    is_float = tensor.data_type == import_onnx().TensorProto.FLOAT
    return is_float and int(np.prod(tensor.dims, dtype=np.int64)) >= _MIN_VALUES


def _store_half(tensor: Any, _: int | None) -> _Stored | None:
    onnx = import_onnx()
    values = onnx.numpy_helper.to_array(tensor)
    # Not finite either: that is for the network to answer for, not for this function to change.
    if not np.abs(values).max() <= _LARGEST_HALF:
        return None
    stored = f"{tensor.name}:float16"
    half = onnx.numpy_helper.from_array(values.astype(np.float16), stored)
    return _Stored([half], [_to_float(stored, tensor.name)])


def _store_integers(tensor: Any, axis: int | None) -> _Stored | None:
    onnx = import_onnx()
    values = onnx.numpy_helper.to_array(tensor)
    if axis is None or values.size < _MIN_INTEGERS or not np.isfinite(values).all():
        return _store_half(tensor, axis)
    integers, scales = _to_integers(values, axis)
    stored, scaled, floats = (f"{tensor.name}:{end}" for end in ("int8", "scales", "floats"))
    arrays = [
        onnx.numpy_helper.from_array(integers, stored),
        onnx.numpy_helper.from_array(scales, scaled),
    ]
    multiply = onnx.helper.make_node("Mul", [floats, scaled], [tensor.name], f"{tensor.name}:scale")
    return _Stored(arrays, [_to_float(stored, floats), multiply])


def _to_integers(
    values: npt.NDArray[np.float32], axis: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Integers and one scale per entry of an axis; the largest weight becomes 127 or -127."""
    others = tuple(one for one in range(values.ndim) if one != axis)
    largest = np.abs(values).max(axis=others, keepdims=True)
    # A channel of zeros has any scale; the smallest scales would not be exact.
    usable = largest > np.finfo(np.float32).tiny * _LARGEST_INTEGER
    scales = np.where(usable, largest / _LARGEST_INTEGER, 1).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


def _to_float(stored: str, name: str) -> Any:
    onnx = import_onnx()
    return onnx.helper.make_node(
        "Cast", [stored], [name], f"{stored}:cast", to=onnx.TensorProto.FLOAT
    )


_STORES: dict[str, Callable[[Any, int | None], _Stored | None]] = {
    "float16": _store_half,
    "int8": _store_integers,
}


def _channel_axes(graph: Any) -> dict[str, int | None]:
    """The axis of the output channels of each array that is the weights of an operator.

    None for arrays that are used in other ways too, in subgraphs for instance.
    """
    found: dict[str, set[int | None]] = {}
    dimensions = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for node in _all_nodes(graph):
        for place, name in enumerate(node.input):
            if name in dimensions:
                axis = _weight_axis(node, dimensions[name]) if place == 1 else None
                found.setdefault(name, set()).add(axis)
    return {name: axes.pop() if len(axes) == 1 else None for name, axes in found.items()}


def _weight_axis(node: Any, n_dimensions: int) -> int | None:
    """The axis of the output channels in the second input of an operator."""
    if node.op_type in ("Conv", "ConvTranspose"):
        is_grouped = any(one.name == "group" and one.i > 1 for one in node.attribute)
        return None if is_grouped else int(node.op_type == "ConvTranspose")
    if node.op_type == "MatMul":
        return n_dimensions - 1 if n_dimensions >= 2 else None
    if node.op_type == "Gemm":
        transposed = any(one.name == "transB" and one.i for one in node.attribute)
        return 0 if transposed else 1
    return None


def _all_nodes(graph: Any) -> Iterable[Any]:
    """The operators of a graph and of the graphs in its operators."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _all_nodes(inner)


def _collect_constants(graph: Any) -> None:
    """Turn operators that only return a large array into arrays of the graph."""
    others = []
    for node in graph.node:
        tensors = [one.t for one in node.attribute if one.name == "value"]
        if node.op_type == "Constant" and tensors and _is_large(tensors[0]):
            graph.initializer.append(tensors[0])
            graph.initializer[-1].name = node.output[0]
        else:
            others.append(node)
    _replace(graph.node, others)


def _replace(repeated: Any, entries: Iterable[Any]) -> None:
    """Replace the entries of a repeated field."""
    copies = list(entries)
    del repeated[:]
    repeated.extend(copies)
