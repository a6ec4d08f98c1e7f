"""Codebooks and bags give the same results from shards, in parts, and from arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ERCForest, RaggedArray, Shards
from evergrow.foundation.engine import use_engine
from evergrow.storage.shards import StoredRows, parts
from evergrow.vision import BagOfWords, KMeansCodebook, LocalFeatures, RandomKDTrees
from tests.foundation.engines import Shuffled
from tests.vision.words.cases import CODEBOOKS, two_kinds

IMAGES, LABELS = two_kinds(60)
# One without descriptors where a shard ends, and one where all end.
IMAGES = [*IMAGES[:30], np.zeros((0, 6), np.float32), *IMAGES[30:], np.zeros((0, 6), np.float32)]
LABELS = np.array([*LABELS[:30], "cat", *LABELS[30:], "dog"])
ROWS = np.concatenate(IMAGES)
ROW_LABELS = RaggedArray.of(IMAGES).per_row(LABELS)
MAKE = {
    **CODEBOOKS,
    "forest": lambda: ERCForest(3, n_words=15, random_state=0),
    "unsupervised": lambda: ERCForest(2, n_words=9, supervised=False, random_state=0),
    "chosen trials": lambda: ERCForest(2, n_words=9, max_trials="auto", random_state=0),
}
BAGS: dict[str, dict[str, Any]] = {
    "binary": {},
    "few descriptors": {"n_training_descriptors": 200},
    "mutual information": {"pooling": "mutual_information"},
    "k-means": {"codebook": KMeansCodebook(9), "pooling": "sqrt"},
    "dense": {"codebook": RandomKDTrees(2, n_words=9), "sparse_output": False},
}
every_codebook = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
every_bag = pytest.mark.parametrize("options", BAGS.values(), ids=BAGS)
every_engine = pytest.mark.parametrize("engine", [None, Shuffled()], ids=["none", "shuffled"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """Shards whose rows stand for themselves."""
    folder = tmp_path_factory.mktemp("plain") / "shards"
    return evergrow.write_shards(folder, [(ROWS, ROW_LABELS)], rows_per_shard=300)


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """Shards of images with several rows."""
    folder = tmp_path_factory.mktemp("ragged") / "shards"
    return evergrow.write_shards(folder, [(RaggedArray.of(IMAGES), LABELS)], rows_per_shard=300)


@pytest.fixture
def no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all rows at once is a failure."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("all rows were read into memory")

    monkeypatch.setattr(StoredRows, "__array__", refuse)


@every_engine
@every_codebook
@pytest.mark.usefixtures("no_arrays")
def test_a_codebook_of_images_in_shards_is_that_of_the_images(
    make: Any, engine: Any, ragged: Shards
) -> None:
    expected = make().fit(IMAGES, LABELS)
    with use_engine(engine):
        for given in (ragged, ragged.images):
            codebook = make().fit(given, ragged.labels)
            np.testing.assert_array_equal(codebook.transform(given), expected.transform(ROWS))
            counts = codebook.encode(given)
            assert (counts != expected.encode(IMAGES)).nnz == 0
            assert counts.indices.dtype == np.int32


@pytest.mark.usefixtures("no_arrays")
def test_trees_vote_on_rows_and_images_in_shards(plain: Shards, ragged: Shards) -> None:
    forest = ERCForest(3, n_words=15, random_state=0).fit(ROWS, ROW_LABELS)
    np.testing.assert_array_equal(forest.predict_proba(plain), forest.predict_proba(ROWS))
    np.testing.assert_array_equal(forest.predict_proba(ragged), forest.predict_proba(IMAGES))


@pytest.mark.usefixtures("no_arrays")
def test_a_forest_learns_more_from_shards(plain: Shards, tmp_path: Path) -> None:
    more = evergrow.write_shards(tmp_path / "more", [(ROWS + 3, ["bird"] * len(ROWS))])
    expected = ERCForest(2, n_words=9, random_state=0).fit(ROWS, ROW_LABELS)
    expected.partial_fit(ROWS + 3, ["bird"] * len(ROWS))
    forest = ERCForest(2, n_words=9, random_state=0).fit(plain, plain.labels)
    forest.partial_fit(more, more.labels)
    np.testing.assert_array_equal(forest.transform(ROWS), expected.transform(ROWS))


@every_engine
@every_bag
@pytest.mark.usefixtures("no_arrays")
def test_a_bag_of_shards_is_that_of_the_images(options: Any, engine: Any, ragged: Shards) -> None:
    expected = BagOfWords(random_state=0, **options).fit(IMAGES, LABELS)
    with use_engine(engine):
        bag = BagOfWords(random_state=0, **options).fit(ragged, ragged.labels)
        vectors = bag.transform(ragged)
    difference = vectors != expected.transform(IMAGES)
    assert not difference.sum()


def test_images_in_memory_are_coded_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = ERCForest(3, n_words=15, random_state=0).fit(IMAGES, LABELS)
    expected = forest.encode(IMAGES)
    monkeypatch.setattr(parts, "_PART_BYTES", 6 * 4 * 200)
    for images in (IMAGES, RaggedArray.of(IMAGES)):
        engine = Shuffled()
        with use_engine(engine):
            counts = forest.encode(images)
        assert (counts != expected).nnz == 0
        assert len(engine.sizes) > 3


def test_training_descriptors_are_not_sent_to_tasks() -> None:
    forest = ERCForest(3, n_words=15, random_state=0).fit(IMAGES, LABELS)
    assert forest._fitted.descriptors is not None
    assert forest._coding_copy()._fitted.descriptors is None
    assert forest._fitted.descriptors is not None


def test_shards_are_not_images(ragged: Shards) -> None:
    bag = BagOfWords(features=LocalFeatures())
    with pytest.raises(TypeError, match="shards contain descriptors"):
        bag.fit(ragged, ragged.labels)


def test_rows_without_images_are_not_images(plain: Shards) -> None:
    with pytest.raises(ValueError, match="every row is an example"):
        BagOfWords().fit(plain, plain.labels)


def test_labels_of_images_must_be_as_many(ragged: Shards) -> None:
    with pytest.raises(ValueError, match="62 images, got 3"):
        ERCForest().fit(ragged, ["a", "b", "c"])
