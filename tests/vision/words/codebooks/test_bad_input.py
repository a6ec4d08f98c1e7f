"""Invalid input of a codebook gives an error that names the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees
from tests.vision.words.cases import CODEBOOKS, descriptors

D = descriptors(60)
every_codebook = pytest.mark.parametrize("make", CODEBOOKS.values(), ids=CODEBOOKS)


@every_codebook
@pytest.mark.parametrize("use", ["transform", "encode", "_to_file", "words_per_tree_", "n_words_"])
def test_nothing_works_before_fit(make: Any, use: str) -> None:
    arguments = {"transform": [D], "encode": [[D]], "_to_file": []}
    with pytest.raises(NotFittedError):  # noqa: PT012
        found = getattr(make(), use)
        found(*arguments[use])


@every_codebook
def test_descriptors_of_another_length_are_named(make: Any) -> None:
    codebook = make().fit(D)
    with pytest.raises(ValueError, match="expecting 6 features"):
        codebook.transform(D[:, :5])
    with pytest.raises(ValueError, match=r"6 columns, image 1 has the shape \(60, 5\)"):
        codebook.encode([D, D[:, :5]])
    with pytest.raises(ValueError, match=r"6 columns, image 0 has the shape \(0, 2\)"):
        codebook.encode([np.zeros((0, 2))])


@every_codebook
def test_images_must_be_matrices_to_be_counted(make: Any) -> None:
    codebook = make().fit(D)
    with pytest.raises(ValueError, match=r"image 0 has the shape \(6,\)"):
        codebook.encode(D)
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
        codebook.fit(D * np.float32(1e20))
    with pytest.raises(ValueError, match="too large for distances"):
        codebook.fit(D).transform(D * np.float32(-1e20))


@pytest.mark.parametrize(
    ("codebook", "said"),
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
def test_a_wrong_parameter_is_named(codebook: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        codebook.fit(D)
