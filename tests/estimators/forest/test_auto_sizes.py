"""Leaves and numbers of class means that follow the number of samples per class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow import NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators import ClassMeans, Storage
from evergrow.estimators.forest.request import median_class_size
from evergrow.estimators.forest.splits import centroids_per_node, leaf_size
from tests.conftest import FORESTS

every_kind = pytest.mark.parametrize("kind", FORESTS)


def samples(sizes: list[int], seed: int = 0, first: int = 0) -> tuple[Any, Any]:
    """Overlapping classes of these sizes; ``first`` is the number of the first."""
    y = np.repeat(np.arange(first, first + len(sizes)), sizes)
    centres = np.random.default_rng(7).normal(size=(100, 6))
    return centres[y] + 0.7 * np.random.default_rng(seed).normal(size=(len(y), 6)), y


def same(one: Any, other: Any) -> None:
    X, _ = samples([40] * 4, seed=9)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@every_kind
@pytest.mark.parametrize(("size", "leaf"), [(40, 1), (150, 3), (500, 10), (700, 10)])
def test_a_leaf_has_a_fiftieth_of_a_class(kind: Any, size: int, leaf: int) -> None:
    X, y = samples([size] * 3)
    explicit = kind(3, min_samples_leaf=leaf, random_state=0).fit(X, y)
    same(kind(3, random_state=0).fit(X, y), explicit)


def test_the_median_class_counts() -> None:
    X, y = samples([2, 150, 900])
    explicit = NCMForestClassifier(3, min_samples_leaf=3, random_state=0).fit(X, y)
    same(NCMForestClassifier(3, random_state=0).fit(X, y), explicit)


def test_small_classes_are_compared_with_more_means() -> None:
    X, y = samples([14] * 30)
    half = NCMForestClassifier(3, splits=ClassMeans(16), random_state=0).fit(X, y)
    same(NCMForestClassifier(3, random_state=0).fit(X, y), half)


def test_many_small_classes_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(300, 64))
    y = np.tile(np.arange(300), 15)
    X = centres[y] + 1.2 * rng.normal(size=(len(y), 64))
    test = centres + 1.2 * rng.normal(size=centres.shape)
    auto, sqrt = (
        NCMForestClassifier(8, splits=ClassMeans(n), random_state=0)
        .fit(X, y)
        .score(test, np.arange(300))
        for n in ("auto", "sqrt")
    )
    assert auto > 0.9 > sqrt + 0.2


@pytest.mark.parametrize("update", ["uls", "igt", "rust", "rtst"])
def test_an_update_follows_the_classes(update: str) -> None:
    options: dict[str, Any] = {"update": update, "random_state": 0}
    auto, explicit = (NCMForestClassifier(3, **options) for _ in range(2))
    batches = [
        (samples([60] * 3), 1, "sqrt"),
        (samples([200] * 3, seed=1), 5, "sqrt"),
        # The median size of eight classes is 4.
        (samples([4] * 5, seed=2, first=3), 1, 8),
    ]
    for batch, leaf, n_centroids in batches:
        auto.partial_fit(*batch)
        explicit.set_params(min_samples_leaf=leaf, splits=ClassMeans(n_centroids)).partial_fit(
            *batch
        )
        same(auto, explicit)


def test_forgetting_follows_what_is_left() -> None:
    auto = NCMForestClassifier(3, random_state=0).fit(*samples([300, 300, 100, 100]))
    explicit = NCMForestClassifier(3, min_samples_leaf=4, random_state=0)
    explicit.fit(*samples([300, 300, 100, 100]))
    same(auto, explicit)
    auto.forget(classes=[0])
    explicit.set_params(min_samples_leaf=2).forget(classes=[0])
    same(auto, explicit)


def test_kept_samples_count_for_the_size_of_a_class() -> None:
    X, y = samples([600] * 3)
    auto = NCMForestClassifier(3, storage=Storage(per_class=5), random_state=0).fit(X, y)
    explicit = NCMForestClassifier(
        3, storage=Storage(per_class=5), min_samples_leaf=1, random_state=0
    )
    same(auto, explicit.set_params(splits=ClassMeans(3)).fit(X, y))


def test_samples_that_a_tree_does_not_see_do_not_count() -> None:
    X, y = samples([600] * 3)
    options: dict[str, Any] = {"max_samples": 0.25, "random_state": 0}
    explicit = NCMForestClassifier(3, min_samples_leaf=3, **options).fit(X, y)
    same(NCMForestClassifier(3, **options).fit(X, y), explicit)


def test_fine_and_coarse_classes_follow_too() -> None:
    X, fine = samples([150] * 4)
    labels = np.column_stack([fine // 2, fine])
    auto = SubcategoryForestClassifier(3, random_state=0).fit(X, labels)
    explicit = SubcategoryForestClassifier(3, min_samples_leaf=3, random_state=0).fit(X, labels)
    same(auto, explicit)


def test_one_sample_of_each_class_is_enough() -> None:
    X, y = samples([1] * 20)
    assert NCMForestClassifier(20, random_state=0).fit(X, y).score(X, y) == 1


@every_kind
@pytest.mark.parametrize("leaf", ["all", 0, -1, 2.5, None])
def test_a_wrong_leaf_size_is_named(kind: Any, leaf: Any) -> None:
    with pytest.raises(ValueError, match="min_samples_leaf must be 'auto' or an integer from 1"):
        kind(min_samples_leaf=leaf).fit(*samples([9, 9]))


@given(st.integers(1, 5000), st.floats(0.5, 1e6))
def test_sizes_stay_within_their_bounds(n_classes: int, class_size: float) -> None:
    n_centroids = centroids_per_node("auto", n_classes, class_size)
    least = max(2, min(math.ceil(math.sqrt(n_classes)), n_classes))
    assert least <= n_centroids <= max(2, n_classes)
    assert n_centroids <= max(least, (10 / class_size) ** 2 * n_classes + 1)
    assert leaf_size("auto", class_size) == min(10, max(1, int(class_size // 50)))


def test_empty_classes_have_no_size() -> None:
    sizes = np.array([1, 0, 0, 3, 0])
    assert median_class_size(sizes, None) == 2.0
    assert median_class_size(sizes, 1) == 1.0
    assert median_class_size(sizes[4:], None) == math.inf
