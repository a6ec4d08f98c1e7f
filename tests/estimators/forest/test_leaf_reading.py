"""Leaves of large trees, read at two levels of labels."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from evergrow import NCMForestClassifier, _core
from evergrow.estimators.forest.value.fitted import FittedForest

N_COARSE, N_FINE = 4, 20
# Fine classes first, then the coarse class of each.
PARENTS = [N_FINE + c % N_COARSE for c in range(N_FINE)] + [N_FINE + c for c in range(N_COARSE)]


def forest_of_both_levels() -> tuple[FittedForest, Any]:
    """Deep trees, a third of their samples with a coarse class only."""
    random = np.random.default_rng(0)
    fine = random.integers(0, N_FINE, 3000)
    X = random.normal(size=(N_FINE, 6))[fine] * 2 + random.normal(size=(3000, 6))
    y = np.where(random.random(3000) < 0.3, np.array(PARENTS)[fine], fine)
    y[: N_FINE + N_COARSE] = np.arange(N_FINE + N_COARSE)
    model = NCMForestClassifier(2, min_samples_leaf=2, random_state=0).fit(X, y)
    return model._fitted, X


def expected_shares(fitted: FittedForest, tree: int, leaf: int) -> Any:
    """P(coarse) P(fine | coarse), smoothed from the root down, node by node."""
    arrays = fitted.forest.tree_arrays(tree)
    left = arrays["left"]
    parent = {int(left[n]) + side: n for n in np.flatnonzero(left >= 0) for side in (0, 1)}
    path = [leaf]
    while path[-1] != 0:
        path.append(int(parent[path[-1]]))

    @cache
    def counts(node: int) -> Any:
        if left[node] >= 0:
            return counts(int(left[node])) + counts(int(left[node]) + 1)
        begin, size = arrays["count_begin"][node], arrays["count_size"][node]
        found = np.zeros(len(PARENTS))
        found[arrays["count_class"][begin : begin + size]] = arrays["count"][begin : begin + size]
        return found

    of_leaf, shares = counts(leaf), np.zeros(len(PARENTS))
    for coarse in range(N_FINE, N_FINE + N_COARSE):
        mine = np.array(PARENTS) == coarse
        fine = mine & (np.arange(len(PARENTS)) != coarse)
        given = counts(0)[fine] / counts(0)[fine].sum()
        for node in path[-2::-1]:
            n = counts(node)[fine]
            given = (n + 3.0 * given) / (n.sum() + 3.0) if n.sum() else given
        shares[fine] = of_leaf[mine].sum() / of_leaf.sum() * given
    return shares


def test_every_leaf_of_a_deep_tree_is_read_by_the_formula() -> None:
    fitted, X = forest_of_both_levels()
    reading = _core.LeafReading(PARENTS, "hierarchical", 3.0)
    scale = fitted.standardization.core
    leaves = fitted.forest.apply(X, scale, 1)
    # Many rows at once: what reading one leaf leaves behind would spoil the next.
    found = fitted.forest.predict_proba(X, scale, 1, reading)
    known: dict[tuple[int, int], Any] = {}
    for i in range(0, len(X), 31):
        expected = np.zeros(len(PARENTS))
        for tree in range(2):
            place = (tree, int(leaves[i, tree]))
            if place not in known:
                known[place] = expected_shares(fitted, *place)
            expected += known[place] / 2
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-9)


def test_rows_are_read_the_same_one_by_one_and_together() -> None:
    fitted, X = forest_of_both_levels()
    reading = _core.LeafReading(PARENTS, "hierarchical", 3.0)
    scale = fitted.standardization.core
    together = fitted.forest.predict_proba(X[:200], scale, 2, reading)
    alone = [fitted.forest.predict_proba(X[i : i + 1], scale, 1, reading)[0] for i in range(200)]
    np.testing.assert_array_equal(together, alone)
