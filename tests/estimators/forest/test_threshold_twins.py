"""The core grows the axis and linear forests that their NumPy twins grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import _core
from tests.budget import budget
from tests.estimators.forest.test_twin import core_forest, small_integers
from tests.reference import ncm_forest as twin
from tests.reference.axis_forest import AxisNode, propose_axis
from tests.reference.linear_forest import PlaneNode, propose_linear

TWINS: dict[str, twin.Proposer] = {"axis": propose_axis, "linear": propose_linear}


def assert_same_split(forest: _core.Forest, tree: int, node: int, expected: twin.Node) -> None:
    arrays = forest.tree_arrays(tree)
    at = arrays["centroid_begin"][node]
    assert arrays["centroid_size"][node] == 1
    assert arrays["side"][at] == 0
    if isinstance(expected, AxisNode):
        assert arrays["centroid_class"][at] == expected.feature
        assert arrays["centroid_source"][at] == -1
    else:
        assert isinstance(expected, PlaneNode)
        assert expected.centroids is not None
        assert arrays["centroid_class"][at] == 0
        np.testing.assert_array_equal(forest.centroid(tree, node, 0), expected.centroids[0])
    assert arrays["half_norm"][at] == np.float32(expected.threshold)


def assert_same_tree(forest: _core.Forest, tree: int, expected: twin.Node) -> None:
    arrays = forest.tree_arrays(tree)
    pending: list[tuple[int, twin.Node]] = [(0, expected)]
    n_seen = 0
    while pending:
        node, twin_node = pending.pop()
        n_seen += 1
        first, child = arrays["row_begin"][node], arrays["left"][node]
        rows = arrays["rows"][first : first + arrays["row_size"][node]]
        if twin_node.left is None or twin_node.right is None:
            assert child == -1
            np.testing.assert_array_equal(rows, twin_node.rows)
            continue
        assert child != -1
        np.testing.assert_array_equal(np.sort(rows), np.sort(twin_node.rows))
        assert_same_split(forest, tree, node, twin_node)
        pending += [(child, twin_node.left), (child + 1, twin_node.right)]
    assert n_seen == len(arrays["left"])


@pytest.mark.parametrize("proposer", TWINS)
@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 120),
    d=st.integers(1, 6),
    n_classes=st.integers(1, 14),
    n_candidates=st.sampled_from([1, 3, 10, 40]),
    min_samples_leaf=st.integers(1, 6),
    sampling=st.sampled_from([(None, False), (0.6, False), (1.0, True), (0.5, True)]),
)
def test_the_core_grows_the_twins_forest(
    proposer: str,
    seed: int,
    n: int,
    d: int,
    n_classes: int,
    n_candidates: int,
    min_samples_leaf: int,
    sampling: tuple[float | None, bool],
) -> None:
    X, y = small_integers(seed, n, d, n_classes)
    share, bootstrap = sampling
    rows_per_tree = None if share is None else max(1, round(share * n))
    rules = twin.Rules(
        n_classes,
        2,
        n_candidates,
        min_samples_leaf,
        rows_per_tree=rows_per_tree,
        bootstrap=bootstrap,
    )
    forest = core_forest(X, y, n_trees=2, seed=seed, rules=rules, proposer=proposer)
    expected = twin.grow_forest(X, y, 2, seed, rules, TWINS[proposer])
    for tree in range(2):
        assert_same_tree(forest, tree, expected[tree])
    plain = _core.Standardizer(np.zeros(d), np.ones(d))
    queries, _ = small_integers(seed + 1, 20, d, n_classes)
    np.testing.assert_array_equal(
        forest.predict_proba(queries, plain, 1), twin.predict_proba(expected, queries, n_classes)
    )


@pytest.mark.parametrize("proposer", TWINS)
@pytest.mark.parametrize("min_samples_leaf", [1, 64, 65, 200])
def test_large_leaves_are_found_where_the_twin_finds_them(
    proposer: str, min_samples_leaf: int
) -> None:
    X, y = small_integers(2, 900, 5, 6, spread=9)
    rules = twin.Rules(6, 2, 12, min_samples_leaf)
    forest = core_forest(X, y, n_trees=1, seed=5, rules=rules, proposer=proposer)
    expected = twin.grow_forest(X, y, 1, 5, rules, TWINS[proposer])
    assert expected[0].left is not None
    assert_same_tree(forest, 0, expected[0])


def test_more_directions_than_fit_at_once_are_all_tried() -> None:
    X, y = small_integers(4, 200, 4, 5)
    rules = twin.Rules(5, 2, 100, min_samples_leaf=20)
    forest = core_forest(X, y, n_trees=1, seed=1, rules=rules, proposer="linear")
    assert_same_tree(forest, 0, twin.grow_forest(X, y, 1, 1, rules, propose_linear)[0])


def test_features_that_do_not_vary_are_passed_over() -> None:
    X = np.zeros((40, 50), dtype=np.float32)
    X[:, 37] = np.arange(40)
    y = np.arange(40) // 20
    rules = twin.Rules(2, 2, n_assignments=1, min_samples_leaf=5)
    for seed in range(10):
        arrays: Any = core_forest(X, y, 1, seed, rules, proposer="axis").tree_arrays(0)
        assert arrays["centroid_class"][0] == 37


@pytest.mark.parametrize("proposer", TWINS)
def test_a_gain_that_only_reaches_the_minimum_is_no_split(proposer: str) -> None:
    X = np.array([[0.0], [0.0], [9.0], [9.0]], dtype=np.float32)
    y = np.array([0, 0, 1, 1])
    gain = twin.information_gain([2, 2], [2, 0])
    for min_gain, n_nodes in ((gain, 1), (np.nextafter(gain, 0), 3)):
        rules = twin.Rules(2, 2, 5, min_samples_leaf=1, min_gain=min_gain)
        forest = core_forest(X, y, 1, 0, rules, proposer=proposer)
        assert len(forest.tree_arrays(0)["left"]) == n_nodes


@pytest.mark.parametrize("proposer", [*TWINS, "svm"])
def test_samples_in_half_precision_grow_the_same_forest_where_nothing_is_rounded(
    proposer: str,
) -> None:
    X, y = small_integers(7, 700, 5, 6)
    rules = twin.Rules(6, 2, 12, 5)
    full = core_forest(X, y, 2, 1, rules, proposer=proposer)
    half = core_forest(X, y, 2, 1, rules, proposer=proposer, half=True)
    for tree in range(2):
        for name, array in full.tree_arrays(tree).items():
            np.testing.assert_array_equal(array, half.tree_arrays(tree)[name], err_msg=name)


@pytest.mark.parametrize("proposer", [*TWINS, "svm"])
def test_the_forest_does_not_depend_on_threads(proposer: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 20)).astype(np.float32), rng.integers(0, 12, 600)
    rules = twin.Rules(12, 2, 20)
    one = core_forest(X, y, 6, 1, rules, n_threads=1, proposer=proposer)
    four = core_forest(X, y, 6, 1, rules, n_threads=4, proposer=proposer)
    for tree in range(6):
        for name, array in one.tree_arrays(tree).items():
            np.testing.assert_array_equal(array, four.tree_arrays(tree)[name], err_msg=name)
