"""Trees of thresholds whose leaves are words: what they are, coding with them, model files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.errors import ModelFileError
from evergrow.modelfile import check_array

__all__ = ["FittedTrees", "FlatTree", "trees_from_tensors", "words_of"]

Rows = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_NO_WORD = -1


@dataclass(frozen=True, eq=False)
class FlatTree:
    """One tree as arrays over its nodes; node 0 is the root, children come after their parents.

    Attributes
    ----------
    feature, threshold : ndarray of shape (n_nodes,), int32 and float32
        A descriptor ``x`` goes right where ``x[feature] > threshold``; 0 in leaves.
    child : ndarray of shape (n_nodes,), int32
        The left child; the right one is the next node; 0 in leaves.
    word : ndarray of shape (n_nodes,), int32
        The word of a leaf, from 0 on; -1 in other nodes.
    """

    feature: Ints
    threshold: Rows
    child: Ints
    word: Ints

    def __post_init__(self) -> None:
        """Close the arrays to changes: several codebooks may share a tree."""
        for array in (self.feature, self.threshold, self.child, self.word):
            array.setflags(write=False)

    @property
    def n_words(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.child == 0))

    @classmethod
    def numbered(cls, feature: Ints, threshold: Rows, child: Ints) -> FlatTree:
        """A tree whose leaves get their words in the order of the nodes."""
        leaf = child == 0
        word = np.full(len(child), _NO_WORD, dtype=np.int32)
        word[leaf] = np.arange(np.count_nonzero(leaf))
        return cls(feature, threshold, child, word)


def words_of(trees: Sequence[FlatTree], D: Rows) -> Ints:
    """Word of each descriptor in each tree, of shape (n_descriptors, n_trees)."""
    words = np.empty((len(D), len(trees)), dtype=np.int32)
    for column, tree in enumerate(trees):
        words[:, column] = tree.word[_leaves_of(tree, D)]
    return words


def _leaves_of(tree: FlatTree, D: Rows) -> npt.NDArray[np.intp]:
    """All descriptors go down together, a level at a time; those in leaves rest."""
    at = np.zeros(len(D), dtype=np.intp)
    moving = np.arange(len(D)) if tree.child[0] else np.zeros(0, dtype=np.intp)
    while len(moving):
        nodes = at[moving]
        right = D[moving, tree.feature[nodes]] > tree.threshold[nodes]
        nodes = (tree.child[nodes] + right).astype(np.intp)
        at[moving] = nodes
        moving = moving[tree.child[nodes] != 0]
    return at


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Several trees over descriptors of one length."""

    trees: tuple[FlatTree, ...]
    n_features: int

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of leaves of each tree."""
        return np.array([tree.n_words for tree in self.trees])

    def words_of(self, rows: Rows) -> Ints:
        """Word of each row in each tree."""
        return words_of(self.trees, rows)

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model file: all trees one after the other."""
        names = ("feature", "threshold", "child", "word")
        joined = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees]) for name in names
        }
        n_nodes = np.array([len(tree.child) for tree in self.trees])
        return {**joined, "n_nodes": n_nodes, "n_features": np.array([self.n_features])}


def trees_from_tensors(tensors: dict[str, npt.NDArray[Any]]) -> FittedTrees:
    """Trees from untrusted arrays; a ``ModelFileError`` if anything does not fit."""
    n_features = int(check_array(tensors.get("n_features"), "n_features", np.int64, (1,))[0])
    n_nodes = check_array(tensors.get("n_nodes"), "n_nodes", np.int64, (None,))
    feature = check_array(tensors.get("feature"), "feature", np.int32, (None,))
    total = len(feature)
    # Each one first: a sum of large ones may come out as anything.
    if not len(n_nodes) or n_nodes.min() < 1 or n_nodes.max() > total or n_nodes.sum() != total:
        raise ModelFileError("the model file is inconsistent: its trees have no or too many nodes")
    arrays = (
        feature,
        check_array(tensors.get("threshold"), "threshold", np.float32, (total,)),
        check_array(tensors.get("child"), "child", np.int32, (total,)),
        check_array(tensors.get("word"), "word", np.int32, (total,)),
    )
    ends = np.cumsum(n_nodes)[:-1]
    parts = zip(*(np.split(array, ends) for array in arrays), strict=True)
    trees = tuple(FlatTree(*part) for part in parts)
    for tree in trees:
        _check_tree(tree, n_features)
    return FittedTrees(trees, n_features)


def _check_tree(tree: FlatTree, n_features: int) -> None:
    leaf = tree.child == 0
    if (tree.feature < 0).any() or (tree.feature >= n_features).any():
        raise ModelFileError("the model file is inconsistent: a tree asks for no known feature")
    parents = np.flatnonzero(~leaf)
    left = tree.child[parents].astype(np.int64)
    # Each node but the root is the child of exactly one, and of an earlier one: no loops.
    children = np.sort(np.concatenate([left, left + 1]))
    if (left <= parents).any() or not np.array_equal(children, np.arange(1, len(tree.child))):
        raise ModelFileError("the model file is inconsistent: nodes of a tree do not hang together")
    n_words = np.count_nonzero(leaf)
    whole = np.array_equal(np.sort(tree.word[leaf]), np.arange(n_words))
    if not whole or (tree.word[~leaf] != _NO_WORD).any():
        raise ModelFileError("the model file is inconsistent: words of a tree are not its leaves")
