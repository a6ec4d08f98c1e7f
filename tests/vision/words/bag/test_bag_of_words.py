"""Bags of words as an estimator, and how counts become vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import evergrow
from evergrow import ImageError, NCMMetric, RaggedArray
from evergrow.foundation.errors import BadImageWarning
from evergrow.vision import (
    BagOfWords,
    ERCForest,
    KMeansCodebook,
    LocalFeatures,
    RandomKDTrees,
)
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from evergrow.vision.words.bag.training_set import even_quotas
from tests.estimators import model_files
from tests.reference import bag_of_words as twin
from tests.vision.words.cases import CODEBOOKS, descriptors, features, striped, two_kinds

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
    """A codebook that learns but cannot assign words."""

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


def test_pictures_are_described_first() -> None:
    bag = bag_of(features=features()).fit(PICTURES)
    described = features().transform(PICTURES)
    vectors = bag.transform(PICTURES)
    assert (vectors != POOLINGS["binary"].pool(bag.codebook_.encode(described), None)).nnz == 0


@pytest.mark.parametrize(
    ("n", "lengths"), [(30, [2] * 6 + [3] * 6), (5, [1] * 5)], ids=["few", "fewer than images"]
)
def test_no_more_patches_are_described_than_are_learnt_from(n: int, lengths: list[int]) -> None:
    spy = Spy(1, n_words=3)
    bag = BagOfWords(spy, features=features(), n_training_descriptors=n, random_state=0)
    drawn, y = bag.fit(PICTURES, KINDS).codebook_.taught_
    assert sorted(drawn.lengths) == lengths
    assert len(y) == len(lengths)


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


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
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
def test_what_is_wrong_is_named(options: Any, arguments: Any, message: str) -> None:
    bag = BagOfWords(**{"codebook": KMeansCodebook(4), **options})
    with pytest.raises(ValueError, match=message):
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


COUNTS = sparse.csr_array(np.array([[3, 0, 1], [0, 0, 0], [2, 2, 0]], dtype=np.int32))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("binary", [[1, 0, 1], [0, 0, 0], [1, 1, 0]]),
        ("counts", [[3, 0, 1], [0, 0, 0], [2, 2, 0]]),
        ("sum", [[0.75, 0, 0.25], [0, 0, 0], [0.5, 0.5, 0]]),
        ("sqrt", [[0.75**0.5, 0, 0.5], [0, 0, 0], [0.5**0.5, 0.5**0.5, 0]]),
        ("mutual_information", [[1, 0, 0], [0, 0, 0], [0, 1, 0]]),
    ],
)
def test_counts_become_vectors(name: str, expected: Any) -> None:
    before = COUNTS.toarray()
    pooled = POOLINGS[name].pool(COUNTS, np.array([3, 1, 2], dtype=np.int32))
    np.testing.assert_array_equal(pooled.toarray(), np.array(expected, dtype=np.float32))
    assert pooled.dtype == np.float32
    np.testing.assert_array_equal(COUNTS.toarray(), before)


def test_thresholds_are_needed_where_they_are_learnt() -> None:
    with pytest.raises(ValueError, match="needs thresholds"):
        POOLINGS["mutual_information"].pool(COUNTS, None)


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
@given(seed=st.integers(0, 10**6), n_classes=st.integers(1, 4), most=st.integers(1, 6))
def test_thresholds_are_those_of_the_twin(block: int, seed: int, n_classes: int, most: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(0, most + 1, (12, 8)) * random.integers(0, 2, (12, 8))
    codes = random.integers(0, n_classes, 12).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evergrow.vision.words.bag.pooling._BLOCK_NUMBERS", block)
        found = mutual_information_thresholds(sparse.csr_array(counts), codes)
    assert found.tolist() == twin.thresholds(counts, codes)


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
    header["fitted"]["codebook"] = inner
    tensors |= {f"codebook/{name}": array for name, array in arrays.items()}


def codebook_as_features(header: dict[str, Any], tensors: dict[str, Any]) -> None:
    header["fitted"]["features"] = header["fitted"]["codebook"]
    tensors |= {name.replace("codebook/", "features/"): tensors[name] for name in list(tensors)}


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("fitted/codebook", None),
        other_model,
        codebook_as_features,
        model_files.forge("fitted/pooling", ["binary"]),
        model_files.forge("parameters/codebook", None),
        model_files.forge("thresholds", None),
        model_files.forge("thresholds", lambda thresholds: thresholds[1:]),
        model_files.forge("thresholds", lambda thresholds: thresholds * 0),
        model_files.forge("codebook/child", lambda child: child * 0 + 1),
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
    other = model_files.forge("fitted/features/parameters/descriptor", "sift")
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
