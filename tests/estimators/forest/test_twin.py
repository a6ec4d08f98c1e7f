"""The core grows the forests that their NumPy twins grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import budget
from tests.estimators.forest.twins import (
    Weights,
    assert_equal_arrays,
    assert_same_forest,
    core_forest,
    plain,
    small_integers,
)
from tests.reference import ncm_forest as twin

THRESHOLDS = ["axis", "linear"]


@pytest.mark.parametrize("proposer", ["ncm", *THRESHOLDS])
@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 120),
    d=st.integers(1, 6),
    n_classes=st.integers(1, 14),
    n_centroids=st.integers(2, 14),
    n_candidates=st.sampled_from([1, 3, 50, 1024]),
    # All thresholds are tried one by one in NumPy, so there are fewer.
    n_thresholds=st.sampled_from([1, 3, 10, 40]),
    min_samples_leaf=st.integers(1, 6),
    sampling=st.sampled_from([(None, False), (0.6, False), (1.0, True), (0.5, True)]),
    weighting=st.sampled_from(["none", "whole", "classes", "any"]),
)
def test_the_core_grows_the_twins_forest(
    proposer: str,
    seed: int,
    n: int,
    d: int,
    n_classes: int,
    n_centroids: int,
    n_candidates: int,
    n_thresholds: int,
    min_samples_leaf: int,
    sampling: tuple[float | None, bool],
    weighting: str,
) -> None:
    X, y = small_integers(seed, n, d, n_classes)
    share, bootstrap = sampling
    weights = Weights.draw(seed, n, n_classes, weighting)
    rules = twin.Rules(
        n_classes,
        n_centroids,
        n_candidates if proposer == "ncm" else n_thresholds,
        min_samples_leaf,
        rows_per_tree=None if share is None else max(1, round(share * n)),
        bootstrap=bootstrap,
    )
    forest, expected = assert_same_forest(X, y, seed, rules, proposer, weights=weights)
    queries, _ = small_integers(seed + 1, 20, d, n_classes)
    np.testing.assert_array_equal(
        forest.predict_proba(queries, plain(d), 1),
        twin.predict_proba(expected, queries, n_classes),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_centroids", "n_assignments"),
    [(13, 40), (64, 40), (65, 40), (66, 40), (90, 40), (13, 1023), (13, 1025), (14, 2500)],
)
def test_many_centroids_draw_the_same_assignments(n_centroids: int, n_assignments: int) -> None:
    X, y = small_integers(3, 400, 6, 100)
    rules = twin.Rules(100, n_centroids, n_assignments, min_samples_leaf=30)
    assert assert_same_forest(X, y, 5, rules, "ncm", 1)[1][0].left is not None


@pytest.mark.parametrize("proposer", THRESHOLDS)
@pytest.mark.parametrize("min_samples_leaf", [1, 64, 65, 200])
def test_large_leaves_are_found_where_the_twin_finds_them(
    proposer: str, min_samples_leaf: int
) -> None:
    X, y = small_integers(2, 900, 5, 6, spread=9)
    rules = twin.Rules(6, 2, 12, min_samples_leaf)
    assert assert_same_forest(X, y, 5, rules, proposer, 1)[1][0].left is not None


def test_more_directions_than_fit_at_once_are_all_tried() -> None:
    X, y = small_integers(4, 200, 4, 5)
    assert_same_forest(X, y, 1, twin.Rules(5, 2, 100, min_samples_leaf=20), "linear", 1)


def test_features_that_do_not_vary_are_passed_over() -> None:
    X = np.zeros((40, 50), dtype=np.float32)
    X[:, 37] = np.arange(40)
    y = np.arange(40) // 20
    rules = twin.Rules(2, 2, n_assignments=1, min_samples_leaf=5)
    for seed in range(10):
        arrays: Any = core_forest(X, y, 1, seed, rules, proposer="axis").tree_arrays(0)
        assert arrays["centroid_class"][0] == 37


@pytest.mark.parametrize("proposer", ["ncm", *THRESHOLDS])
def test_a_split_must_gain_more_than_the_minimum(proposer: str) -> None:
    X = np.array([[0.0], [0.0], [9.0], [9.0]], dtype=np.float32)
    y = np.array([0, 0, 1, 1])
    gain = twin.information_gain([2, 2], [2, 0])
    for min_gain, n_nodes in ((gain, 1), (np.nextafter(gain, 0), 3)):
        rules = twin.Rules(2, 2, 5, min_samples_leaf=1, min_gain=min_gain)
        forest = core_forest(X, y, 1, 0, rules, proposer=proposer)
        assert len(forest.tree_arrays(0)["left"]) == n_nodes


@pytest.mark.parametrize("proposer", [*THRESHOLDS, "svm"])
def test_samples_in_half_precision_grow_the_same_forest_where_nothing_is_rounded(
    proposer: str,
) -> None:
    X, y = small_integers(7, 700, 5, 6)
    rules = twin.Rules(6, 2, 12, 5)
    full, half = (core_forest(X, y, 2, 1, rules, 1, proposer, half) for half in (False, True))
    assert_equal_arrays(half, full)


@pytest.mark.parametrize("proposer", ["ncm", *THRESHOLDS, "svm"])
def test_the_forest_does_not_depend_on_threads(proposer: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 20)).astype(np.float32), rng.integers(0, 12, 600)
    one, four = (core_forest(X, y, 6, 1, twin.Rules(12, 4, 20), n, proposer) for n in (1, 4))
    assert_equal_arrays(four, one)


@settings(max_examples=budget(25))
@given(seed=st.integers(0, 2**32), n=st.integers(2, 300), n_classes=st.integers(1, 20))
def test_a_tree_keeps_its_invariants(seed: int, n: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 5)).astype(np.float32), rng.integers(0, n_classes, n)
    forest = core_forest(X, y, 1, seed, twin.Rules(n_classes, 3, min_samples_leaf=3))
    a = forest.tree_arrays(0)
    leaves = np.flatnonzero(a["left"] == -1)
    held = [
        a["rows"][first : first + size]
        for first, size in zip(a["row_begin"][leaves], a["row_size"][leaves], strict=True)
    ]
    assert sorted(np.concatenate(held)) == list(range(n))  # every row in exactly one leaf
    for leaf, rows in zip(leaves, held, strict=True):
        own = slice(a["count_begin"][leaf], a["count_begin"][leaf] + a["count_size"][leaf])
        found = dict(zip(*np.unique(y[rows], return_counts=True), strict=True))
        assert dict(zip(a["count_class"][own], a["count"][own], strict=True)) == found
        assert len(rows) >= 3 or len(leaves) == 1
    inner = np.flatnonzero(a["left"] != -1)
    children = np.concatenate([a["left"][inner], a["left"][inner] + 1])
    assert sorted(children) == list(range(1, len(a["left"])))  # each node has one parent
