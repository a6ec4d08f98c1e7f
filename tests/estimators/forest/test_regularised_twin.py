"""The core grows the regularised forest that the paper's equations, written in NumPy, grow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMForestClassifier, _core
from evergrow.estimators import Regularised
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.budget import budget
from tests.conftest import Arrays
from tests.estimators.forest.twins import (
    assert_equal_arrays,
    assert_same_forest,
    core_forest,
    plain,
    small_integers,
)
from tests.reference.regularised_forest import OBJECTIVES, RegularisedRules, pooled_classes, subsets


def some_parents(seed: int, n_classes: int) -> tuple[int, ...]:
    """A tree of classes in any order: two levels, or any number; some classes are not divided."""
    random = np.random.default_rng(seed)
    order = random.permutation(n_classes)
    n_top = int(random.integers(1, max(2, n_classes // 2)))
    parents = np.arange(n_classes)
    for k in range(n_top, n_classes):
        above = order[:n_top] if seed % 2 else order[:k]
        parents[order[k]] = random.choice(above)
    return tuple(parents.tolist())


@settings(max_examples=budget(60))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 70),
    d=st.integers(1, 6),
    n_classes=st.integers(2, 11),
    n_centroids=st.integers(2, 6),
    n_assignments=st.sampled_from([1, 3, 20]),
    min_samples_leaf=st.integers(1, 6),
    n_subsets=st.sampled_from([2, 7, 30]),
    cost_weight=st.sampled_from([0.0, 0.001, 0.05, 1.0]),
    max_scoring_samples=st.sampled_from([None, None, 30, 10]),
    objective=st.sampled_from(sorted(OBJECTIVES)),
    coarse_weight=st.sampled_from([0.1, 1.0, 100.0]),
    coarse_means=st.booleans(),
    is_flat=st.booleans(),
)
def test_the_core_grows_the_twins_forest(
    seed: int, n: int, d: int, n_classes: int, is_flat: bool, **rules: Any
) -> None:
    X, y = small_integers(seed, n, d, n_classes)
    parents = () if is_flat else some_parents(seed, n_classes)
    regularised = RegularisedRules(n_classes, parents=parents, **rules)
    assert_same_forest(X, y, seed, regularised, "regularised")


@pytest.mark.parametrize(("n_centroids", "n_assignments"), [(8, 50), (12, 50), (40, 5)])
def test_large_subsets_draw_the_same_assignments(n_centroids: int, n_assignments: int) -> None:
    X, y = small_integers(3, 300, 6, 40)
    rules = RegularisedRules(40, n_centroids, n_assignments, 60, n_subsets=8)
    assert assert_same_forest(X, y, 5, rules, "regularised")[1][0].left is not None


def test_nodes_that_are_scored_piece_by_piece_count_every_row() -> None:
    # More distances than are kept at once: 4000 rows and 80 means.
    X, y = small_integers(4, 4000, 3, 80, spread=9)
    rules = RegularisedRules(80, 4, 3, 1500, n_subsets=6)
    assert assert_same_forest(X, y, 2, rules, "regularised")[1][0].left is not None


@pytest.mark.slow
def test_classes_of_every_size_are_counted() -> None:
    # Lone rows, classes looked up in registers, in tables and in parts, more than a byte counts;
    # more assignments than are counted side by side.
    sizes = [1, 1, 2, 15, 16, 31, 32, 48, 49, 255, 256, 700]
    y = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.default_rng(6)
    X = (random.integers(-3, 4, (len(y), 4)) + (y % 5)[:, None]).astype(np.float32)
    rules = RegularisedRules(len(sizes), 9, 150, 5, n_subsets=8)
    assert assert_same_forest(X, y, 4, rules, "regularised")[1][0].left is not None


def test_all_subsets_are_tried_where_they_are_few() -> None:
    rules = RegularisedRules(5, 3, n_subsets=20)
    tried = subsets(5, rules, 0)
    assert len(tried) == 20
    assert tried[:2] == [[0, 1], [0, 2]]
    assert tried[-1] == [2, 3, 4]


def test_a_coarse_class_with_samples_of_one_fine_class_has_no_mean_of_its_own() -> None:
    rules = RegularisedRules(
        6, 3, objective="hierarchical", coarse_means=True, parents=(0, 0, 0, 3, 3, 5)
    )
    assert pooled_classes([1, 2, 4, 5], rules) == {0: [1, 2], 1: [1], 2: [2], 4: [4], 5: [5]}
    assert pooled_classes([1, 3], rules) == {1: [1], 3: [3]}


def test_a_class_has_no_mean_of_its_own_where_all_its_samples_are_of_one_class_below() -> None:
    # 0 above 1 and 2, 1 above 3 and 4.
    rules = RegularisedRules(
        5, 3, objective="hierarchical", coarse_means=True, parents=(0, 0, 0, 1, 1)
    )
    assert pooled_classes([3, 4], rules) == {1: [3, 4], 3: [3], 4: [4]}
    assert pooled_classes([2, 3], rules) == {0: [2, 3], 2: [2], 3: [3]}
    assert pooled_classes([1, 3], rules) == {1: [1, 3], 3: [3]}


@pytest.mark.parametrize("parents", [(1, 0, 2), (0, 2, 1), (1, 2, 0), (0, 0, 3)])
def test_parents_must_form_a_tree(parents: tuple[int, ...]) -> None:
    X, y = small_integers(1, 20, 2, 3)
    rules = RegularisedRules(3, 2, objective="joint", parents=parents)
    with pytest.raises(
        ValueError, match=r"parents of classes must not form a cycle|must be a class"
    ):
        core_forest(X, y, 1, 0, rules, proposer="regularised")


def test_the_cost_of_a_mean_makes_subsets_smaller() -> None:
    X, y = small_integers(1, 800, 6, 30)

    def mean_size(cost_weight: float) -> float:
        rules = RegularisedRules(30, 6, 50, 10, n_subsets=50, cost_weight=cost_weight)
        arrays = core_forest(X, y, 1, 0, rules, proposer="regularised").tree_arrays(0)
        return float(arrays["centroid_size"][arrays["left"] != -1].mean())

    assert mean_size(0.05) < 0.8 * mean_size(0.0)


def test_an_unknown_objective_is_named() -> None:
    X, y = small_integers(1, 20, 2, 3)
    rules = RegularisedRules(3, 2, objective="profit")
    with pytest.raises(ValueError, match="unknown objective 'profit'"):
        core_forest(X, y, 1, 0, rules, proposer="regularised")


def test_parents_must_name_every_class() -> None:
    X, y = small_integers(1, 20, 2, 3)
    rules = RegularisedRules(3, 2, objective="joint", parents=(0, 0))
    with pytest.raises(ValueError, match="entry for every class"):
        core_forest(X, y, 1, 0, rules, proposer="regularised")


def test_the_forest_does_not_depend_on_threads() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(900, 20)).astype(np.float32), random.integers(0, 24, 900)
    rules = RegularisedRules(
        24,
        5,
        50,
        5,
        n_subsets=30,
        max_scoring_samples=300,
        objective="hierarchical",
        coarse_means=True,
        parents=some_parents(3, 24),
    )
    one, four = (core_forest(X, y, 6, 1, rules, n, "regularised") for n in (1, 4))
    assert_equal_arrays(four, one)


def test_what_is_stored_routes_as_training_did() -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 20, 700)
    X = (random.normal(size=(700, 37)) + random.normal(size=(20, 37))[y]).astype(np.float32)
    rules = RegularisedRules(20, 5, 50, 3, n_subsets=40, max_scoring_samples=200)
    forest = core_forest(X, y, 2, 1, rules, proposer="regularised")
    leaves = forest.apply(X, plain(37), 1)
    for tree in range(2):
        arrays = forest.tree_arrays(tree)
        for leaf in np.flatnonzero(arrays["left"] == -1):
            begin = arrays["row_begin"][leaf]
            own = arrays["rows"][begin : begin + arrays["row_size"][leaf]]
            assert (leaves[own, tree] == leaf).all()


def names_of(seed: int) -> list[str]:
    """A forest of small integers, as one line per array."""
    X, y = small_integers(seed, 900, 20, 24)
    rules = RegularisedRules(
        24,
        9,
        50,
        5,
        n_subsets=30,
        objective="hierarchical",
        coarse_means=True,
        parents=some_parents(3, 24),
    )
    forest = core_forest(X, y, 2, 1, rules, proposer="regularised")
    return [f"{n} {a.tolist()}" for t in range(2) for n, a in forest.tree_arrays(t).items()]


@pytest.mark.slow
@pytest.mark.parametrize("isa", sorted({*_core.available_kernels()} - {_core.chosen_kernel()}))
def test_every_instruction_set_grows_the_same_forest_of_small_integers(isa: str) -> None:
    module = "tests.estimators.forest.test_regularised_twin"
    code = f"from {module} import names_of; print(*names_of(7), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EVERGROW_ISA": isa},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == names_of(7)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_regularised_forest_learns_classes_one_after_the_other(
    strategy: str, digits: Arrays
) -> None:
    X, X_test, y, y_test = digits
    update = STRATEGIES[strategy](refresh=0.2)
    forest = NCMForestClassifier(10, splits=Regularised(20), update=update, random_state=0)
    for first in (0, 5, 7):
        own = (y >= first) & (y < first + 5)
        forest.partial_fit(X[own], y[own])
    forest.forget(classes=[3])
    known = y_test != 3
    assert forest.score(X_test[known], y_test[known]) > 0.5


def test_few_classes_have_the_plain_forest() -> None:
    X, y = small_integers(1, 300, 6, 9)
    usual = NCMForestClassifier(3, random_state=0).fit(X, y)
    splits = Regularised(100, cost=0.5, scoring_samples=9)
    one = NCMForestClassifier(3, splits=splits, random_state=0).fit(X, y)
    assert_equal_arrays(one._fitted.forest, usual._fitted.forest)


def test_the_estimator_grows_the_twins_forest() -> None:
    X, y = small_integers(2, 200, 4, 30)
    y[:30] = np.arange(30)
    splits = Regularised(9, scale=1.2, cost=0.01, scoring_samples=80)
    forest = NCMForestClassifier(2, splits=splits, min_samples_leaf=10, random_state=3).fit(X, y)
    # At most ceil(1.2 * ceil(sqrt(30))) means.
    rules = RegularisedRules(30, 8, 50, n_subsets=9, cost_weight=0.01, max_scoring_samples=80)
    samples = forest._fitted.forest.samples
    standardised = samples.take(np.arange(len(samples), dtype=np.int32))
    same = core_forest(
        standardised, y, 2, forest._fitted.history.seed, rules, proposer="regularised"
    )
    assert_equal_arrays(forest._fitted.forest, same)


@pytest.mark.parametrize("n_classes", [3, 5, 9])
def test_trees_differ_however_few_classes_there_are(n_classes: int) -> None:
    X, y = small_integers(3, 300, 4, n_classes)
    forest = NCMForestClassifier(
        10, splits=Regularised(100), min_samples_leaf=2, random_state=0
    ).fit(X, y)
    shapes = {forest._fitted.forest.tree_arrays(tree)["left"].tobytes() for tree in range(10)}
    assert len(shapes) > 5
