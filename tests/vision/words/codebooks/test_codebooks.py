"""All codebooks as estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import RaggedArray
from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees
from evergrow.vision.words.codebooks.kmeans_codebook import nearest
from tests.reference.bag_of_words import word_counts
from tests.vision.words.cases import CODEBOOKS, descriptors

D = descriptors()
FEW = descriptors(60)
every_codebook = pytest.mark.parametrize("make", CODEBOOKS.values(), ids=CODEBOOKS)


@pytest.fixture(scope="module", params=CODEBOOKS.values(), ids=CODEBOOKS)
def codebook(request: pytest.FixtureRequest) -> Any:
    """A fitted codebook of each kind; tests must not change it."""
    return request.param().fit(D)


@parametrize_with_checks([make(n_words=5) for make in CODEBOOKS.values()])
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_word_of_every_tree_occurs_among_the_training_descriptors(codebook: Any) -> None:
    words = codebook.transform(D)
    assert words.dtype == np.int32
    assert words.shape == (300, len(codebook.words_per_tree_))
    for column, n_words in zip(words.T, codebook.words_per_tree_, strict=True):
        assert np.unique(column).tolist() == list(range(n_words)) == list(range(12))


def test_words_are_counted_image_by_image(codebook: Any) -> None:
    images = RaggedArray(D, [0, 5, 5, 120, 300])
    counts = codebook.encode(images)
    words = [codebook.transform(D)[a:b] for a, b in [(0, 5), (5, 5), (5, 120), (120, 300)]]
    np.testing.assert_array_equal(counts.toarray(), word_counts(words, codebook.words_per_tree_))
    assert counts.shape == (4, codebook.n_words_)
    assert counts.dtype == np.int32
    assert counts.indices.dtype == np.int32


@every_codebook
def test_lists_of_matrices_do_as_well_as_ragged_arrays(make: Any) -> None:
    images = RaggedArray(D, [0, 100, 300])
    listed = [image.astype(np.float64) for image in images]
    ragged, plain, rows = (make().fit(data) for data in (images, listed, D))
    np.testing.assert_array_equal(ragged.transform(images), rows.transform(D))
    np.testing.assert_array_equal(plain.transform(listed), rows.transform(D))
    assert (ragged.encode(images) != plain.encode(listed)).nnz == 0


def test_small_blocks_of_images_count_the_same(
    codebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = RaggedArray(D, [0, 5, 5, 120, 300])
    expected = codebook.encode(images)
    monkeypatch.setattr("evergrow.vision.words.codebooks.counts._BLOCK_BYTES", 1000)
    assert (codebook.encode(images) != expected).nnz == 0


@every_codebook
def test_images_without_descriptors_have_no_words(make: Any) -> None:
    counts = make().fit(D).encode([np.zeros((0, 6)), np.zeros((0, 6))])
    assert counts.shape[0] == 2
    assert counts.nnz == 0


@every_codebook
def test_there_are_at_most_as_many_words_as_distinct_descriptors(make: Any) -> None:
    few = np.repeat(D[:4], 10, axis=0)
    codebook = make().fit(few)
    assert (codebook.words_per_tree_ == 4).all()
    assert len(np.unique(codebook.transform(few)[:, 0])) == 4
    one = make().fit(D[:1])
    assert one.transform(D).max() == 0


@every_codebook
def test_columns_get_names(make: Any) -> None:
    codebook = make().fit(pd.DataFrame(D, columns=list("abcdef")))
    name = type(codebook).__name__.lower()
    n_trees = len(codebook.words_per_tree_)
    assert codebook.feature_names_in_.tolist() == list("abcdef")
    assert codebook.get_feature_names_out().tolist() == [f"{name}{t}" for t in range(n_trees)]


def test_a_failure_leaves_it_as_it_was(codebook: Any) -> None:
    state = dict(vars(codebook))
    with pytest.raises(ValueError, match="NaN"):
        codebook.fit(np.full((9, 2), np.nan))
    assert vars(codebook) == state


def test_the_word_is_the_nearest_centre() -> None:
    codebook = CODEBOOKS["k-means"]().fit(D)
    distances = ((D[:, None] - codebook.centres_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(codebook.transform(D)[:, 0], distances.argmin(axis=1))


def test_the_nearest_centre_is_found_far_from_zero() -> None:
    centres = descriptors(5, 3)
    rows = descriptors(50, 3, seed=1)
    far = np.float32(1e4)
    np.testing.assert_array_equal(nearest(rows + far, centres + far), nearest(rows, centres))


def test_many_centres_are_as_many_as_wanted() -> None:
    assert KMeansCodebook(150, random_state=0).fit(D).n_words_ == 150


def test_centres_far_from_all_descriptors_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        cluster_centers_ = np.concatenate([D[:10], np.full((2, 6), 1e6)])

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def fit(self, rows: Any) -> Lost:
            return self

    monkeypatch.setattr("evergrow.vision.words.codebooks.clustering.MiniBatchKMeans", Lost)
    codebook = CODEBOOKS["k-means"]().fit(D)
    assert np.unique(codebook.transform(D)).tolist() == list(range(12))


def test_a_branch_leads_to_its_nearest_centre() -> None:
    codebook = CODEBOOKS["hierarchical"]().fit(D)
    tree, leaf = codebook._fitted, codebook._fitted.child == 0
    for row, word in zip(D, codebook.transform(D)[:, 0], strict=True):
        node = 0
        while not leaf[node]:
            children = np.arange(tree.n_children[node]) + tree.child[node]
            node = children[((tree.centre[children] - row) ** 2).sum(axis=1).argmin()]
        assert np.count_nonzero(leaf[:node]) == word


@pytest.mark.parametrize("n_words", [2, 7, 40])
def test_a_vocabulary_tree_has_the_wanted_number_of_leaves(n_words: int) -> None:
    assert HierarchicalKMeans(n_words, branching=4, random_state=0).fit(D).n_words_ == n_words


def test_kd_trees_take_any_number_of_jobs() -> None:
    words = [CODEBOOKS["kd-trees"](n_jobs=n).fit(D).transform(D) for n in (None, 2)]
    np.testing.assert_array_equal(*words)


def test_kd_trees_halve_their_cells() -> None:
    words = RandomKDTrees(1, n_words=4, random_state=0).fit(D).transform(D)[:, 0]
    assert np.bincount(words).tolist() == [75] * 4


def test_kd_trees_cut_the_features_that_vary_most() -> None:
    uneven = D * np.float32([1, 1, 50, 1, 50, 1])
    trees = RandomKDTrees(1, n_words=4, n_candidates=2, random_state=0).fit(uneven)._fitted.trees
    (tree,) = trees.arrays
    assert set(tree["feature"][tree["child"] != 0]) <= {2, 4}


def test_kd_trees_split_next_to_a_value_that_most_descriptors_share() -> None:
    sparse = np.float32([[0], [0], [0], [0], [0], [0], [3], [4]])
    words = RandomKDTrees(1, n_words=3, random_state=0).fit(sparse).transform(sparse)[:, 0]
    assert len(set(words[:6])) == 1
    assert len(set(words)) == 3


def test_kd_trees_part_neighbours_of_single_precision() -> None:
    below = np.float32(1)
    pair = np.array([[below], [np.nextafter(below, np.float32(2))]])
    assert RandomKDTrees(1).fit(pair).transform(pair).ravel().tolist() == [0, 1]


@every_codebook
@pytest.mark.parametrize("use", ["transform", "encode", "_to_file", "words_per_tree_", "n_words_"])
def test_nothing_works_before_fit(make: Any, use: str) -> None:
    arguments = {"transform": [FEW], "encode": [[FEW]], "_to_file": []}
    with pytest.raises(NotFittedError):  # noqa: PT012
        found = getattr(make(), use)
        found(*arguments[use])


@every_codebook
def test_descriptors_of_another_length_are_named(make: Any) -> None:
    codebook = make().fit(FEW)
    with pytest.raises(ValueError, match="expecting 6 features"):
        codebook.transform(FEW[:, :5])
    with pytest.raises(ValueError, match=r"6 columns, image 1 has the shape \(60, 5\)"):
        codebook.encode([FEW, FEW[:, :5]])
    with pytest.raises(ValueError, match=r"6 columns, image 0 has the shape \(0, 2\)"):
        codebook.encode([np.zeros((0, 2))])


@every_codebook
def test_images_must_be_matrices_to_be_counted(make: Any) -> None:
    codebook = make().fit(FEW)
    with pytest.raises(ValueError, match=r"image 0 has the shape \(6,\)"):
        codebook.encode(FEW)
    with pytest.raises(ValueError, match="at least one image"):
        codebook.encode([])


@every_codebook
def test_nothing_is_learnt_from_images_without_descriptors(make: Any) -> None:
    with pytest.raises(ValueError, match="0 sample"):
        make().fit([np.zeros((0, 6)), np.zeros((0, 6))])


@pytest.mark.parametrize("name", ["k-means", "hierarchical"])
def test_descriptors_too_large_for_distances_are_named(name: str) -> None:
    codebook = CODEBOOKS[name]()
    with pytest.raises(ValueError, match="too large for distances"):
        codebook.fit(FEW * np.float32(1e20))
    with pytest.raises(ValueError, match="too large for distances"):
        codebook.fit(FEW).transform(FEW * np.float32(-1e20))


@pytest.mark.parametrize(
    ("codebook", "message"),
    [
        (KMeansCodebook(0), "n_words must be an integer from 1"),
        (KMeansCodebook(batch_size=0), "batch_size must be"),
        (KMeansCodebook(max_epochs=1.5), "max_epochs must be"),
        (KMeansCodebook(max_no_improvement=None), "max_no_improvement must be"),
        (KMeansCodebook(n_init="auto"), "n_init must be"),
        (KMeansCodebook(random_state="x"), "random_state must be None or an integer"),
        (HierarchicalKMeans(branching=1), "branching must be an integer from 2"),
        (HierarchicalKMeans(n_words=True), "n_words must be"),
        (RandomKDTrees(0), "n_estimators must be"),
        (RandomKDTrees(n_candidates=0), "n_candidates must be"),
        (RandomKDTrees(n_jobs=0), "n_jobs must be None or"),
        (RandomKDTrees(verbose=-1), "verbose must be"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_named(codebook: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        codebook.fit(FEW)
