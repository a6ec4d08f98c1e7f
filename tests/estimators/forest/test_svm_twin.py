"""The SVMs in the nodes of a forest, compared with their NumPy twin and scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from evergrow import _core
from tests.budget import budget
from tests.estimators.forest.twins import core_forest
from tests.reference import ncm_forest as twin
from tests.reference.linear_forest import PlaneNode
from tests.reference.random import Stream
from tests.reference.svm_forest import MAX_TRAINED, objective, propose_svm, train_svm


def clusters(seed: int, n: int, d: int, n_classes: int, apart: float = 3.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + apart * rng.normal(size=(n_classes, d))[y]
    return X.astype(np.float32), y


def root_plane(forest: _core.Forest) -> tuple[Any, float]:
    return forest.centroid(0, 0, 0), float(forest.tree_arrays(0)["half_norm"][0])


def assert_same_leaves(forest: _core.Forest, expected: twin.Node) -> None:
    arrays = forest.tree_arrays(0)
    pending = [(0, expected)]
    while pending:
        node, twin_node = pending.pop()
        first, child = arrays["row_begin"][node], arrays["left"][node]
        rows = arrays["rows"][first : first + arrays["row_size"][node]]
        np.testing.assert_array_equal(np.sort(rows), np.sort(twin_node.rows))
        assert (child == -1) == (twin_node.left is None)
        if twin_node.left is not None and twin_node.right is not None:
            pending += [(child, twin_node.left), (child + 1, twin_node.right)]


@pytest.mark.parametrize("seed", range(20))
def test_the_core_grows_the_twins_forest(seed: int) -> None:
    X, y = clusters(seed, 120, 4, 2 + seed % 5)
    rules = twin.Rules(7, 2, n_assignments=6, min_samples_leaf=5)
    forest = core_forest(X, y, 1, seed, rules, proposer="svm")
    expected = twin.grow_forest(X, y, 1, seed, rules, propose_svm)[0]
    assert_same_leaves(forest, expected)
    assert isinstance(expected, PlaneNode)
    assert expected.centroids is not None
    weights, threshold = root_plane(forest)
    np.testing.assert_allclose(weights, expected.centroids[0], atol=1e-3)
    assert threshold == pytest.approx(expected.threshold, abs=1e-3)


@settings(max_examples=budget(40))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(10, 100),
    d=st.integers(1, 20),
    regularization=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_one_svm_finds_the_twins_plane(seed: int, n: int, d: int, regularization: float) -> None:
    X, y = clusters(seed, n, d, 2, apart=8.0)
    rules = twin.Rules(2, 2, min_samples_leaf=1, regularization=regularization)
    forest = core_forest(X, y, 1, seed, rules, proposer="svm")
    expected = twin.grow_forest(X, y, 1, seed, rules, propose_svm)[0]
    assert (expected.left is None) == (len(forest.tree_arrays(0)["left"]) == 1)
    if isinstance(expected, PlaneNode) and expected.centroids is not None:
        weights, threshold = root_plane(forest)
        np.testing.assert_allclose(weights, expected.centroids[0], atol=2e-3)
        assert threshold == pytest.approx(expected.threshold, abs=2e-2)


def test_a_large_node_trains_on_the_samples_that_the_twin_draws() -> None:
    X, y = clusters(1, MAX_TRAINED + 700, 3, 2, apart=1.0)
    rules = twin.Rules(2, 2, min_samples_leaf=MAX_TRAINED // 4)
    forest = core_forest(X, y, 1, 9, rules, proposer="svm")
    expected = twin.grow_forest(X, y, 1, 9, rules, propose_svm)[0]
    assert isinstance(expected, PlaneNode)
    assert expected.centroids is not None
    weights, threshold = root_plane(forest)
    np.testing.assert_allclose(weights, expected.centroids[0], atol=1e-3)
    assert threshold == pytest.approx(expected.threshold, abs=1e-3)


def scaled_problem(seed: int, apart: float) -> tuple[Any, Any, Any, Any]:
    X, y = clusters(seed, 200, 5, 2, apart)
    scaled = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    scaled /= np.sqrt((scaled**2).mean())
    # The last class is the negative one.
    return X, y, scaled, np.where(y == 0, 1.0, -1.0)


def least_objective(X: Any, labels: Any, C: float) -> float:
    peer = LinearSVC(loss="hinge", C=C, tol=1e-6, max_iter=100000, random_state=0)
    peer.fit(X, labels)
    return objective(X, labels, peer.coef_[0], float(peer.intercept_[0]), C)


@pytest.mark.parametrize("apart", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_twin_reaches_the_optimum_that_scikit_learn_reaches(apart: float, C: float) -> None:
    _, _, scaled, labels = scaled_problem(3, apart)
    weights, bias = train_svm(scaled, labels, C, Stream(0), max_sweeps=2000, tolerance=1e-4)
    reached, least = objective(scaled, labels, weights, bias, C), least_objective(scaled, labels, C)
    assert reached == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_plane_of_a_node_is_near_the_optimum(seed: int) -> None:
    X, y, scaled, labels = scaled_problem(seed, apart=3.0)
    rules = twin.Rules(2, 2, min_samples_leaf=1)
    forest = core_forest(X, y, 1, seed, rules, proposer="svm")
    weights, threshold = root_plane(forest)
    centre = X.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(((X - centre) ** 2).mean())
    bias = float(weights.astype(np.float64) @ centre - threshold) / spread
    # A node keeps the plane, not the length of its normal: try many.
    best = min(
        objective(scaled, labels, length * weights.astype(np.float64), length * bias, 1.0)
        for length in np.geomspace(0.01, 100, 400)
    )
    # Far from it the objective is tens of times as high.
    assert best < 1.3 * least_objective(scaled, labels, 1.0)
