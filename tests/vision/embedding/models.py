"""Small ONNX models, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KERNEL = np.random.default_rng(0).normal(size=(5, 3, 1, 1)).astype(np.float32)


def onnx_model(
    shape: tuple[Any, ...] = ("n", 3, 8, 8),
    *,
    pool: bool = True,
    flatten: bool = True,
    kind: int = TensorProto.FLOAT,
    kernel: np.ndarray[Any, Any] = KERNEL,
    extra_input: bool = False,
    scale: float = 1.0,
) -> onnx.ModelProto:
    """Mix the channels of each pixel into five and average over the image."""
    nodes = [helper.make_node("Conv", ["images", "kernel"], ["mixed"])]
    last = "mixed"
    if pool:
        nodes.append(helper.make_node("GlobalAveragePool", [last], ["pooled"]))
        last = "pooled"
    if flatten:
        nodes.append(helper.make_node("Flatten", [last], ["flat"]))
        last = "flat"
    nodes.append(helper.make_node("Mul", [last, "scale"], ["features"]))
    inputs = [helper.make_tensor_value_info("images", kind, shape)]
    if extra_input:
        inputs.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    graph = helper.make_graph(
        nodes,
        "small",
        inputs,
        [helper.make_tensor_value_info("features", kind, list("abcd")[: 2 if flatten else 4])],
        [
            numpy_helper.from_array(kernel, "kernel"),
            numpy_helper.from_array(np.array(scale, np.float32), "scale"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def staged_model(side: int = 8, *, averaged: bool = False) -> onnx.ModelProto:
    """Two layers; the first one is an output called stage2, as a map or averaged."""
    model = onnx_model(("n", 3, side, side))
    stage = helper.make_node("Mul", ["images", "scale"], ["first" if averaged else "stage2"])
    model.graph.node.append(stage)
    if averaged:
        pool = helper.make_node("GlobalAveragePool", ["first"], ["pooled2"])
        model.graph.node.extend([pool, helper.make_node("Flatten", ["pooled2"], ["stage2"])])
    shape = list("ab") if averaged else list("abcd")
    model.graph.output.append(helper.make_tensor_value_info("stage2", TensorProto.FLOAT, shape))
    return model


def channels_last_model(side: int = 8) -> onnx.ModelProto:
    """The average of each channel of images whose channels come last."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["images"], ["features"], axes=[1, 2], keepdims=0)],
        "small",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", side, side, 3])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def with_outside_weights(location: str) -> onnx.ModelProto:
    """A model that says its kernel lies in another file."""
    model = onnx_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": "0", "length": str(KERNEL.nbytes)}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return model
