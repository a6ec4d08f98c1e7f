"""Forests of the core and of their NumPy twins from the same data, and their comparison."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow import _core
from tests.reference import ncm_forest as twin
from tests.reference.axis_forest import AxisNode, propose_axis
from tests.reference.linear_forest import PlaneNode, propose_linear
from tests.reference.regularised_forest import RegularisedRules, propose_regularised

# The twins whose forests are those of the core to the last bit.
TWINS: dict[str, twin.Proposer] = {
    "ncm": twin.propose_ncm,
    "axis": propose_axis,
    "linear": propose_linear,
    "regularised": propose_regularised,
}


@dataclass(frozen=True)
class Weights:
    """Weights of samples and of classes."""

    of_rows: np.ndarray[Any, np.dtype[np.float32]]
    of_classes: np.ndarray[Any, np.dtype[np.float64]]

    @classmethod
    def draw(cls, seed: int, n: int, n_classes: int, kind: str) -> Weights | None:
        """Draw whole numbers, any numbers, or weights for classes alone; None for no weights."""
        rng = np.random.default_rng(seed)
        if kind == "whole":
            return cls(rng.integers(0, 4, n).astype(np.float32), np.ones(n_classes))
        if kind == "classes":
            return cls(np.ones(n, dtype=np.float32), rng.uniform(0, 3, n_classes))
        if kind == "any":
            return cls(rng.exponential(1, n).astype(np.float32), rng.uniform(0, 3, n_classes))
        return None

    def products(self, y: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The weights that samples of these classes have in the end."""
        return self.of_rows.astype(np.float64) * self.of_classes[y]


def core_rules(rules: twin.Rules, proposer: str, **others: Any) -> _core.SplitRules:
    values: dict[str, Any] = {
        "proposer": proposer,
        "n_centroids": rules.n_centroids,
        "n_candidates": rules.n_assignments,
        "min_samples_leaf": rules.min_samples_leaf,
        "min_gain": rules.min_gain,
        "regularization": rules.regularization,
    }
    if isinstance(rules, RegularisedRules):
        values |= {
            "n_subsets": rules.n_subsets,
            "cost_weight": rules.cost_weight,
            "max_scoring_samples": rules.max_scoring_samples or 0,
            "objective": rules.objective,
            "coarse_weight": rules.coarse_weight,
            "coarse_means": rules.coarse_means,
            "parents": list(rules.parents),
        }
    return _core.SplitRules(**{**values, **others})


def core_forest(
    X: Any,
    y: Any,
    n_trees: int,
    seed: int,
    rules: twin.Rules,
    n_threads: int = 1,
    proposer: str = "ncm",
    half: bool = False,
    weights: Weights | None = None,
) -> _core.Forest:
    samples = _core.Samples(X.shape[1], half)
    rows, codes, ids = X.astype(np.float32), y.astype(np.int32), np.arange(len(X))
    numbers = samples.add(len(X))
    samples.write(numbers, rows, codes, ids, plain(X.shape[1]))
    if weights is not None:
        samples.set_weights(numbers, weights.of_rows)
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
        class_weights=() if weights is None else weights.of_classes.tolist(),
    )


def small_integers(
    seed: int, n: int, d: int, n_classes: int, spread: int = 5
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    # Centred on the class, so that there is structure to find; ties are common.
    X = rng.integers(0, spread, (n, d)) + (y[:, None] * np.arange(1, d + 1)) % spread
    return X.astype(np.float32), y


def plain(n_features: int) -> _core.Standardizer:
    """The transform that leaves features as they are."""
    return _core.Standardizer(np.zeros(n_features), np.ones(n_features))


def stored_centroids(forest: _core.Forest, tree: int, node: int) -> np.ndarray[Any, Any]:
    """The vectors of a splitting node, from the arrays of its tree."""
    arrays, samples = forest.tree_arrays(tree), forest.samples
    vectors = stored_vectors(arrays, samples)
    begin, size = arrays["centroid_begin"][node], arrays["centroid_size"][node]
    values = []
    for j, source in enumerate(arrays["centroid_source"][begin : begin + size], begin):
        if source >= 0:
            values.append(samples.take(np.array([source], dtype=np.int32))[0])
        else:
            steps = vectors[~source].astype(np.float32)
            values.append(np.ldexp(steps, int(arrays["exponent"][j])))
    return np.stack(values)


def stored_vectors(arrays: dict[str, Any], samples: _core.Samples) -> np.ndarray[Any, Any]:
    """The numbers of all vectors of a tree: halves, or bytes that exponents belong to."""
    name, dtype = ("bytes", np.int8) if "bytes" in arrays else ("halves", np.float16)
    return arrays[name].reshape(-1, samples.width)[:, : samples.n_features].view(dtype)


def assert_same_split(forest: _core.Forest, tree: int, node: int, expected: twin.Node) -> None:
    arrays = forest.tree_arrays(tree)
    begin, size = arrays["centroid_begin"][node], arrays["centroid_size"][node]
    own = slice(begin, begin + size)
    classes, sides = arrays["centroid_class"][own].tolist(), arrays["side"][own].tolist()
    if isinstance(expected, AxisNode):
        assert (classes, sides) == ([expected.feature], [0])
        assert arrays["centroid_source"][begin] == -1
    else:
        plane = isinstance(expected, PlaneNode)
        assert classes == ([0] if plane else expected.classes)
        assert sides == ([0] if plane else [int(right) for right in expected.goes_right])
        np.testing.assert_array_equal(stored_centroids(forest, tree, node), expected.centroids)
    if isinstance(expected, (AxisNode, PlaneNode)):
        assert arrays["half_norm"][begin] == np.float32(expected.threshold)


def assert_same_tree(
    forest: _core.Forest, tree: int, expected: twin.Node, *, updated: bool = False
) -> None:
    """Compare splits, and rows and class counts of leaves.

    A twin that was updated no longer knows the rows of splitting nodes.
    """
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
            begin = arrays["count_begin"][node]
            own = slice(begin, begin + arrays["count_size"][node])
            counts = dict(zip(arrays["count_class"][own], arrays["count"][own], strict=True))
            assert counts == twin_node.counts
            continue
        assert child != -1
        if not updated:
            # Below a splitting node rows are ordered by leaf first.
            np.testing.assert_array_equal(np.sort(rows), np.sort(twin_node.rows))
        assert_same_split(forest, tree, node, twin_node)
        pending += [(child, twin_node.left), (child + 1, twin_node.right)]
    assert n_seen == len(arrays["left"])


def assert_same_forest(
    X: Any,
    y: Any,
    seed: int,
    rules: twin.Rules,
    proposer: str,
    n_trees: int = 2,
    weights: Weights | None = None,
) -> tuple[_core.Forest, list[twin.Node]]:
    """Grow the forest of the core and that of the twin, which must be the same; return both."""
    forest = core_forest(X, y, n_trees, seed, rules, proposer=proposer, weights=weights)
    products = None if weights is None else weights.products(y)
    expected = twin.grow_forest(X, y, n_trees, seed, rules, TWINS[proposer], products)
    for tree in range(n_trees):
        assert_same_tree(forest, tree, expected[tree])
    return forest, expected


def digest(forest: _core.Forest) -> str:
    """A hash of all arrays of a forest."""
    found = hashlib.sha256()
    for tree in range(len(forest)):
        for name, array in sorted(forest.tree_arrays(tree).items()):
            found.update(name.encode() + array.tobytes())
    return found.hexdigest()


def assert_equal_arrays(found: _core.Forest, expected: _core.Forest) -> None:
    """Compare all arrays of two forests of the core."""
    for tree in range(len(expected)):
        for name, array in expected.tree_arrays(tree).items():
            np.testing.assert_array_equal(found.tree_arrays(tree)[name], array, err_msg=name)
