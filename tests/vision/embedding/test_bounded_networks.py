"""Networks of model files are run with limits of memory and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import evergrow
from evergrow import Embedder, ModelFileError, NCMClassifier
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding import networks
from evergrow.vision.embedding.networks import OnnxModel
from tests.vision.embedding.models import onnx_model

IMAGES = [np.full((8, 8, 3), value, np.uint8) for value in (0, 50, 250)]


def _with_nodes(nodes: list[Any], constants: dict[str, Any]) -> onnx.ModelProto:
    """The small network, and operations that it does not need."""
    model = onnx_model()
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    # Unused results would be left out, so one of them is added to the features.
    model.graph.node.append(helper.make_node("ReduceMax", ["big"], ["most"], keepdims=0))
    model.graph.node.append(helper.make_node("Mul", ["most", "zero"], ["nothing"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    model.graph.node.append(helper.make_node("Add", ["features", "nothing"], ["sum"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["n", 5]))
    return model


def _huge() -> onnx.ModelProto:
    fill = helper.make_node("ConstantOfShape", ["shape"], ["big"])
    return _with_nodes([fill], {"shape": np.array([1 << 30], np.int64)})


def _endless() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Add", ["x", "x"], ["y"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
        ],
    )
    loop = helper.make_node("Loop", ["times", "true", "scale"], ["big"], body=body)
    return _with_nodes([loop], {"times": np.int64(1 << 62), "true": np.bool_(True)})


def _by_value() -> onnx.ModelProto:
    """The size of an array follows from the pixels."""
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["most_of_all"], keepdims=0),
        helper.make_node("Cast", ["most_of_all"], ["size"], to=TensorProto.INT64),
        helper.make_node("Range", ["none", "size", "one"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["big"], to=TensorProto.FLOAT),
    ]
    return _with_nodes(nodes, {"none": np.int64(0), "one": np.int64(1)})


@pytest.mark.parametrize(
    ("model", "message"),
    [(_huge, "a model file may take"), (_endless, "uses Loop"), (_by_value, "not known before")],
    ids=["huge array", "endless loop", "size by value"],
)
def test_networks_from_files_may_neither_loop_nor_grow(model: Any, message: str) -> None:
    content = model().SerializeToString()
    with pytest.raises(InvalidInputError, match=message):
        Embedder(OnnxModel(content, bounded=True)).fit(IMAGES)


def test_other_domains_are_refused() -> None:
    model = _with_nodes([helper.make_node("Gelu", ["scale"], ["big"], domain="com.microsoft")], {})
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(InvalidInputError, match=r"com\.microsoft\.Gelu"):
        Embedder(OnnxModel(model.SerializeToString(), bounded=True)).fit(IMAGES)


def test_a_network_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "_MAX_SECONDS", 0.05)
    monkeypatch.setattr(networks, "_MAX_SECONDS_PER_IMAGE", 0.0)
    side = 2048
    nodes = [helper.make_node("MatMul", ["square", "square"], ["square0"])]
    nodes += [
        helper.make_node("MatMul", [f"square{i}", "square"], [f"square{i + 1}"]) for i in range(60)
    ]
    nodes.append(helper.make_node("Mul", ["square60", "depends"], ["big"]))
    nodes.insert(0, helper.make_node("ReduceMax", ["images"], ["depends"], keepdims=0))
    nodes[1] = helper.make_node("MatMul", ["first", "square"], ["square0"])
    nodes.insert(1, helper.make_node("Mul", ["square", "depends"], ["first"]))
    model = _with_nodes(nodes, {"square": np.zeros((side, side), np.float32)})
    with pytest.raises(InvalidInputError, match="cannot be run"):
        Embedder(OnnxModel(model.SerializeToString(), bounded=True)).fit(IMAGES)


def test_a_network_inside_a_file_is_bounded_and_can_be_refused(tmp_path: Path) -> None:
    network, path = tmp_path / "small.onnx", tmp_path / "model.evergrow"
    network.write_bytes(onnx_model().SerializeToString())
    embedder = Embedder(network).fit(IMAGES)
    evergrow.save(embedder, path)
    loaded = evergrow.load(path, expect=Embedder)
    assert loaded.model.bounded
    np.testing.assert_array_equal(loaded.transform(IMAGES), embedder.transform(IMAGES))
    with pytest.raises(ModelFileError, match="networks=False"):
        evergrow.load(path, networks=False)


def test_a_model_without_a_network_loads_with_networks_false(tmp_path: Path) -> None:
    path = tmp_path / "model.evergrow"
    NCMClassifier().fit([[0.0], [1.0]], [0, 1]).save(path)
    assert evergrow.load(path, networks=False).predict([[0.1]]) == [0]
