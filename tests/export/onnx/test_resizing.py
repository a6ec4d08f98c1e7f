"""Images are resized to the very pixels that Pillow makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from evergrow.export.onnx.graph import Graph
from evergrow.export.onnx.resizing import resize_images
from evergrow.vision import Preprocessing
from tests.export.onnx.runs import run

FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
_made: dict[Preprocessing, bytes] = {}


def resizer(preprocessing: Preprocessing, opset: int = 13) -> bytes:
    graph = Graph(opset)
    graph.rename(resize_images(graph, "images", preprocessing), "pixels")
    images = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", "h", "w", 3])
    pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, list("abcd"))
    made = helper.make_graph(graph.nodes, "resize", [images], [pixels], graph.initializers())
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape[1] * 1000 + shape[2]).integers(0, 256, shape, np.uint8)


def differences(preprocessing: Preprocessing, images: np.ndarray[Any, Any]) -> int:
    content = _made.setdefault(preprocessing, resizer(preprocessing))
    (found,) = run(content, images=images)
    expected = np.stack([preprocessing.fit_to_input(image) for image in images])
    assert found.shape == expected.shape
    return int((found != expected).sum())


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("resize", ["crop", "stretch"])
@pytest.mark.parametrize(
    "shape", [(64, 48), (33, 97), (97, 33), (1, 1), (1, 80), (300, 7), (40, 40)]
)
def test_the_pixels_are_those_of_pillow(
    interpolation: str, resize: str, shape: tuple[int, int]
) -> None:
    preprocessing = Preprocessing(size=(40, 31), resize=resize, interpolation=interpolation)
    n_different = differences(preprocessing, noise(2, *shape, 3))
    # The last digit of a sine may differ between libraries, which moves a pixel once in a while.
    assert n_different <= (2 if interpolation in ("hamming", "lanczos") else 0)


@pytest.mark.parametrize("resize", ["torchvision", "transformers"])
@pytest.mark.parametrize("shape", [(64, 48), (33, 98), (99, 33), (1, 1), (40, 41)])
def test_crops_in_whole_pixels_are_those_of_pillow(resize: str, shape: tuple[int, int]) -> None:
    preprocessing = Preprocessing(size=31, resize=resize, interpolation="bicubic")
    assert differences(preprocessing, noise(2, *shape, 3)) == 0


@settings(max_examples=30)
@given(
    height=st.integers(1, 400),
    width=st.integers(1, 400),
    side=st.sampled_from([8, 32, 61]),
    share=st.sampled_from([0.5, 0.875, 1.0]),
)
def test_images_of_any_size_are_resized_exactly(
    height: int, width: int, side: int, share: float
) -> None:
    preprocessing = Preprocessing(size=side, crop_share=share)
    assert differences(preprocessing, noise(1, height, width, 3)) == 0
