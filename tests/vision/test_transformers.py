"""What all transformers of this room have in common: copies, seeds and progress bars."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits

from evergrow import ERCForest, ImageClassifier, RaggedArray
from evergrow.vision import (
    BagOfWords,
    Embedder,
    FisherVectors,
    LocalFeatures,
    OnnxModel,
    RandomKDTrees,
    RandomPatches,
)
from tests.vision.classifier.pictures import MeanColours, pictures
from tests.vision.embedding.models import onnx_model
from tests.vision.images.drawn import noise
from tests.vision.words.cases import CODEBOOKS, descriptors, two_kinds

IMAGES = [noise(seed=i) for i in range(4)]
NETWORK = OnnxModel(onnx_model().SerializeToString())

# An unfitted estimator, what it is fitted to and transforms, and the text of its progress bar if it
# shows one.
CASES: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    **{
        name: (make(), (descriptors(),), "Growing" if hasattr(make(), "verbose") else "")
        for name, make in CODEBOOKS.items()
    },
    "ERC forest": (
        ERCForest(3, n_words=20, random_state=0),
        load_digits(return_X_y=True),
        "Growing trees",
    ),
    "bag": (
        BagOfWords(
            RandomKDTrees(2, n_words=9),
            pooling="mutual_information",
            n_training_descriptors=50,
            random_state=0,
        ),
        two_kinds(),
        "Coding images",
    ),
    "Fisher vectors": (
        FisherVectors(3, n_pca=4, n_training_descriptors=100, random_state=0),
        ([descriptors(40, seed=i) for i in range(5)],),
        "",
    ),
    "local features": (
        LocalFeatures("sift", patches=RandomPatches(12), random_state=0),
        (IMAGES,),
        "Describing images",
    ),
    "embedder": (Embedder(NETWORK, cache=False), (IMAGES,), "Embedding images"),
}


def output(model: Any, data: Any) -> Any:
    found = model.transform(data)
    if isinstance(found, RaggedArray):
        return found.values
    return found.toarray() if sparse.issparse(found) else found


@pytest.mark.parametrize("name", CASES)
def test_copies_give_the_same(name: str) -> None:
    make, data, _ = CASES[name]
    model = clone(make).fit(*data)
    expected = output(model, data[0])
    np.testing.assert_array_equal(output(pickle.loads(pickle.dumps(model)), data[0]), expected)
    fresh = clone(model)
    assert vars(fresh).keys() == fresh.get_params(deep=False).keys()
    assert repr(fresh) == repr(model)
    np.testing.assert_array_equal(output(fresh.fit(*data), data[0]), expected)


@pytest.mark.parametrize("name", [*CODEBOOKS, "ERC forest", "Fisher vectors", "embedder"])
def test_output_can_be_a_table(name: str) -> None:
    make, data, _ = CASES[name]
    model = clone(make).fit(*data)
    expected = output(model, data[0])
    table = clone(make).set_output(transform="pandas").fit(*data).transform(data[0])
    assert table.columns.tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(table.to_numpy(), expected)


def test_models_do_not_mind_that_all_output_is_a_table() -> None:
    codebook = RandomKDTrees(2, n_words=9, random_state=0).fit(descriptors())
    expected = codebook.encode([descriptors()]).toarray()
    images, y = pictures("red", "green", "blue")
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(codebook.encode([descriptors()]).toarray(), expected)
        for features in (MeanColours(), Embedder(NETWORK, cache=False)):
            model = ImageClassifier(features, learner="means").fit(images, y)
            assert model.score(images, y) > 0.9


@pytest.mark.parametrize("name", [name for name in CASES if name != "embedder"])
def test_the_seed_decides(name: str) -> None:
    make, data, _ = CASES[name]
    first, same, other = (
        output(clone(make).set_params(random_state=seed).fit(*data), data[0]) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert first.shape != other.shape or (first != other).any()


@pytest.mark.parametrize("name", [name for name, (*_, text) in CASES.items() if text])
def test_verbose_shows_a_progress_bar(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, data, text = CASES[name]
    clone(make).set_params(verbose=1).fit(*data).transform(data[0])
    assert text in capsys.readouterr().err
