"""All codebooks as estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import RaggedArray
from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees
from evergrow.vision.words.codebooks.kmeans_codebook import nearest
from tests.estimators import model_files
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


@every_codebook
def test_a_loaded_codebook_gives_the_same_words(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(pd.DataFrame(D, columns=list("abcdef")))
    loaded = model_files.reload(codebook, tmp_path)
    frame = pd.DataFrame(D, columns=list("abcdef"))
    np.testing.assert_array_equal(loaded.transform(frame), codebook.transform(frame))
    assert loaded.get_params() == codebook.get_params()
    assert vars(loaded).keys() == vars(codebook).keys()
    assert loaded.feature_names_in_.tolist() == list("abcdef")


@every_codebook
def test_a_file_with_a_wrong_parameter_is_refused(make: Any, tmp_path: Path) -> None:
    make().fit(D).save(tmp_path / "words.evergrow")
    model_files.check_refused(
        tmp_path / "words.evergrow",
        model_files.forge("parameters/n_words", -1),
        "n_words must be",
    )


def shorter(name: str) -> model_files.Change:
    return model_files.forge(name, lambda array: array[:-1])


def node_below_itself(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    # Every node but the root has one parent, but node 1 is its own.
    child = np.array([3, 1, 0, 0, 0], dtype=np.int32)
    arrays["child"] = child
    if "centre" in arrays:
        arrays["centre"] = arrays["centre"][:5]
        arrays["n_children"] = np.where(child, 2, 0).astype(np.int32)
    else:
        arrays["n_nodes"] = np.array([5])
        arrays["word"] = np.array([-1, -1, 0, 1, 2], dtype=np.int32)
        arrays["feature"], arrays["threshold"] = arrays["feature"][:5], arrays["threshold"][:5]


DAMAGE: dict[str, list[model_files.Change]] = {
    "k-means": [
        model_files.forge("centres", model_files.at(0, 1e30)),
        model_files.forge("centres", lambda centres: centres[:0]),
    ],
    "hierarchical": [
        shorter("child"),
        model_files.forge("child", model_files.at(0, 2)),
        model_files.forge("child", model_files.at(0, -1)),
        model_files.forge("child", model_files.at(1, 1)),
        model_files.forge("child", model_files.at(0, 2**31 - 1)),
        model_files.forge("n_children", model_files.at(0, 2)),
        model_files.forge("n_children", model_files.at(0, 2**31 - 1)),
        model_files.forge("n_children", model_files.at(0, -3)),
        model_files.forge("n_children", model_files.at(-1, 2)),
        model_files.forge("child", model_files.at(slice(None), 0)),
        node_below_itself,
    ],
    "kd-trees": [
        shorter("threshold"),
        shorter("n_nodes"),
        model_files.forge("feature", model_files.at(0, 6)),
        model_files.forge("feature", model_files.at(0, -1)),
        model_files.forge("fitted/n_features", 0),
        model_files.forge("child", model_files.at(0, 0)),
        model_files.forge("child", model_files.at(0, -1)),
        model_files.forge("child", model_files.at(0, 2)),
        model_files.forge("child", model_files.at(0, 2**31 - 1)),
        node_below_itself,
        model_files.forge("word", model_files.at(-1, 0)),
        model_files.forge("word", model_files.at(-1, 99)),
        model_files.forge("word", model_files.at(0, 0)),
        model_files.forge("n_nodes", model_files.at(0, 2**62)),
        model_files.forge("n_nodes", model_files.at(0, -1)),
        model_files.forge("n_nodes", model_files.at(slice(None), 0)),
    ],
}
CASES = [(name, change) for name, changes in DAMAGE.items() for change in changes]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_damaged_arrays_are_refused(name: str, change: Any, tmp_path: Path) -> None:
    CODEBOOKS[name]().fit(D).save(tmp_path / "words.evergrow")
    model_files.check_refused(tmp_path / "words.evergrow", change, "model file")


@every_codebook
def test_a_codebook_of_a_foreign_class_is_not_saved(make: Any, tmp_path: Path) -> None:
    codebook = make().fit(D)
    foreign = type("Mine", (type(codebook),), {"__module__": "mine"})
    codebook.__class__ = foreign
    with pytest.raises(TypeError, match="only Evergrow's own"):
        codebook.save(tmp_path / "words.evergrow")
