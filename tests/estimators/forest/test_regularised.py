"""Regularised NCM forests as a user meets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier
from evergrow.estimators import Regularised

Array = np.ndarray[Any, Any]


def clusters(sizes: list[int], spread: float = 30.0, n_features: int = 3) -> tuple[Array, Array]:
    """Well separated clusters, one per class, of these sizes."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    places = random.normal(size=(len(sizes), n_features)) * spread
    return places[y] + random.normal(size=(len(y), n_features)), y


def test_rare_classes_are_found_where_only_some_samples_are_scored() -> None:
    X, y = clusters([3000] * 10 + [40] * 5)
    forest = NCMForestClassifier(10, splits=Regularised(100, scoring_samples=256), random_state=0)
    answers = forest.fit(X, y).predict(X)
    assert np.mean(answers[y >= 10] == y[y >= 10]) > 0.95


def test_fewer_samples_may_be_scored_than_two_leaves_hold() -> None:
    X, y = clusters([100] * 20)
    forest = NCMForestClassifier(10, splits=Regularised(50, scoring_samples=15), random_state=0)
    assert forest.fit(X, y).score(X, y) > 0.95


def test_no_leaf_is_too_small_however_few_samples_are_scored() -> None:
    X, y = clusters([300] * 12 + [9] * 4, spread=3.0)
    options: dict[str, Any] = {"splits": Regularised(scoring_samples=50)}
    forest = NCMForestClassifier(10, min_samples_leaf=10, random_state=0, **options).fit(X, y)
    for tree in range(10):
        arrays = forest._fitted.forest.tree_arrays(tree)
        assert arrays["row_size"][arrays["left"] == -1].min() >= 10


def test_a_new_class_of_few_samples_is_learnt_in_large_leaves() -> None:
    X, y = clusters([1500] * 12 + [30] * 3, spread=6.0)
    old = y < 12
    forest = NCMForestClassifier(20, splits=Regularised(100, scoring_samples=256), random_state=0)
    forest.fit(X[old], y[old]).partial_fit(X[~old], y[~old])
    plain = NCMForestClassifier(20, random_state=0)
    plain.fit(X[old], y[old]).partial_fit(X[~old], y[~old])
    assert forest.score(X[~old], y[~old]) > plain.score(X[~old], y[~old]) - 0.1


@pytest.mark.parametrize("n_classes", [2, 5, 9])
def test_a_forest_of_few_classes_is_the_plain_one(n_classes: int) -> None:
    X, y = clusters([60] * n_classes, spread=2.0)
    plain = NCMForestClassifier(5, random_state=0).fit(X, y)
    forest = NCMForestClassifier(5, splits=Regularised(100), random_state=0).fit(X, y)
    np.testing.assert_array_equal(forest.predict_proba(X), plain.predict_proba(X))


def test_more_subsets_make_answers_cheaper() -> None:
    X, y = clusters([40] * 60, spread=2.0, n_features=8)
    plain = NCMForestClassifier(10, random_state=0).fit(X, y)
    forest = NCMForestClassifier(10, splits=Regularised(100), random_state=0).fit(X, y)
    assert forest.comparisons(X) < 0.9 * plain.comparisons(X)
