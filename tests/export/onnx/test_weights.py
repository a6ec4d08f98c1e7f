"""Networks with smaller weights compute almost the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from evergrow import InvalidInputError
from evergrow.export.onnx.weights import WEIGHTS, store_weights
from evergrow.vision.embedding.model_zoo import PRETRAINED

DRAW = np.random.default_rng(0)


def one_layer(
    kind: str,
    shape: tuple[int, ...],
    rows: tuple[int, ...],
    *,
    values: Any = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """One operator with weights of a shape, on input of shape ``rows``."""
    if values is None:
        values = DRAW.normal(size=shape)
    weights = numpy_helper.from_array(np.asarray(values, np.float32), "weights")
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "weights"], ["y"], **attributes)],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def run(content: bytes, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(onnxruntime.InferenceSession(content).run(None, {"x": x})[0])


LAYERS = {
    "Conv": ((128, 48, 1, 3), (2, 48, 5, 5), {}),
    "Conv in groups": ((128, 48, 1, 3), (2, 96, 5, 5), {"group": 2}),
    "ConvTranspose": ((48, 128, 1, 3), (2, 48, 5, 5), {}),
    "MatMul": ((96, 192), (4, 96), {}),
    "Gemm": ((96, 192), (4, 96), {}),
    "Gemm transposed": ((192, 96), (4, 96), {"transB": 1}),
}
# Relative to the largest output.
TOLERANCES = {"float32": 0.0, "float16": 1e-3, "int8": 1e-2}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_layer_computes_almost_the_same(layer: str, weights: Any) -> None:
    shape, rows, attributes = LAYERS[layer]
    content = one_layer(layer.split(maxsplit=1)[0], shape, rows, **attributes).SerializeToString()
    x = DRAW.normal(size=rows).astype(np.float32)
    expected, found = run(content, x), run(store_weights(content, weights), x)
    np.testing.assert_allclose(found, expected, atol=TOLERANCES[weights] * np.abs(expected).max())


@pytest.mark.parametrize(("weights", "share"), [("float16", 0.55), ("int8", 0.35)])
def test_the_file_becomes_smaller(weights: Any, share: float) -> None:
    content = one_layer("MatMul", (192, 192), (4, 192)).SerializeToString()
    assert len(store_weights(content, weights)) < share * len(content)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_inputs_outputs_and_validity_are_kept(weights: Any) -> None:
    network = PRETRAINED["efficientnet-lite0"].onnx(None, (5,))
    before, after = (
        onnx.load_model_from_string(one) for one in (network, store_weights(network, weights))
    )
    onnx.checker.check_model(after, full_check=True)
    assert list(after.graph.input) == list(before.graph.input)
    assert list(after.graph.output) == list(before.graph.output)


def test_weights_beyond_half_precision_stay_as_they_are() -> None:
    values = DRAW.normal(size=(32, 64)) * 1e5
    content = one_layer("MatMul", (32, 64), (4, 32), values=values).SerializeToString()
    x = DRAW.normal(size=(4, 32)).astype(np.float32)
    np.testing.assert_array_equal(run(store_weights(content, "float16"), x), run(content, x))


@pytest.mark.parametrize(
    ("kind", "shape", "rows", "options"),
    [
        ("Mul", (192, 192), (192, 192), {}),
        ("MatMul", (96, 96), (4, 96), {}),
        ("Conv", (512, 1, 7, 7), (1, 512, 7, 7), {"group": 512}),
    ],
    ids=["no weights", "few", "grouped"],
)
def test_what_integers_would_harm_is_in_half_precision(
    kind: str, shape: Any, rows: Any, options: Any
) -> None:
    content = one_layer(kind, shape, rows, **options).SerializeToString()
    assert store_weights(content, "int8") == store_weights(content, "float16") != content


@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_weights_that_are_inputs_or_constants_too_are_stored_in_fewer_bytes(weights: Any) -> None:
    listed = one_layer("MatMul", (192, 192), (4, 192))
    listed.ir_version = 3
    listed.graph.input.append(
        helper.make_tensor_value_info("weights", TensorProto.FLOAT, [192, 192])
    )
    constant = one_layer("MatMul", (192, 192), (4, 192))
    node = helper.make_node("Constant", [], ["weights"], value=constant.graph.initializer[0])
    del constant.graph.initializer[:]
    constant.graph.node.insert(0, node)
    x = DRAW.normal(size=(4, 192)).astype(np.float32)
    for model in (listed, constant):
        content = model.SerializeToString()
        stored = store_weights(content, weights)
        assert len(stored) < 0.55 * len(content)
        assert [one.name for one in onnx.load_model_from_string(stored).graph.input] == ["x"]
        expected = run(content, x)
        np.testing.assert_allclose(run(stored, x), expected, atol=0.02 * np.abs(expected).max())


def test_an_unknown_precision_is_refused() -> None:
    content = one_layer("MatMul", (32, 64), (4, 32)).SerializeToString()
    with pytest.raises(InvalidInputError, match="weights must be one of"):
        store_weights(content, "int4")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"no network", b"\x08\x08" * 50])
def test_what_is_no_network_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="is not an ONNX model"):
        store_weights(content, "int8")
