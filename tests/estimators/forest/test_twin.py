"""The core grows the forest that the paper's equations, written in NumPy, grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import _core
from tests.budget import budget
from tests.reference import ncm_forest as twin
from tests.reference.regularised_forest import RegularisedRules


def core_rules(rules: twin.Rules, proposer: str, **others: Any) -> _core.SplitRules:
    told: dict[str, Any] = {
        "proposer": proposer,
        "n_centroids": rules.n_centroids,
        "n_candidates": rules.n_assignments,
        "min_samples_leaf": rules.min_samples_leaf,
        "min_gain": rules.min_gain,
        "regularization": rules.regularization,
    }
    if isinstance(rules, RegularisedRules):
        told |= {
            "n_subsets": rules.n_subsets,
            "cost_weight": rules.cost_weight,
            "max_scoring_samples": rules.max_scoring_samples or 0,
            "objective": rules.objective,
            "coarse_weight": rules.coarse_weight,
            "coarse_means": rules.coarse_means,
            "parents": list(rules.parents),
        }
    return _core.SplitRules(**{**told, **others})


def core_forest(
    X: Any,
    y: Any,
    n_trees: int,
    seed: int,
    rules: twin.Rules,
    n_threads: int = 1,
    proposer: str = "ncm",
    half: bool = False,
) -> _core.Forest:
    d = X.shape[1]
    samples = _core.Samples(d, half)
    plain = _core.Standardizer(np.zeros(d), np.ones(d))
    ids = np.arange(len(X))
    samples.write(samples.add(len(X)), X.astype(np.float32), y.astype(np.int32), ids, plain)
    return _core.Forest.grow(
        samples=samples,
        n_trees=n_trees,
        n_classes=rules.n_classes,
        seed=seed,
        rows_per_tree=rules.rows_per_tree or len(X),
        bootstrap=rules.bootstrap,
        rules=core_rules(rules, proposer),
        n_threads=n_threads,
        progress=None,
    )


def assert_same_tree(forest: _core.Forest, tree: int, expected: twin.Node) -> None:
    arrays = forest.tree_arrays(tree)
    pending = [(0, expected)]
    n_seen = 0
    while pending:
        node, twin_node = pending.pop()
        n_seen += 1
        first, size = arrays["row_begin"][node], arrays["row_size"][node]
        rows = arrays["rows"][first : first + size]
        child = arrays["left"][node]
        if twin_node.left is None:
            assert child == -1
            np.testing.assert_array_equal(rows, twin_node.rows)
            begin = arrays["count_begin"][node]
            own = slice(begin, begin + arrays["count_size"][node])
            counts = dict(zip(arrays["count_class"][own], arrays["count"][own], strict=True))
            assert counts == twin_node.counts
            continue
        assert child != -1
        # Below a splitting node rows are ordered by leaf first.
        np.testing.assert_array_equal(np.sort(rows), np.sort(twin_node.rows))
        begin = arrays["centroid_begin"][node]
        own = slice(begin, begin + arrays["centroid_size"][node])
        assert arrays["centroid_class"][own].tolist() == twin_node.classes
        assert arrays["side"][own].astype(bool).tolist() == twin_node.goes_right
        stored = np.stack([forest.centroid(tree, node, j) for j in range(len(twin_node.classes))])
        np.testing.assert_array_equal(stored, twin_node.centroids)
        pending += [(child, twin_node.left), (child + 1, twin_node.right)]
    assert n_seen == len(arrays["left"])


def small_integers(
    seed: int, n: int, d: int, n_classes: int, spread: int = 5
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    # Centred on the class, so that there is structure to find; ties are common.
    X = rng.integers(0, spread, (n, d)) + (y[:, None] * np.arange(1, d + 1)) % spread
    return X.astype(np.float32), y


@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 120),
    d=st.integers(1, 6),
    n_classes=st.integers(1, 14),
    n_centroids=st.integers(2, 14),
    n_assignments=st.sampled_from([1, 3, 50, 1024]),
    min_samples_leaf=st.integers(1, 6),
    sampling=st.sampled_from([(None, False), (0.6, False), (1.0, True), (0.5, True)]),
)
def test_the_core_grows_the_twins_forest(
    seed: int,
    n: int,
    d: int,
    n_classes: int,
    n_centroids: int,
    n_assignments: int,
    min_samples_leaf: int,
    sampling: tuple[float | None, bool],
) -> None:
    X, y = small_integers(seed, n, d, n_classes)
    share, bootstrap = sampling
    rows_per_tree = None if share is None else max(1, round(share * n))
    rules = twin.Rules(
        n_classes,
        n_centroids,
        n_assignments,
        min_samples_leaf,
        rows_per_tree=rows_per_tree,
        bootstrap=bootstrap,
    )
    forest = core_forest(X, y, n_trees=2, seed=seed, rules=rules)
    expected = twin.grow_forest(X, y, n_trees=2, seed=seed, rules=rules)
    for tree in range(2):
        assert_same_tree(forest, tree, expected[tree])
    plain = _core.Standardizer(np.zeros(d), np.ones(d))
    queries, _ = small_integers(seed + 1, 20, d, n_classes)
    np.testing.assert_array_equal(
        forest.predict_proba(queries, plain, 1), twin.predict_proba(expected, queries, n_classes)
    )


@pytest.mark.parametrize(
    ("n_centroids", "n_assignments"),
    [(13, 40), (64, 40), (65, 40), (66, 40), (90, 40), (13, 1023), (13, 1025), (14, 2500)],
)
def test_many_centroids_draw_the_same_colourings(n_centroids: int, n_assignments: int) -> None:
    X, y = small_integers(3, 400, 6, 100)
    rules = twin.Rules(100, n_centroids, n_assignments, min_samples_leaf=30)
    forest = core_forest(X, y, n_trees=1, seed=5, rules=rules)
    expected = twin.grow_forest(X, y, n_trees=1, seed=5, rules=rules)
    assert expected[0].left is not None
    assert_same_tree(forest, 0, expected[0])


def test_a_gain_that_only_reaches_the_minimum_is_no_split() -> None:
    X = np.array([[0.0], [0.0], [9.0], [9.0]], dtype=np.float32)
    y = np.array([0, 0, 1, 1])
    gain = twin.information_gain([2, 2], [2, 0])
    for min_gain, n_nodes in ((gain, 1), (np.nextafter(gain, 0), 3)):
        rules = twin.Rules(2, 2, min_samples_leaf=1, min_gain=min_gain)
        assert len(core_forest(X, y, 1, 0, rules).tree_arrays(0)["left"]) == n_nodes


def test_the_forest_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 20)).astype(np.float32), rng.integers(0, 12, 600)
    rules = twin.Rules(12, 4)
    one = core_forest(X, y, 6, 1, rules, n_threads=1)
    four = core_forest(X, y, 6, 1, rules, n_threads=4)
    for tree in range(6):
        for name, array in one.tree_arrays(tree).items():
            np.testing.assert_array_equal(array, four.tree_arrays(tree)[name], err_msg=name)


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
