"""EfficientNet-Lite0: weights read without running code, and the network compared with NumPy."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import evergrow
from evergrow import CacheWarning, Embedder
from evergrow.vision import find_images
from evergrow.vision.embedding import efficientnet, model_zoo
from evergrow.vision.embedding.efficientnet import Stage, fold_batch_norm, same_padding
from evergrow.vision.embedding.torch_weights import read_torch_weights
from tests.reference.inverted_residual import convolve, inverted_residual, normalise
from tests.vision.images.drawn import noise

LITE0 = model_zoo.PRETRAINED["efficientnet-lite0"]
NORM = ("weight", "bias", "running_mean", "running_var")


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    module = importlib.import_module(LITE0.package)
    with open(LITE0.weights_path(module), "rb") as file:
        return read_torch_weights(file)


def random_weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    made = {}
    for name, shape in shapes.items():
        values = draw.normal(size=shape).astype(np.float32)
        made[name] = np.abs(values) + 0.1 if name.endswith("running_var") else values
    return made


def block_weights(channels: int, stage: Stage) -> dict[str, Any]:
    wide = channels * stage.expansion
    sizes = {"_bn0": wide, "_bn1": wide, "_bn2": stage.channels}
    shapes: dict[str, tuple[int, ...]] = {
        "b._expand_conv.weight": (wide, channels, 1, 1),
        "b._depthwise_conv.weight": (wide, 1, stage.kernel, stage.kernel),
        "b._project_conv.weight": (stage.channels, wide, 1, 1),
    }
    shapes |= {f"b.{norm}.{part}": (size,) for norm, size in sizes.items() for part in NORM}
    if stage.expansion == 1:
        shapes = {k: v for k, v in shapes.items() if "_expand" not in k and "_bn0" not in k}
    return random_weights(shapes)


@pytest.mark.parametrize(
    ("channels", "stage"),
    [
        (4, Stage(1, kernel=3, stride=1, expansion=6, channels=4)),
        (4, Stage(1, kernel=5, stride=2, expansion=6, channels=6)),
        (4, Stage(1, kernel=3, stride=2, expansion=2, channels=4)),
        (4, Stage(1, kernel=3, stride=1, expansion=1, channels=3)),
    ],
)
def test_a_converted_block_computes_what_its_twin_does(channels: int, stage: Stage) -> None:
    weights = block_weights(channels, stage)
    graph = efficientnet._Graph(weights, helper, side=8)
    last = efficientnet._block(graph, "x", "b", stage, channels, stage.stride)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "block",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, channels, 8, 8])],
            [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None)],
            [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
    )
    image = np.random.default_rng(1).normal(size=(channels, 8, 8)).astype(np.float32)
    (found,) = ReferenceEvaluator(model).run(None, {"x": image[None]})
    twin = inverted_residual(image, weights, "b", stage.stride)
    np.testing.assert_allclose(found[0], twin, rtol=1e-4, atol=1e-4)


def test_folding_changes_nothing_that_comes_out() -> None:
    norm = random_weights(dict.fromkeys(NORM, (5,)))
    draw = np.random.default_rng(2)
    kernel, image = draw.normal(size=(5, 3, 3, 3)), draw.normal(size=(3, 7, 7))
    folded, bias = fold_batch_norm(kernel, norm)
    apart = normalise(convolve(image, kernel, 2), norm)
    np.testing.assert_allclose(
        convolve(image, folded, 2) + bias[:, None, None], apart, rtol=1e-4, atol=1e-4
    )


def test_the_odd_pixel_of_padding_comes_after() -> None:
    assert same_padding(112, 5, 2) == (1, 2)
    assert same_padding(7, 3, 2) == (1, 1)
    assert same_padding(8, 1, 1) == (0, 0)


def test_missing_misshapen_and_infinite_weights_are_named(weights: dict[str, Any]) -> None:
    name = "_conv_stem.weight"
    for wrong in (None, weights[name][:3], np.full_like(weights[name], np.inf)):
        changed = {key: value for key, value in weights.items() if key != name}
        if wrong is not None:
            changed[name] = wrong
        with pytest.raises(ValueError, match=r"_conv_stem\.weight"):
            efficientnet.efficientnet_onnx(LITE0.architecture, changed)


class Hostile:
    def __reduce__(self) -> Any:
        return (os.system, ("echo harm",))


def legacy(named: Any) -> bytes:
    header = [0x1950A86A20F9469CFC6C, 1001, {}]
    return b"".join(pickle.dumps(one, protocol=2) for one in [*header, named, []])


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Hostile(), protocol=2),
        legacy({"weight": Hostile()}),
        legacy({"weight": 3}),
        legacy([]),
        pickle.dumps(np.zeros(3), protocol=2),
        b"PK\x03\x04",
        b"",
    ],
)
def test_a_pickle_that_is_more_than_weights_is_refused(content: bytes, capfd: Any) -> None:
    with pytest.raises(ValueError, match="the weights cannot be read"):
        read_torch_weights(io.BytesIO(content))
    assert "harm" not in capfd.readouterr().out


def test_truncated_weights_are_refused() -> None:
    module = importlib.import_module(LITE0.package)
    content = Path(LITE0.weights_path(module)).read_bytes()
    for share in (0.001, 0.5, 0.99):
        with pytest.raises(ValueError, match="the weights cannot be read"):
            read_torch_weights(io.BytesIO(content[: int(len(content) * share)]))


def forge(path: Path) -> None:
    """Name, size and weights are right."""
    forged = onnx.load_model_from_string(path.read_bytes())
    forged.producer_name = "another program"
    path.write_bytes(forged.SerializeToString())


def make_pipe(path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows has no such pipes")
    path.unlink()
    os.mkfifo(path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [truncate, forge, make_pipe])
def test_a_changed_network_in_the_cache_is_replaced(change: Any, tmp_path: Path) -> None:
    network = model_zoo.PRETRAINED["efficientnet-lite0"]
    content = network.onnx(tmp_path)
    (path,) = tmp_path.iterdir()
    change(path)
    assert network.onnx(tmp_path) == content
    assert path.read_bytes() == content


def test_a_network_with_an_unknown_hash_is_not_cached(tmp_path: Path) -> None:
    network = replace(model_zoo.PRETRAINED["efficientnet-lite0"], onnx_sha256="other")
    assert network.onnx(tmp_path) == network.onnx(None)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_warns_and_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    embedder = Embedder(cache=tmp_path / "file")
    with pytest.warns(CacheWarning, match="nothing is cached there") as caught:
        assert embedder.transform([noise()]).shape == (1, 1280)
    assert len(caught) == 1


def test_a_saved_embedder_names_its_weights(tmp_path: Path, monkeypatch: Any) -> None:
    Embedder().save(tmp_path / "model.evergrow")
    assert (tmp_path / "model.evergrow").stat().st_size < 10_000
    loaded = evergrow.load(tmp_path / "model.evergrow")
    np.testing.assert_array_equal(loaded.transform([noise()]), Embedder().transform([noise()]))
    monkeypatch.setattr(model_zoo.Pretrained, "weights_sha256", lambda self: "other")
    with pytest.raises(ValueError, match="used with other weights"):
        evergrow.load(tmp_path / "model.evergrow").transform([noise()])


def test_photographs_come_near_the_features_that_others_computed(measuring_data: Path) -> None:
    reference = np.load(measuring_data / "caltech101_efflite0_224.npz")
    names = [str(name).lower() for name in reference["class_names"]]
    for name in ("motorbikes", "watch"):
        known = reference["X"][reference["y"] == names.index(name)].astype(np.float32)
        found = Embedder().transform(find_images(measuring_data / "caltech_images" / name)[:12])
        cosine = (found / np.linalg.norm(found, axis=1)[:, None]) @ (
            known / np.linalg.norm(known, axis=1)[:, None]
        ).T
        assert np.median(cosine.max(axis=1)) > 0.97
