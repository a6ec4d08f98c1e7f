"""Model files of bags of words, with codebook and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ModelFileError, NCMMetric
from evergrow.storage.files import read_model, write_model
from evergrow.vision import BagOfWords, ERCForest, RandomKDTrees
from tests.vision.words.cases import CODEBOOKS, descriptors, two_kinds
from tests.vision.words.pictures import features, striped

IMAGES, Y = two_kinds()
FOLDER_NAME = "bag.evergrow"


@pytest.mark.parametrize(
    "codebook", [*(make() for make in CODEBOOKS.values()), ERCForest(n_words=9)], ids=repr
)
def test_a_loaded_bag_gives_the_same_vectors(codebook: Any, tmp_path: Path) -> None:
    bag = BagOfWords(codebook, pooling="mutual_information", random_state=3).fit(IMAGES, Y)
    bag.save(tmp_path / FOLDER_NAME)
    loaded = evergrow.load(tmp_path / FOLDER_NAME)
    assert (loaded.transform(IMAGES) != bag.transform(IMAGES)).nnz == 0
    assert loaded.codebook.get_params() == bag.codebook_.get_params()
    assert loaded.random_state == 3
    np.testing.assert_array_equal(loaded.thresholds_, bag.thresholds_)


def test_features_are_saved_with_the_bag(tmp_path: Path) -> None:
    pictures, kinds, _ = striped()
    bag = BagOfWords(features=features(random_state=5), random_state=0).fit(pictures, kinds)
    bag.save(tmp_path / FOLDER_NAME)
    loaded = evergrow.load(tmp_path / FOLDER_NAME)
    assert loaded.features.get_params() == bag.features.get_params()
    assert (loaded.transform(pictures) != bag.transform(pictures)).nnz == 0


def test_a_pooling_set_after_fitting_waits_for_the_next_fit(tmp_path: Path) -> None:
    bag = BagOfWords(RandomKDTrees(2, n_words=5), random_state=0).fit(IMAGES)
    before = bag.transform(IMAGES)
    bag.set_params(pooling="sum").save(tmp_path / FOLDER_NAME)
    loaded = evergrow.load(tmp_path / FOLDER_NAME)
    assert loaded.pooling == "sum"
    assert (bag.transform(IMAGES) != before).nnz == 0
    assert (loaded.transform(IMAGES) != before).nnz == 0


def no_codebook(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    del header["codebook"]


def other_model(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    inner, arrays = NCMMetric(2, max_iter=1).fit(descriptors(), np.arange(300) % 2)._to_file()
    header["codebook"] = inner
    tensors |= {f"codebook.{name}": array for name, array in arrays.items()}


def codebook_as_features(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    header["features"] = header["codebook"]
    tensors |= {name.replace("codebook.", "features."): tensors[name] for name in list(tensors)}


def unknown_pooling(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    header["pooling"] = ["binary"]


def two_codebooks(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    header["parameters"]["codebook"] = None


def no_thresholds(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    del tensors["thresholds"]


def few_thresholds(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["thresholds"] = tensors["thresholds"][1:]


def zero_threshold(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["thresholds"] = tensors["thresholds"] * 0


def damaged_tree(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["codebook.child"] = tensors["codebook.child"] * 0 + 1


@pytest.mark.parametrize(
    "damage",
    [
        no_codebook,
        other_model,
        codebook_as_features,
        unknown_pooling,
        two_codebooks,
        no_thresholds,
        few_thresholds,
        zero_threshold,
        damaged_tree,
    ],
)
def test_a_damaged_file_is_refused(damage: Any, tmp_path: Path) -> None:
    path = tmp_path / FOLDER_NAME
    bag = BagOfWords(RandomKDTrees(2, n_words=5), pooling="mutual_information", random_state=0)
    bag.fit(IMAGES, Y).save(path)
    header, tensors = read_model(path)
    damage(header, tensors)
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError):
        evergrow.load(path)


def test_features_of_another_length_than_the_codebook_takes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / FOLDER_NAME
    pictures, _, _ = striped(4)
    BagOfWords(RandomKDTrees(1, n_words=3), features=features()).fit(pictures).save(path)
    header, tensors = read_model(path)
    header["features"]["parameters"]["descriptor"] = "sift"
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError, match="have 128 values, its codebook takes 768"):
        evergrow.load(path)


def test_foreign_codebooks_and_functions_are_not_saved(tmp_path: Path) -> None:
    class Mine(RandomKDTrees):
        pass

    with pytest.raises(TypeError, match="only Evergrow's own"):
        BagOfWords(Mine(1, n_words=3)).fit(IMAGES).save(tmp_path / FOLDER_NAME)
    pictures, _, _ = striped(4)
    own = features().set_params(descriptor=lambda patches: patches.reshape(len(patches), -1))
    bag = BagOfWords(RandomKDTrees(1, n_words=3), features=own).fit(pictures)
    with pytest.raises(TypeError, match="cannot be saved"):
        bag.save(tmp_path / FOLDER_NAME)
    assert not list(tmp_path.iterdir())
