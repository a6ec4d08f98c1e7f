"""Averages of earlier stages next to the head: correct, cached apart, saved and shared."""

from __future__ import annotations

import pickle
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
from evergrow.vision import OnnxModel, Preprocessing, find_labelled, shard_images
from evergrow.vision.embedding import efficientnet, networks
from evergrow.vision.embedding.efficientnet import Architecture, Stage, add_stages
from tests.estimators import model_files
from tests.foundation.engines import Shuffled
from tests.reference.inverted_residual import convolve, inverted_residual, normalise, relu6
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model, staged_model
from tests.vision.embedding.test_efficientnet import NORM, block_weights, random_weights
from tests.vision.images.drawn import encoded, noise

IMAGES = [noise(seed=i) for i in range(5)]
FILES = [encoded(image) for image in IMAGES]
PLAIN = Preprocessing(size=8, mean=127, scale=128)
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


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


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


@pytest.mark.slow
def test_the_head_of_the_network_does_not_change_with_stages() -> None:
    head = Embedder(cache=False).transform(FILES)
    embedder = Embedder(stages=(5, 6, 7), cache=False)
    found = embedder.transform(FILES)
    assert embedder.blocks_ == {"head": 1280, "stage5": 112, "stage6": 192, "stage7": 320}
    assert found.shape == (5, embedder.n_features_out_) == (5, 1904)
    np.testing.assert_allclose(found[:, :1280], unit(head), rtol=1e-6)
    for block in np.split(found, [1280, 1392, 1584], axis=1):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("averaged", [False, True])
def test_stages_of_an_onnx_file_are_named_outputs(averaged: bool) -> None:
    model = OnnxModel(staged_model(averaged=averaged).SerializeToString())
    embedder = Embedder(model, stages=(2,), preprocessing=PLAIN, cache=False)
    assert embedder.blocks_ == {"head": 5, "stage2": 3}
    means = np.stack([PLAIN(image).mean(axis=(1, 2)) for image in IMAGES])
    head = Embedder(model, preprocessing=PLAIN, cache=False).transform(FILES)
    expected = np.hstack([unit(head), unit(means)])
    np.testing.assert_allclose(embedder.transform(FILES), expected, rtol=1e-4, atol=1e-6)


def test_a_stage_of_zeros_stays_zero() -> None:
    embedder = Embedder(STAGED, stages=(2,), preprocessing=Preprocessing(8, mean=0), cache=False)
    found = embedder.transform([np.zeros((8, 8, 3), np.uint8)])
    np.testing.assert_array_equal(found, np.zeros((1, 8)))


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


def test_stages_do_not_share_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    head = Embedder(STAGED).transform(FILES)
    both = Embedder(STAGED, stages=(2,)).transform(FILES)
    assert (head.shape, both.shape) == ((5, 5), (5, 8))
    monkeypatch.setattr(networks.OnnxNetwork, "run", None)
    np.testing.assert_array_equal(Embedder(STAGED).transform(FILES), head)
    np.testing.assert_array_equal(Embedder(STAGED, stages=(2,)).transform(FILES), both)


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
    change = model_files.edit_part("parameters", stages=stages)
    if stages == [3]:
        # Known only when the network is loaded.
        loaded = evergrow.load(model_files.rewritten(tmp_path / "good.evergrow", change))
        with pytest.raises(ValueError, match="no stage 3"):
            loaded.transform(FILES)
    else:
        model_files.check_refused(tmp_path / "good.evergrow", change)


def test_shards_take_one_choice_of_stages(tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    embedder = Embedder(STAGED, stages=(2,), cache=False)
    shard_images(tmp_path / "shards", photos, embedder=embedder)
    shards = evergrow.open_shards(tmp_path / "shards")
    expected = embedder.transform(find_labelled(photos).paths)
    np.testing.assert_array_equal(shards[:], expected)
    folder_of(tmp_path / "more", "blue", n=2)
    with pytest.raises(evergrow.ShardError):
        shard_images(tmp_path / "shards", tmp_path / "more", embedder=Embedder(STAGED, cache=False))


def test_tasks_of_an_engine_compute_stages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.vision.embedding.embedder.IMAGES_PER_PART", 2)
    embedder = Embedder(STAGED, stages=(2,), cache=False)
    expected = embedder.transform(FILES)
    with use_engine(Shuffled()):
        np.testing.assert_allclose(embedder.transform(FILES), expected, rtol=1e-6)
