"""Threshold trees whose leaves are words: coding, and their arrays in model files.

A tree is a set of arrays over its nodes, the root first and children after their parents:
``feature`` and ``threshold`` (a descriptor ``x`` goes right if ``x[feature] > threshold``),
``child`` (the left child, followed by the right one; 0 in leaves) and ``word`` (-1 except in
leaves).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow._core import WordTrees
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields
from evergrow.storage.models.header import Tensors

Indices = npt.NDArray[np.intp]
Ints = npt.NDArray[np.int32]
Rows = npt.NDArray[np.float32]

_ARRAYS: dict[str, type] = {
    "feature": np.int32,
    "threshold": np.float32,
    "child": np.int32,
    "word": np.int32,
}


def number_leaves(feature: Ints, threshold: Rows, child: Ints) -> Tensors:
    """Complete the arrays of a tree: its leaves get words in the order of the nodes."""
    leaf = child == 0
    word = np.full(len(child), -1, dtype=np.int32)
    word[leaf] = np.arange(np.count_nonzero(leaf))
    return {"feature": feature, "threshold": threshold, "child": child, "word": word}


# Splits the rows of a node among at most so many children; fewer than two if it stays a leaf.
Split = Callable[[int, Indices, int], list[Indices]]


def grow_largest_first(
    rows: Indices, n_leaves: int, split: Split, finished: Callable[[int], None] | None = None
) -> list[int]:
    """Split the largest leaf until there are enough; return the first child of each node.

    The children of a node are consecutive and come after all earlier nodes; 0 is the child of a
    leaf. ``rows`` are the indices of all rows. ``finished`` is called with the number of leaves.
    """
    child = [0]
    cells: dict[int, Indices] = {0: rows}
    # The largest cell first; the first one of ties.
    queue = [(-len(rows), 0)]
    n_found = 1
    while queue and n_found < n_leaves:
        node = heapq.heappop(queue)[1]
        parts = split(node, cells.pop(node), n_leaves - n_found + 1)
        if len(parts) < 2:
            continue
        child[node] = len(child)
        for part in parts:
            cells[len(child)] = part
            heapq.heappush(queue, (-len(part), len(child)))
            child.append(0)
        n_found += len(parts) - 1
        if finished is not None:
            finished(n_found)
    return child


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Trees that were learnt without classes, as one immutable value."""

    trees: WordTrees

    _stored: ClassVar[Fields] = {
        "n_features": [Integer(1, 2**31 - 1)],
        "n_nodes": Array(np.int64, (None,), 1, total=MOST_COUNTED, filled=True),
        **{name: Array(dtype, ("nodes",)) for name, dtype in _ARRAYS.items()},
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return the joined arrays of all trees, and the number of nodes of each."""
        arrays = self.trees.arrays
        joined = {name: np.concatenate([tree[name] for tree in arrays]) for name in _ARRAYS}
        return {**joined, "n_nodes": np.array([len(tree["child"]) for tree in arrays])}

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> FittedTrees:
        """Rebuild from a model file; the core checks the links."""
        n_nodes = fields["n_nodes"]
        if n_nodes.sum() != len(fields["child"]):
            raise InvalidInputError("its numbers of nodes are wrong")
        ends = np.cumsum(n_nodes)[:-1]
        parts = {name: np.split(fields[name], ends) for name in _ARRAYS}
        trees = [{name: parts[name][t] for name in _ARRAYS} for t in range(len(n_nodes))]
        return cls(WordTrees.from_arrays(trees, fields["n_features"]))

    @property
    def n_features(self) -> int:
        """Number of features of the descriptors."""
        return self.trees.n_features

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of leaves of each tree."""
        return np.array(self.trees.words_per_tree, dtype=np.int64)

    def words_of(self, rows: Rows, n_threads: int) -> Ints:
        """Word of each row in each tree."""
        return self.trees.code(rows, n_threads)
