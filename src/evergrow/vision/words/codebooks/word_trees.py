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

import numpy as np
import numpy.typing as npt

from evergrow._core import WordTrees
from evergrow.foundation.errors import ModelFileError
from evergrow.storage.models.header import Tensors, check_array

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

    def to_tensors(self) -> Tensors:
        """The arrays of a model file."""
        return trees_to_tensors(self.trees)


def trees_to_tensors(trees: WordTrees) -> Tensors:
    """The concatenated arrays of all trees, and the number of nodes of each."""
    arrays = trees.arrays
    joined = {name: np.concatenate([tree[name] for tree in arrays]) for name in _ARRAYS}
    n_nodes = np.array([len(tree["child"]) for tree in arrays], dtype=np.int64)
    return {**joined, "n_nodes": n_nodes, "n_features": np.array([trees.n_features])}


def trees_from_tensors(tensors: Tensors) -> WordTrees:
    """Rebuild trees from untrusted arrays; a ``ModelFileError`` if anything is inconsistent."""
    n_features = int(check_array(tensors.get("n_features"), "n_features", np.int64, (1,))[0])
    n_nodes = check_array(tensors.get("n_nodes"), "n_nodes", np.int64, (None,))
    total = len(check_array(tensors.get("child"), "child", np.int32, (None,)))
    # Each number is checked before the sum, which could overflow.
    if not len(n_nodes) or n_nodes.min() < 1 or n_nodes.max() > total or n_nodes.sum() != total:
        raise ModelFileError("the model file is inconsistent: its numbers of nodes are wrong")
    if n_features < 1:
        raise ModelFileError("the model file is inconsistent: its trees have no features")
    ends = np.cumsum(n_nodes)[:-1]
    parts = {
        name: np.split(check_array(tensors.get(name), name, dtype, (total,)), ends)
        for name, dtype in _ARRAYS.items()
    }
    trees = [{name: parts[name][t] for name in _ARRAYS} for t in range(len(n_nodes))]
    try:
        return WordTrees.from_arrays(trees, n_features)
    except ValueError as error:
        raise ModelFileError(f"the model file is inconsistent: {error}") from error
