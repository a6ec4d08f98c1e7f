"""Bags of words as an estimator."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from evergrow import ImageError, RaggedArray
from evergrow.foundation.errors import BadImageWarning
from evergrow.vision import (
    BagOfWords,
    DensePatches,
    ERCForest,
    KMeansCodebook,
    LocalFeatures,
    RandomKDTrees,
    RandomPatches,
)
from evergrow.vision.words.bag.pooling import POOLINGS
from evergrow.vision.words.bag.training_set import even_quotas
from tests.reference import bag_of_words as twin
from tests.vision.words.cases import two_kinds
from tests.vision.words.pictures import features, striped

IMAGES, Y = two_kinds()
PICTURES, KINDS, MASKS = striped()


def bag_of(**options: Any) -> BagOfWords:
    return BagOfWords(RandomKDTrees(2, n_words=9), **{"random_state": 0, **options})


class Spy(RandomKDTrees):
    """A codebook that remembers what it was taught."""

    def fit(self, D: Any, y: Any = None) -> Spy:
        super().fit(D, y)
        self.taught_ = D, y
        return self


class Failing(RandomKDTrees):
    """A codebook that learns and cannot tell words."""

    def transform(self, D: Any) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_vector_is_the_pooled_counts_of_the_words(pooling: Any) -> None:
    bag = bag_of(pooling=pooling).fit(IMAGES, Y)
    counts = bag.codebook_.encode(IMAGES)
    vectors = bag.transform(IMAGES)
    expected = POOLINGS[pooling].pool(counts, bag.thresholds_)
    np.testing.assert_array_equal(vectors.toarray(), expected.toarray())
    assert isinstance(vectors, sparse.csr_array)
    assert vectors.dtype == np.float32
    assert vectors.shape == (20, bag.n_words_) == (20, 18)


def test_thresholds_say_most_about_the_training_images() -> None:
    bag = bag_of(pooling="mutual_information").fit(IMAGES, Y)
    counts = bag.codebook_.encode(IMAGES).toarray()
    assert bag.thresholds_.tolist() == twin.thresholds(counts, (Y == "dog").astype(int))
    assert bag_of().fit(IMAGES, Y).thresholds_ is None


@pytest.mark.parametrize("pooling", POOLINGS)
def test_fitting_and_coding_at_once_gives_the_same(pooling: Any) -> None:
    at_once = bag_of(pooling=pooling).fit_transform(IMAGES, Y)
    one_by_one = bag_of(pooling=pooling).fit(IMAGES, Y).transform(IMAGES)
    assert (at_once != one_by_one).nnz == 0


def test_vectors_may_be_an_ordinary_matrix() -> None:
    bag = bag_of().fit(IMAGES)
    expected = bag.transform(IMAGES).toarray()
    np.testing.assert_array_equal(bag.set_params(sparse_output=False).transform(IMAGES), expected)
    assert bag.set_output(transform="pandas").transform(IMAGES).columns[9] == "tree1_word0"


def test_ragged_arrays_do_as_well_as_lists() -> None:
    listed, ragged = (bag_of().fit(images) for images in (IMAGES, RaggedArray.of(IMAGES)))
    assert (listed.transform(IMAGES) != ragged.transform(RaggedArray.of(IMAGES))).nnz == 0


def test_images_are_taken_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    bag = bag_of().fit(IMAGES)
    monkeypatch.setattr("evergrow.vision.words.codebooks.counts._BLOCK_BYTES", 1)
    taken: list[int] = []
    known: list[int] = []
    code = RandomKDTrees.transform

    def watched(self: Any, D: Any) -> Any:
        known.append(len(taken))
        return code(self, D)

    def one_by_one() -> Any:
        for image in IMAGES:
            taken.append(len(image))
            yield image

    monkeypatch.setattr(RandomKDTrees, "transform", watched)
    assert bag.transform(one_by_one()).shape == (20, 18)
    assert known[0] < 10


def test_any_number_of_jobs_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.vision.words.codebooks.counts._BLOCK_BYTES", 1)
    first, second = (bag_of(n_jobs=n).fit_transform(IMAGES) for n in (None, 2))
    assert (first != second).nnz == 0


def test_the_seed_decides() -> None:
    first, same, other = (
        bag_of(random_state=seed, n_training_descriptors=50).fit_transform(IMAGES)
        for seed in (0, 0, 1)
    )
    assert (first != same).nnz == 0
    assert (first != other).nnz > 0


def test_a_seed_of_the_codebook_is_its_own() -> None:
    bag = BagOfWords(RandomKDTrees(random_state=7), random_state=0).fit(IMAGES)
    assert bag.codebook_.random_state == 7
    assert bag_of().fit(IMAGES).codebook_.random_state is not None


def test_descriptors_are_drawn_evenly_with_the_classes_of_their_images() -> None:
    bag = BagOfWords(Spy(1, n_words=3), n_training_descriptors=105, random_state=0).fit(IMAGES, Y)
    drawn, y = bag.codebook_.taught_
    assert sorted(drawn.lengths) == [5] * 15 + [6] * 5
    assert y.tolist() == Y.tolist()
    for rows, image in zip(drawn, IMAGES, strict=True):
        assert {row.tobytes() for row in rows} <= {row.tobytes() for row in image}
        assert len({row.tobytes() for row in rows}) == len(rows)


def test_short_images_leave_more_to_the_others() -> None:
    random = np.random.RandomState(0)
    for _ in range(100):
        lengths = random.randint(0, 9, size=random.randint(1, 8))
        total = int(random.randint(1, 60))
        quotas = even_quotas(lengths, total, random)
        assert quotas.sum() == min(total, lengths.sum())
        assert (quotas <= lengths).all()
        short = quotas < lengths
        if short.any():
            assert quotas.max() <= quotas[short].min() + 1


def test_images_without_descriptors_are_all_zero() -> None:
    images = [*IMAGES[:4], np.zeros((0, 6))]
    for pooling in POOLINGS:
        vectors = bag_of(pooling=pooling).fit(images, [*Y[:4], "cat"]).transform(images)
        assert vectors[[4]].nnz == 0


def test_without_a_codebook_it_grows_an_erc_forest() -> None:
    bag = BagOfWords(random_state=0).fit(IMAGES, Y)
    assert isinstance(bag.codebook_, ERCForest)
    assert bag.transform(IMAGES).shape == (20, bag.codebook_.n_words_)
    with pytest.raises(ValueError, match="requires y"):
        BagOfWords().fit(IMAGES)


def test_it_serves_a_linear_classifier() -> None:
    images, y = two_kinds(40)
    model = make_pipeline(BagOfWords(ERCForest(n_words=30), random_state=0), LinearSVC())
    assert cross_val_score(model, images, y, cv=3).mean() > 0.9


def test_copies_give_the_same_vectors() -> None:
    bag = bag_of(pooling="mutual_information").fit(IMAGES, Y)
    vectors = bag.transform(IMAGES)
    assert (pickle.loads(pickle.dumps(bag)).transform(IMAGES) != vectors).nnz == 0
    assert (clone(bag).fit(IMAGES, Y).transform(IMAGES) != vectors).nnz == 0


def test_pictures_are_described_first() -> None:
    bag = bag_of(features=features()).fit(PICTURES)
    described = features().transform(PICTURES)
    vectors = bag.transform(PICTURES)
    assert (vectors != POOLINGS["binary"].pool(bag.codebook_.encode(described), None)).nnz == 0


def test_no_more_patches_are_described_than_are_learnt_from() -> None:
    bag = BagOfWords(
        Spy(1, n_words=3), features=features(), n_training_descriptors=30, random_state=0
    ).fit(PICTURES, KINDS)
    drawn, _ = bag.codebook_.taught_
    assert len(drawn) == 12
    assert sorted(drawn.lengths) == [2] * 6 + [3] * 6


@pytest.mark.parametrize("patches", [RandomPatches(7), DensePatches(step=5, n=7)], ids=repr)
def test_no_image_teaches_more_patches_than_it_is_described_with(patches: Any) -> None:
    few = features().set_params(patches=patches)
    bag = BagOfWords(Spy(1, n_words=3), features=few, random_state=0).fit(PICTURES)
    assert bag.codebook_.taught_[0].lengths.tolist() == [7] * 12


def test_one_picture_in_place_of_several_is_refused() -> None:
    bag = bag_of(features=features())
    with pytest.raises(TypeError, match="give a list of images"):
        bag.fit(PICTURES[0])
    with pytest.raises(TypeError, match="give a list of images"):
        bag.fit(PICTURES).transform(PICTURES[0])


def test_a_stack_of_descriptors_is_not_an_image() -> None:
    stack = np.random.default_rng(0).integers(0, 256, (5, 20, 3)).astype(np.uint8)
    assert bag_of().fit_transform(stack).shape[0] == 5


def test_of_too_many_pictures_some_give_one_patch_each() -> None:
    bag = BagOfWords(
        Spy(1, n_words=3), features=features(), n_training_descriptors=5, random_state=0
    ).fit(PICTURES, KINDS)
    drawn, y = bag.codebook_.taught_
    assert drawn.lengths.tolist() == [1] * 5
    assert len(y) == 5


def test_masks_choose_the_patches_that_are_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    iterate = LocalFeatures.iterate

    def watched(self: Any, images: Any, **options: Any) -> Any:
        seen.append(options.get("masks"))
        return iterate(self, images, **options)

    monkeypatch.setattr(LocalFeatures, "iterate", watched)
    bag = bag_of(features=features(), pooling="mutual_information")
    bag.fit(PICTURES, KINDS, masks=MASKS)
    assert [mask is chosen for mask, chosen in zip(MASKS, seen[0], strict=True)] == [True] * 12
    # Whole images are coded, also those whose thresholds are learnt.
    assert seen[1:] == [None]


def test_pictures_that_cannot_be_read_are_listed() -> None:
    bag = bag_of(features=features()).fit(PICTURES)
    with pytest.warns(BadImageWarning, match="1 image was left out"):
        found = bag.extract([PICTURES[0], b"text", PICTURES[1]], on_error="skip")
    assert found.kept.tolist() == [0, 2]
    assert [problem.index for problem in found.problems] == [1]
    assert (found.features != bag.transform(PICTURES[:2])).nnz == 0
    with pytest.raises(ImageError):
        bag.extract([b"text"])
    with pytest.raises(ImageError):
        bag.transform([b"text"])
    with pytest.warns(BadImageWarning):
        assert bag.extract([b"text"], on_error="skip").features.shape == (0, 18)


@pytest.mark.parametrize("y", [Y, None])
def test_an_interrupt_leaves_it_as_it_was(y: Any) -> None:
    bag = bag_of().fit(IMAGES)
    state = dict(vars(bag), codebook=(broken := Failing()), pooling="mutual_information")
    bag.set_params(codebook=broken, pooling="mutual_information")
    with pytest.raises(KeyboardInterrupt if y is not None else ValueError):
        bag.fit(IMAGES[:9], None if y is None else y[:9])
    assert vars(bag) == state


def test_verbose_shows_a_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    bag_of(verbose=1).fit_transform(IMAGES)
    assert "coding images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "arguments", "said"),
    [
        ({"pooling": "mutual_information"}, (IMAGES,), "needs the class of each image"),
        ({"pooling": "mutual_information"}, (IMAGES, ["a"] * 20), "at least two classes"),
        ({"pooling": "max"}, (IMAGES,), "pooling must be one of"),
        ({"codebook": "k-means"}, (IMAGES,), "codebook must be None or a codebook"),
        ({"features": "sift"}, (IMAGES,), "features must be None or LocalFeatures"),
        ({"n_training_descriptors": 0}, (IMAGES,), "n_training_descriptors must be"),
        ({"sparse_output": 1}, (IMAGES,), "sparse_output must be True or False"),
        ({"n_jobs": 0}, (IMAGES,), "n_jobs must be"),
        ({}, ([],), "at least one image"),
        ({}, ([np.zeros((0, 6))],), "at least one descriptor"),
        ({}, ([IMAGES[0], IMAGES[1][:, :5]],), "number 1 has the shape"),
        ({}, ([np.zeros((4, 5, 3))],), "without features every image must be a matrix"),
        ({}, (IMAGES, Y[:3]), "one class per image, 20"),
        ({}, (IMAGES, np.linspace(0.1, 0.9, 20)), "Unknown label type"),
    ],
)
def test_what_is_wrong_is_named(options: Any, arguments: Any, said: str) -> None:
    bag = BagOfWords(**{"codebook": KMeansCodebook(4), **options})
    with pytest.raises(ValueError, match=said):
        bag.fit(*arguments)


def test_masks_without_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="need features"):
        bag_of().fit(IMAGES, masks=MASKS)
    with pytest.raises(ValueError, match="one mask per image, 12"):
        bag_of(features=features()).fit(PICTURES, masks=MASKS[:3])


def test_wrong_calls_are_named() -> None:
    bag = bag_of()
    for name in ("codebook_", "n_words_", "thresholds_", "features_"):
        with pytest.raises(NotFittedError):
            getattr(bag, name)
    with pytest.raises(NotFittedError):
        bag.transform(IMAGES)
    bag.fit(IMAGES)
    with pytest.raises(ValueError, match="6 columns, image 1"):
        bag.transform([IMAGES[0], IMAGES[1][:, :2]])
    with pytest.raises(ValueError, match="at least one image"):
        bag.transform([])
    with pytest.raises(TypeError, match="list of sources, got one str"):
        bag.transform("picture.jpg")
    with pytest.raises(ValueError, match="needs features"):
        bag.extract(IMAGES)
    with pytest.raises(ValueError, match="on_error must be"):
        bag.extract(IMAGES, on_error="ignore")
