"""Images processed in parts on an engine give the same results as in one process."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

from evergrow import BadImageWarning, Embedder, ImageError
from evergrow.foundation.engine import LocalEngine, use_engine
from evergrow.vision import BagOfWords, LocalFeatures, RandomKDTrees, RandomPatches
from evergrow.vision.descriptors import describer
from evergrow.vision.embedding import embedder, networks
from tests.foundation.engines import Shuffled
from tests.vision.embedding.models import onnx_model
from tests.vision.images.drawn import encoded, noise

IMAGES = [noise(seed=i) for i in range(11)]
every_engine = pytest.mark.parametrize(
    "engine", [LocalEngine(), Shuffled()], ids=["in process", "shuffled"]
)


def mean_colours(images: Any) -> list[Any]:
    return [image.mean(axis=(0, 1)) for image in images]


class Knowing:
    """A source that knows its name and what is wrong with it."""

    def read(self, _: int) -> bytes:
        raise ImageError("'holiday.jpg'", "it was lost")


@pytest.fixture(autouse=True)
def _small_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))
    for module in (embedder, describer):
        monkeypatch.setattr(module, "IMAGES_PER_PART", 3)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx_model(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


@every_engine
def test_vectors_in_parts_equal_those_of_one_run(model: Path, engine: Any) -> None:
    expected = Embedder(model, cache=False).transform(IMAGES)
    with use_engine(engine):
        found = Embedder(model, cache=False, batch_size=2).transform(IMAGES)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_engine
def test_every_kind_of_source_can_be_sent(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = encoded(IMAGES[0])
    (tmp_path / "a.png").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    with open("a.png", "rb") as file:
        sources = [
            "a.png",
            Path("a.png"),
            content,
            bytearray(content),
            io.BytesIO(content),
            file,
            IMAGES[0],
            Image.fromarray(IMAGES[0]),
        ]
        with use_engine(engine):
            found = Embedder(mean_colours).transform(sources)
    np.testing.assert_array_equal(found, np.repeat(found[:1], len(sources), axis=0))


@every_engine
def test_bad_images_are_left_out_and_named_as_they_were_given(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = [*IMAGES[:4], b"text", *IMAGES[4:], "missing.png", io.BytesIO(b""), Knowing()]
    embed = Embedder(mean_colours)
    with pytest.warns(BadImageWarning):
        expected = embed.extract(sources, on_error="skip")
    with use_engine(engine), pytest.warns(BadImageWarning, match="4 images were left out"):
        found = embed.extract(sources, on_error="skip")
    np.testing.assert_array_equal(found.features, expected.features)
    np.testing.assert_array_equal(found.kept, expected.kept)
    assert found.problems == expected.problems


@pytest.mark.parametrize("seed", range(4))
def test_the_first_bad_image_is_the_error_whichever_part_finishes_first(seed: int) -> None:
    sources = [*IMAGES[:4], b"first", *IMAGES[4:], b"the second"]
    with use_engine(Shuffled(seed)), pytest.raises(ImageError, match="<5 bytes>"):
        Embedder(mean_colours).transform(sources)


def test_known_images_are_not_computed_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = Embedder(model)
    with use_engine(Shuffled()):
        first = embed.transform(IMAGES)

    def refuse(*_: Any) -> None:
        raise AssertionError("the network ran for images whose vectors are cached")

    monkeypatch.setattr(networks.OnnxNetwork, "run", refuse)
    with use_engine(Shuffled()):
        np.testing.assert_array_equal(embed.transform(IMAGES), first)
    np.testing.assert_array_equal(embed.transform(IMAGES), first)


@every_engine
@pytest.mark.parametrize("descriptor", ["haar", "sift"])
@pytest.mark.parametrize("seed", [3, None, np.random.RandomState(0)], ids=["3", "none", "state"])
def test_descriptors_in_parts_equal_those_of_one_run(
    engine: Any, descriptor: str, seed: Any
) -> None:
    features = LocalFeatures(descriptor, patches=RandomPatches(9), random_state=copy.copy(seed))
    sources = [*IMAGES, IMAGES[0]]
    again = LocalFeatures(descriptor, patches=RandomPatches(9), random_state=copy.deepcopy(seed))
    with use_engine(engine):
        found = again.transform(sources)
    np.testing.assert_array_equal(found[0], found[11])
    if seed is not None:
        expected = features.transform(sources)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.offsets, expected.offsets)


@pytest.mark.slow
@every_engine
def test_bags_count_the_words_of_images_where_they_are_described(engine: Any) -> None:
    bag = BagOfWords(RandomKDTrees(2, n_words=9), features=LocalFeatures(), random_state=0)
    expected = bag.fit(IMAGES).transform(IMAGES)
    with use_engine(engine):
        assert (bag.transform(IMAGES) != expected).nnz == 0
        with pytest.warns(BadImageWarning, match="1 image was left out"):
            found = bag.extract([*IMAGES[:5], b"text", *IMAGES[5:]], on_error="skip")
        with pytest.raises(ImageError, match="<4 bytes>"):
            bag.transform([*IMAGES, b"text"])
    assert (found.features != expected).nnz == 0
    assert found.kept.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
