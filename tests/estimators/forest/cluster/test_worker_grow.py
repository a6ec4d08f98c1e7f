"""A forest grown by groups of trees is the one that is grown whole; so is one from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import _core
from evergrow.estimators.forest.cluster.worker_grow import GrowthPlan, grow_over
from evergrow.estimators.forest.strategy import usable_strategies
from tests.estimators.forest.blobs import blobs
from tests.estimators.forest.cores import (
    RULES,
    equal_trees,
    grow,
    plan,
    rules,
    standardizer,
    written,
)

X, Y = blobs(200, range(6))
SAMPLES = written(X, Y.astype(np.int32))
N_TREES = 7
# First tree and number of trees of each group.
GROUPS = [(0, 1), (1, 4), (5, 2)]
MORE, CLASSES = blobs(60, [1, 6, 7], seed=1)

STRATEGIES = [
    (proposer, strategy)
    for proposer in RULES
    for strategy in usable_strategies(has_class_means=RULES[proposer]["n_centroids"] > 0)
]


def with_more() -> tuple[_core.Samples, Any]:
    samples = SAMPLES.copy()
    numbers = samples.add(len(MORE))
    ids = len(X) + np.arange(len(MORE), dtype=np.int64)
    samples.write(numbers, MORE, CLASSES.astype(np.int32), ids, standardizer(X.shape[1]))
    return samples, numbers


def from_arrays(forest: _core.Forest, proposer: str) -> _core.Forest:
    """The forest as it comes out of a model file, or from another process."""
    return _core.Forest.from_arrays(
        samples=forest.samples,
        trees=[forest.tree_arrays(tree) for tree in range(len(forest))],
        n_comparisons=forest.n_comparisons,
        proposer=proposer,
        n_classes=forest.n_classes,
    )


@pytest.mark.parametrize("proposer", RULES)
def test_groups_of_trees_joined_are_the_forest(proposer: str) -> None:
    groups = [grow(SAMPLES, proposer, n_trees=n, first_tree=first) for first, n in GROUPS]
    joined = _core.Forest.joined(SAMPLES, groups)
    assert joined.n_classes == 6
    equal_trees(joined, grow(SAMPLES, proposer, n_trees=N_TREES))


@pytest.mark.parametrize(("proposer", "strategy"), STRATEGIES)
@pytest.mark.parametrize("refreshed", [(0, 0), (5, 4)])
def test_a_forest_made_from_arrays_is_updated_like_its_origin(
    proposer: str, strategy: str, refreshed: tuple[int, int]
) -> None:
    samples, numbers = with_more()
    forest = grow(SAMPLES, proposer, n_trees=N_TREES)
    options: Any = {
        "samples": samples,
        "rows": numbers,
        "evicted": np.arange(0, 40, 3, dtype=np.int32),
        "plan": plan(
            proposer,
            strategy=strategy,
            n_classes=8,
            first_refreshed=refreshed[0],
            n_refreshed=refreshed[1],
        ),
    }
    expected, report = forest.update(n_threads=2, progress=None, **options)
    made, same = from_arrays(forest, proposer).update(n_threads=1, progress=None, **options)
    made.check()
    equal_trees(made, expected)
    for name, count in report.as_dict().items():
        if not name.endswith("seconds"):
            assert same.as_dict()[name] == count, name


UNLIKE: dict[str, tuple[Any, str]] = {
    "no forest": (list, "no forests"),
    "classes": (lambda: [grow(SAMPLES, "ncm"), grow(SAMPLES, "ncm", n_classes=9)], "classes"),
    "kinds": (lambda: [grow(SAMPLES, "ncm"), grow(SAMPLES, "axis")], "split"),
    "samples": (lambda: [grow(with_more()[0], "ncm")], "rows of every"),
    "precision": (lambda: [grow(written(X, Y.astype(np.int32), half=True), "ncm")], "rows of"),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_forests_that_do_not_fit_together_are_not_joined(case: str) -> None:
    make, message = UNLIKE[case]
    with pytest.raises(ValueError, match=message):
        _core.Forest.joined(SAMPLES, make())


def test_a_forest_does_not_change_with_the_arrays_it_was_made_from() -> None:
    forest = grow(SAMPLES, "ncm", n_trees=2)
    trees = [
        {name: array.copy() for name, array in forest.tree_arrays(tree).items()}
        for tree in range(2)
    ]
    made = _core.Forest.from_arrays(
        samples=SAMPLES,
        trees=trees,
        n_comparisons=forest.n_comparisons,
        proposer="ncm",
        n_classes=forest.n_classes,
    )
    for arrays in trees:
        for array in arrays.values():
            array[:] = 0
    equal_trees(made, forest)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_trees_of_a_group_are_grown_in_turn(n_threads: int) -> None:
    plan_of_growth: GrowthPlan = {
        "n_classes": 6,
        "seed": 0,
        "rows_per_tree": len(X),
        "bootstrap": True,
        "rules": rules("ncm"),
        "n_threads": n_threads,
        "class_weights": [],
    }
    whole = grow_over((2, 5), SAMPLES, plan_of_growth)
    alone = [grow_over((tree, 1), SAMPLES, plan_of_growth) for tree in range(2, 7)]
    assert whole["n_comparisons"].tolist() == [int(one["n_comparisons"][0]) for one in alone]
    for tree, one in enumerate(alone):
        for name, array in one.items():
            if name != "n_comparisons":
                np.testing.assert_array_equal(whole[f"{tree}.{name[2:]}"], array)
