"""Model files of bags of words, with codebook and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import NCMMetric
from evergrow.vision import BagOfWords, ERCForest, RandomKDTrees
from tests.estimators import model_files
from tests.vision.words.cases import CODEBOOKS, descriptors, features, striped, two_kinds

IMAGES, Y = two_kinds()
FILE = "bag.evergrow"


@pytest.mark.parametrize(
    "codebook", [*(make() for make in CODEBOOKS.values()), ERCForest(n_words=9)], ids=repr
)
def test_a_loaded_bag_gives_the_same_vectors(codebook: Any, tmp_path: Path) -> None:
    bag = BagOfWords(codebook, pooling="mutual_information", random_state=3).fit(IMAGES, Y)
    loaded = model_files.reload(bag, tmp_path)
    assert (loaded.transform(IMAGES) != bag.transform(IMAGES)).nnz == 0
    assert loaded.codebook.get_params() == bag.codebook_.get_params()
    assert loaded.random_state == 3
    np.testing.assert_array_equal(loaded.thresholds_, bag.thresholds_)


def test_features_are_saved_with_the_bag(tmp_path: Path) -> None:
    pictures, kinds, _ = striped()
    bag = BagOfWords(features=features(random_state=5), random_state=0).fit(pictures, kinds)
    loaded = model_files.reload(bag, tmp_path)
    assert loaded.features.get_params() == bag.features.get_params()
    assert (loaded.transform(pictures) != bag.transform(pictures)).nnz == 0


def test_a_pooling_set_after_fitting_waits_for_the_next_fit(tmp_path: Path) -> None:
    bag = BagOfWords(RandomKDTrees(2, n_words=5), random_state=0).fit(IMAGES)
    before = bag.transform(IMAGES)
    bag.set_params(pooling="sum").save(tmp_path / FILE)
    loaded = evergrow.load(tmp_path / FILE)
    assert loaded.pooling == "sum"
    assert (bag.transform(IMAGES) != before).nnz == 0
    assert (loaded.transform(IMAGES) != before).nnz == 0


def other_model(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    inner, arrays = NCMMetric(2, max_iter=1).fit(descriptors(), np.arange(300) % 2)._to_file()
    header["codebook"] = inner
    tensors |= {f"codebook.{name}": array for name, array in arrays.items()}


def codebook_as_features(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    header["features"] = header["codebook"]
    tensors |= {name.replace("codebook.", "features."): tensors[name] for name in list(tensors)}


@pytest.mark.parametrize(
    "change",
    [
        model_files.drop("codebook"),
        other_model,
        codebook_as_features,
        model_files.edit_entry("pooling", ["binary"]),
        model_files.edit_part("parameters", codebook=None),
        model_files.drop("thresholds"),
        model_files.put("thresholds", lambda thresholds: thresholds[1:]),
        model_files.put("thresholds", lambda thresholds: thresholds * 0),
        model_files.put("codebook.child", lambda child: child * 0 + 1),
    ],
)
def test_a_damaged_file_is_refused(change: model_files.Change, tmp_path: Path) -> None:
    bag = BagOfWords(RandomKDTrees(2, n_words=5), pooling="mutual_information", random_state=0)
    bag.fit(IMAGES, Y).save(tmp_path / FILE)
    model_files.check_refused(tmp_path / FILE, change)


def test_features_of_another_length_than_the_codebook_takes_are_refused(tmp_path: Path) -> None:
    pictures, _, _ = striped(4)
    bag = BagOfWords(RandomKDTrees(1, n_words=3), features=features()).fit(pictures)
    bag.save(tmp_path / FILE)
    other = model_files.edit_entry("features/parameters/descriptor", "sift")
    model_files.check_refused(tmp_path / FILE, other, "have 128 values, its codebook takes 768")


def test_foreign_codebooks_and_functions_are_not_saved(tmp_path: Path) -> None:
    class Mine(RandomKDTrees):
        pass

    with pytest.raises(TypeError, match="only Evergrow's own"):
        BagOfWords(Mine(1, n_words=3)).fit(IMAGES).save(tmp_path / FILE)
    pictures, _, _ = striped(4)
    own = features().set_params(descriptor=lambda patches: patches.reshape(len(patches), -1))
    bag = BagOfWords(RandomKDTrees(1, n_words=3), features=own).fit(pictures)
    with pytest.raises(TypeError, match="cannot be saved"):
        bag.save(tmp_path / FILE)
    assert not list(tmp_path.iterdir())
