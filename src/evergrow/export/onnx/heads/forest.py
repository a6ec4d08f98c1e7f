"""Forests: rows descend all trees at once, one level after the other, and leaves vote.

The nodes of all trees lie behind each other in flat arrays. For a level, the graph looks up the
node that each row has reached in each tree, gathers what the node compares with, and moves on to a
child. A row that has reached a leaf stays there. The levels are written out one by one, so that
each is as wide as its widest node and no operator repeats others.

Class means are compared in single precision, like in the library, but their products are summed in
another order. So a row that is as near to two means, up to rounding, may go another way in a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.estimators.forest.device.flat_forest import NO_VECTOR, Nodes
from evergrow.estimators.forest.predictor import ForestPredictor
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.export.onnx.graph import Graph
from evergrow.export.onnx.heads.head import Head
from evergrow.export.onnx.weights import HeadTypes

Integers = npt.NDArray[np.int64]

# As in the core: larger features are clipped, and this power of the length of a row is left.
_LARGEST = 1e15
_LENGTH_POWER = 0.1


def add_forest_head(graph: Graph, rows: str, model: ForestPredictor, types: HeadTypes) -> Head:
    """Add the probabilities of a forest, which are its scores too."""
    fitted = model._fitted
    features = _standardize(graph, graph.cast(rows, np.float64), fitted.standardization, types)
    nodes = Nodes.of(fitted.forest)
    leaves = _DESCENTS[fitted.forest.kind](graph, features, nodes)
    probabilities = _vote(graph, leaves, model)
    return Head(probabilities, probabilities, lambda: probabilities)


def _standardize(graph: Graph, rows: str, how: Standardization, types: HeadTypes) -> str:
    """Centre, scale and whiten rows and make their lengths equal, in single precision at last."""
    found = graph.add("Sub", rows, graph.constant(how.mean))
    found = _clip(graph, graph.add("Mul", found, graph.constant(how.scale)))
    if how.whitening is not None:
        single = graph.cast(graph.cast(found, np.float32), np.float64)
        found = _clip(graph, graph.upper_matmul(single, np.tril(how.whitening).T, types.large))
    if how.length_features is not None:
        found = graph.cast(graph.cast(found, np.float32), np.float64)
        counted = graph.constant(how.length_features[:, None])
        square = graph.add("MatMul", graph.add("Mul", found, found), counted)
        one, zero = graph.constant(1.0), graph.constant(0.0)
        # A row without length, the centre, stays.
        has_length = graph.add("Greater", square, zero)
        square = graph.add("Where", has_length, square, one)
        ratio = graph.add("Div", graph.constant(float(len(how.mean))), square)
        ratio = graph.add("Where", has_length, ratio, one)
        factor = graph.add("Pow", ratio, graph.constant((1 - _LENGTH_POWER) / 2))
        found = _clip(graph, graph.add("Mul", found, factor))
    return graph.cast(found, np.float32)


def _clip(graph: Graph, rows: str) -> str:
    return graph.add("Clip", rows, graph.constant(-_LARGEST), graph.constant(_LARGEST))


@dataclass(frozen=True)
class _Steps:
    """What all nodes have in common: where they begin, and where rows go."""

    graph: Graph
    # The left child of each node, which the right one follows; a leaf is its own child.
    left: str
    # 1 for nodes with children, 0 for leaves; some runtimes know no constants of truth values.
    splits: str

    @classmethod
    def of(cls, graph: Graph, nodes: Nodes) -> _Steps:
        splits = nodes.left >= 0
        left = np.where(splits, nodes.left, np.arange(len(splits)))
        return cls(graph, graph.constant(left, np.int64), graph.constant(splits, np.int64))

    def next(self, node: str, right: str) -> str:
        """The child that each row goes to, the right one for 1, or the leaf that it is in."""
        graph = self.graph
        step = graph.add("Mul", right, graph.add("Gather", self.splits, node))
        return graph.add("Add", graph.add("Gather", self.left, node), step)


def _start(graph: Graph, rows: str, nodes: Nodes) -> str:
    """The roots of all trees for every row, of shape (n, n_trees)."""
    first, end = (graph.constant([bound], np.int64) for bound in (0, 1))
    n_rows = graph.add("Slice", graph.add("Shape", rows), first, end)
    shape = graph.add("Concat", n_rows, graph.constant([len(nodes.roots)], np.int64), axis=0)
    return graph.add("Expand", graph.constant(nodes.roots, np.int64), shape)


def _levels(nodes: Nodes) -> Iterator[Integers]:
    """The nodes of each level that are not leaves, from the roots down."""
    level = nodes.roots
    while len(level := level[nodes.left[level] >= 0]):
        yield level
        level = np.concatenate([nodes.left[level], nodes.left[level] + 1])


def _descend_thresholds(graph: Graph, rows: str, nodes: Nodes) -> str:
    """Nodes that compare one feature with a threshold."""
    steps, splits = _Steps.of(graph, nodes), nodes.left >= 0
    column = np.where(splits, nodes.begin, 0)
    # A forest of nothing but leaves has no columns.
    source = np.where(splits, np.append(nodes.source, 0)[column], 0)
    offset = np.where(splits, np.append(nodes.offset, np.float32(0))[column], np.float32(0))
    features, thresholds = graph.constant(source, np.int64), graph.constant(offset, np.float32)
    node = _start(graph, rows, nodes)
    for _ in _levels(nodes):
        feature = graph.add("Gather", features, node)
        value = graph.add("GatherElements", rows, feature, axis=1)
        threshold = graph.add("Gather", thresholds, node)
        is_above = graph.add("Greater", value, threshold)
        node = steps.next(node, graph.cast(is_above, np.int64))
    return _places(graph, node, nodes)


def _descend_planes(graph: Graph, rows: str, nodes: Nodes) -> str:
    """Nodes that compare with a plane: a row with a negative score goes right."""
    steps, columns = _Steps.of(graph, nodes), _Columns.of(graph, rows, nodes)
    node = _start(graph, rows, nodes)
    # The first of two columns is zero, with which the score is compared.
    plane = graph.constant(np.where(nodes.left >= 0, nodes.begin + 1, 0), np.int64)
    for level in _levels(nodes):
        column = graph.add("Unsqueeze", graph.add("Gather", plane, node), _last_axis(graph))
        has_samples = _have_samples(nodes, level)
        scores = columns.scores(column, 1, has_samples=has_samples)
        scores = graph.add("Squeeze", scores, _last_axis(graph))
        is_negative = graph.add("Less", scores, graph.constant(0.0, np.float32))
        node = steps.next(node, graph.cast(is_negative, np.int64))
    return _places(graph, node, nodes)


def _descend_means(graph: Graph, rows: str, nodes: Nodes) -> str:
    """Nodes that compare with class means: the side of the nearest one."""
    steps, columns = _Steps.of(graph, nodes), _Columns.of(graph, rows, nodes)
    node = _start(graph, rows, nodes)
    splits = nodes.left >= 0
    begins = graph.constant(np.where(splits, nodes.begin, 0), np.int64)
    sizes = graph.constant(np.where(splits, nodes.size, 0), np.int64)
    sides = graph.constant(np.append(nodes.right, 0), np.int64)
    infinity = graph.constant(np.inf, np.float32)
    for level in _levels(nodes):
        width = int(nodes.size[level].max())
        number = graph.constant(np.arange(width), np.int64)
        begin = graph.add("Unsqueeze", graph.add("Gather", begins, node), _last_axis(graph))
        size = graph.add("Unsqueeze", graph.add("Gather", sizes, node), _last_axis(graph))
        is_used = graph.add("Less", number, size)
        column = graph.add("Add", begin, graph.add("Where", is_used, number, _zero(graph)))
        has_samples = _have_samples(nodes, level)
        scores = columns.scores(column, width, has_samples=has_samples)
        scores = graph.add("Where", is_used, scores, infinity)
        nearest = graph.add("ArgMin", scores, axis=2, keepdims=1)
        chosen = graph.add("GatherElements", column, nearest, axis=2)
        chosen = graph.add("Squeeze", chosen, _last_axis(graph))
        node = steps.next(node, graph.add("Gather", sides, chosen))
    return _places(graph, node, nodes)


_DESCENTS: dict[str, Callable[[Graph, str, Nodes], str]] = {
    "axis": _descend_thresholds,
    "linear": _descend_planes,
    "ncm": _descend_means,
}


def _zero(graph: Graph) -> str:
    return graph.constant(0, np.int64)


def _last_axis(graph: Graph) -> str:
    return graph.constant([-1], np.int64)


@dataclass(frozen=True)
class _Columns:
    """The vectors that nodes compare with.

    Most are stored in one or two bytes per number, and are gathered for the nodes that a row
    reaches. Some nodes compare with training samples. These are few and all trees share them, so
    that rows are multiplied by all of them at once. The last vector of each kind is zero, for
    columns without one.
    """

    graph: Graph
    rows: str
    n_features: int
    stored: str
    stored_place: str
    sample_products: str
    sample_place: str
    offset: str
    scale: str

    @classmethod
    def of(cls, graph: Graph, rows: str, nodes: Nodes) -> _Columns:
        stored, samples = (
            np.concatenate([part, np.zeros((1, nodes.vectors.shape[1]), part.dtype)])
            for part in (nodes.vectors, nodes.rows)
        )
        source = np.append(nodes.source, NO_VECTOR)
        is_sample = source >= 0
        is_stored = ~is_sample & (source != NO_VECTOR)
        products = ""
        if len(nodes.rows):
            by_feature = graph.cast(graph.constant(samples.T, samples.dtype), np.float32)
            products = graph.add("MatMul", rows, by_feature)
        return cls(
            graph,
            rows,
            nodes.vectors.shape[1],
            graph.constant(stored, stored.dtype),
            graph.constant(np.where(is_stored, ~source, len(stored) - 1), np.int64),
            products,
            graph.constant(np.where(is_sample, source, len(samples) - 1), np.int64),
            graph.constant(np.append(nodes.offset, np.float32(0)), np.float32),
            graph.constant(np.append(nodes.scale, np.float32(0)), np.float32),
        )

    def scores(self, column: str, width: int, *, has_samples: bool) -> str:
        """Scores of rows at columns of shape (n, n_trees, width); the lowest is the nearest."""
        graph = self.graph
        products = self._with_stored(column)
        if has_samples:
            products = graph.add("Add", products, self._with_samples(column))
        products = graph.add("Reshape", products, graph.constant([0, -1, width], np.int64))
        scaled = graph.add("Mul", graph.add("Gather", self.scale, column), products)
        return graph.add("Sub", graph.add("Gather", self.offset, column), scaled)

    def _with_stored(self, column: str) -> str:
        """Products of rows with stored vectors, of shape (n, n_trees * width)."""
        graph = self.graph
        place = graph.add("Gather", self.stored_place, column)
        # All vectors of a row behind each other, for one product of matrices per row.
        shape = graph.constant([0, -1, self.n_features], np.int64)
        vectors = graph.add("Reshape", graph.add("Gather", self.stored, place), shape)
        row = graph.add("Unsqueeze", self.rows, graph.constant([2], np.int64))
        products = graph.add("MatMul", graph.cast(vectors, np.float32), row)
        return graph.add("Squeeze", products, graph.constant([2], np.int64))

    def _with_samples(self, column: str) -> str:
        """Products of rows with training samples, likewise."""
        graph = self.graph
        place = graph.add("Gather", self.sample_place, column)
        flat = graph.add("Reshape", place, graph.constant([0, -1], np.int64))
        return graph.add("GatherElements", self.sample_products, flat, axis=1)


def _have_samples(nodes: Nodes, level: Integers) -> bool:
    """Whether nodes of a level compare with training samples."""
    widest = int(nodes.size[level].max())
    number = np.minimum(np.arange(widest), nodes.size[level][:, None] - 1)
    return bool((nodes.source[nodes.begin[level][:, None] + number] >= 0).any())


def _places(graph: Graph, node: str, nodes: Nodes) -> str:
    """From nodes to places among all leaves."""
    place = np.zeros(len(nodes.left), dtype=np.int64)
    place[nodes.leaves] = np.arange(len(nodes.leaves))
    return graph.add("Gather", graph.constant(place, np.int64), node)


def _vote(graph: Graph, leaves: str, model: ForestPredictor) -> str:
    """The mean votes of the leaves, with weights of old trees and small classes."""
    fitted: FittedForest = model._fitted
    ballot = fitted.ballot(model._checked_balance(), effective_n_jobs(model.n_jobs))
    votes = fitted.history.ages.votes
    n_classes, n_trees = len(fitted.labels), fitted.n_trees
    found = [ballot.trees.leaf_votes(tree, None, votes) for tree in range(n_trees)]
    total = graph.reduce("ReduceSum", _gather_votes(graph, leaves, found, n_classes), [1])
    sums = np.full(n_classes, float(n_trees)) if votes is None else votes.sums
    total = graph.add("Div", total, graph.constant(sums))
    if votes is not None:
        total = _rescale(graph, total)
    if ballot.weights is not None:
        # Classes that were added to a forest without samples have no weight.
        weights = np.ones(n_classes)
        weights[: len(ballot.weights)] = ballot.weights
        total = _rescale(graph, graph.add("Mul", total, graph.constant(weights)))
    return total


def _gather_votes(graph: Graph, leaves: str, trees: list[Any], n_classes: int) -> str:
    """The votes of leaves for all classes, of shape (n, n_trees, n_classes).

    Most leaves have the same few shares, such as a third, so that a table of numbers of shares is
    small. The shares themselves are exact: of two classes with equally many votes, rounding errors
    must not choose another one than in the library.
    """
    known, codes = np.unique(
        np.concatenate([[0.0], *(shares for *_, shares in trees)]), return_inverse=True
    )
    dtype = next(one for one in (np.uint8, np.uint16, np.int32) if len(known) <= np.iinfo(one).max)
    zero, codes = codes[0], codes[1:]
    table = np.full((sum(len(own) for own, *_ in trees), n_classes), zero, dtype=dtype)
    first_leaf = first_vote = 0
    for own, begin, classes, shares in trees:
        leaf = first_leaf + np.repeat(np.arange(len(own)), np.diff(begin))
        table[leaf, classes] = codes[first_vote : first_vote + len(shares)]
        first_leaf, first_vote = first_leaf + len(own), first_vote + len(shares)
    found = graph.add("Gather", graph.constant(table, dtype), leaves)
    return graph.add("Gather", graph.constant(known), graph.cast(found, np.int32))


def _rescale(graph: Graph, probabilities: str) -> str:
    """Divide rows by their sums; rows of zeros stay."""
    total = graph.reduce("ReduceSum", probabilities, [1], keep=True)
    is_positive = graph.add("Greater", total, graph.constant(0.0))
    total = graph.add("Where", is_positive, total, graph.constant(1.0))
    return graph.add("Div", probabilities, total)
