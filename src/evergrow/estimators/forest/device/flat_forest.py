"""All trees of a forest as flat arrays, cut into groups of nodes that are passed in one step.

A row that reaches a node has to be read from memory to be compared with its class means, and on a
GPU reading takes longer than comparing. So a node, its children and theirs form a group as long as
they have few means together: a row is compared with all means of the group at once, and leaves it
two or three levels further down.

A column is one vector of a group, with the place to which rows go that are nearest to it. Nodes
that compare with a plane fit in: the score of a plane, negative on the right, is compared with
zero, so they have a column without a vector, and the plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow import _core

Integers: TypeAlias = npt.NDArray[np.int64]
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

# The source of a column without a vector.
NO_VECTOR = -(2**31)


@dataclass(frozen=True)
class GroupShape:
    """How large groups are at most.

    Attributes
    ----------
    columns : int
        Columns of a group of several nodes, a power of two: what a block of a kernel takes. A node
        with more columns is alone.
    levels : int
        Levels of nodes.
    """

    columns: int = 32
    levels: int = 3

    @property
    def n_members(self) -> int:
        """Nodes of a group."""
        return (1 << self.levels) - 1


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees, numbered one tree after the other, and what they compare with.

    Attributes
    ----------
    roots : ndarray of shape (n_trees,)
        The root of each tree.
    left : ndarray of shape (n_nodes,)
        Left child, which the right one follows; -1 for a leaf.
    begin, size : ndarray of shape (n_nodes,)
        Columns of each node.
    source : ndarray of shape (n_columns,)
        Row of ``rows``; bitwise not of a row of ``vectors``; or ``NO_VECTOR``. For thresholds it is
        a feature.
    offset, scale : ndarray of shape (n_columns,)
        The score of a row x is ``offset - scale * x @ vector``.
    right : ndarray of shape (n_columns,)
        1 if rows that are nearest to the vector go right.
    vectors : ndarray of shape (n_vectors, n_features)
        Stored vectors without their scale.
    rows : ndarray of shape (n_rows, n_features)
        Training samples that nodes compare with.
    leaves : ndarray of shape (n_leaves,)
        The leaves, tree by tree from left to right.
    """

    roots: Integers
    left: Integers
    begin: Integers
    size: Integers
    source: Integers
    offset: npt.NDArray[np.float32]
    scale: npt.NDArray[np.float32]
    right: Integers
    vectors: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    leaves: Integers

    @classmethod
    def of(cls, forest: _core.Forest) -> Nodes:
        """Join the arrays of all trees."""
        trees = [forest.tree_arrays(t, keep_numbers=True) for t in range(len(forest))]
        roots = _begins([len(arrays["left"]) for arrays in trees])
        columns = _begins([len(arrays["side"]) for arrays in trees])
        joined = {
            name: np.concatenate([arrays[name] for arrays in trees])
            for name in ("centroid_size", "half_norm", "side", "exponent")
        }
        left = [
            np.where(arrays["left"] >= 0, arrays["left"] + root, -1)
            for arrays, root in zip(trees, roots, strict=True)
        ]
        begin = [a["centroid_begin"] + first for a, first in zip(trees, columns, strict=True)]
        leaves = [forest.leaf_votes(t)[0] + root for t, root in enumerate(roots)]
        is_axis = forest.kind == "axis"
        source, vectors, rows = _features(trees) if is_axis else _vectors(forest, trees)
        nodes = cls(
            roots,
            np.concatenate(left).astype(np.int64),
            np.concatenate(begin).astype(np.int64),
            joined["centroid_size"].astype(np.int64),
            source,
            joined["half_norm"],
            # Only stored vectors have an exponent.
            np.ldexp(np.float32(1.0), np.where(source < 0, joined["exponent"], 0)),
            joined["side"].astype(np.int64),
            vectors,
            rows,
            np.concatenate(leaves).astype(np.int64),
        )
        return nodes._as_means() if forest.kind == "linear" else nodes

    def _as_means(self) -> Nodes:
        """The same for planes, as columns of which the one with the lowest score decides."""
        n = len(self.source)
        zeros = np.zeros(n, dtype=np.float32)
        return Nodes(
            self.roots,
            self.left,
            2 * self.begin,
            2 * self.size,
            # Zero comes first: a row on the plane goes left.
            np.stack([np.full(n, NO_VECTOR), self.source], axis=1).ravel(),
            np.stack([zeros, self.offset], axis=1).ravel(),
            np.repeat(self.scale, 2),
            np.tile(np.array([0, 1]), n),
            self.vectors,
            self.rows,
            self.leaves,
        )


def _features(trees: list[Arrays]) -> tuple[Integers, npt.NDArray[Any], npt.NDArray[Any]]:
    """The features that nodes with thresholds read; they have no vectors."""
    nothing = np.zeros((0, 0), dtype=np.float32)
    return np.concatenate([a["centroid_class"] for a in trees]).astype(np.int64), nothing, nothing


def _vectors(
    forest: _core.Forest, trees: list[Arrays]
) -> tuple[Integers, npt.NDArray[Any], npt.NDArray[Any]]:
    """Sources of all columns, and the stored vectors and training samples that they refer to."""
    width, n_features = forest.samples.width, forest.samples.n_features
    slots = [_slots(arrays, width)[:, :n_features] for arrays in trees]
    firsts = _begins([len(own) for own in slots])
    source = np.concatenate([arrays["centroid_source"] for arrays in trees]).astype(np.int64)
    is_row = source >= 0
    source -= np.where(is_row, 0, np.repeat(firsts, [len(arrays["side"]) for arrays in trees]))
    # Only what is used: an edited tree also holds what it no longer needs.
    used_slots, slot_of = np.unique(~source[~is_row], return_inverse=True)
    used_rows, row_of = np.unique(source[is_row], return_inverse=True)
    source[is_row], source[~is_row] = row_of, ~slot_of
    rows = forest.samples.take(used_rows.astype(np.int32))
    rows = rows.view(np.float16) if rows.dtype == np.uint16 else rows
    dtype = np.result_type(*{own.dtype for own in slots})
    vectors = np.empty((len(used_slots), n_features), dtype=dtype)
    bounds = np.searchsorted(used_slots, [*firsts, np.iinfo(np.int64).max])
    for t, own in enumerate(slots):
        part = slice(bounds[t], bounds[t + 1])
        vectors[part] = own[used_slots[part] - firsts[t]]
    return source, vectors, rows[:, :n_features]


def _slots(arrays: Arrays, width: int) -> npt.NDArray[Any]:
    """The stored vectors of a tree: bytes, or half precision."""
    if "bytes" in arrays:
        return arrays["bytes"].reshape(-1, width)
    return arrays["halves"].view(np.float16).reshape(-1, width)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of nodes in the order of the steps in which rows reach them, and their columns.

    Attributes
    ----------
    steps : list of int
        First group of each step, and the number of groups.
    widest : list of int
        Columns of the largest group of each step.
    tree : ndarray of shape (n_groups,)
        Tree of each group.
    begin : ndarray of shape (n_groups + 1,)
        First column of each group, and the number of columns.
    column : ndarray of shape (n_columns,)
        The column of :class:`Nodes`.
    member : ndarray of shape (n_columns,)
        Which node of its group a column belongs to; the uppermost is 0.
    target : ndarray of shape (n_columns,)
        Where a row goes that is nearest to the column: to another node of the group, or to the
        bitwise not of an exit. Exits are numbers of groups, and behind these numbers of leaves.
    entry : ndarray of shape (n_trees,)
        Where each tree begins: an exit.
    shape : GroupShape
        How large groups are at most.
    """

    steps: list[int]
    widest: list[int]
    tree: Integers
    begin: Integers
    column: Integers
    member: Integers
    target: Integers
    entry: Integers
    shape: GroupShape

    @property
    def n_steps(self) -> int:
        """Number of steps to the lowest leaf."""
        return len(self.widest)

    @classmethod
    def of(cls, nodes: Nodes, shape: GroupShape) -> Groups:
        """Cut all trees into groups, from the roots down."""
        steps = list(_steps(nodes, shape))
        sizes = [len(step.trees) for step in steps]
        n_groups = sum(sizes)
        exits = np.full(len(nodes.left), -1, dtype=np.int64)
        exits[nodes.leaves] = n_groups + np.arange(len(nodes.leaves))
        exits[_joined([step.members[:, 0] for step in steps])] = np.arange(n_groups)
        target = _joined([step.target for step in steps])
        target[target < 0] = ~exits[~target[target < 0]]
        widths = [step.n_columns for step in steps]
        return cls(
            [0, *np.cumsum(sizes, dtype=np.int64).tolist()],
            [int(width.max()) for width in widths],
            _joined([step.trees for step in steps]),
            np.concatenate([[0], np.cumsum(_joined(widths))]),
            _joined([step.column for step in steps]),
            _joined([step.member for step in steps]),
            target,
            exits[nodes.roots],
            shape,
        )


@dataclass(frozen=True, eq=False)
class _Step:
    """The groups that rows reach in one step."""

    trees: Integers
    members: Integers  # nodes of each group, -1 for none; those below member i are 2i+1 and 2i+2
    n_columns: Integers
    column: Integers
    member: Integers
    target: Integers  # a member, or the bitwise not of a node


def _steps(nodes: Nodes, shape: GroupShape) -> Iterator[_Step]:
    trees = np.flatnonzero(nodes.left[nodes.roots] >= 0)
    roots = nodes.roots[trees]
    while len(roots):
        step = _group(nodes, trees, roots, shape)
        yield step
        children = nodes.left[step.members][:, :, None] + np.arange(2)
        is_exit = (step.members >= 0)[:, :, None] & ~_has_children(step.members)
        is_exit &= nodes.left[children] >= 0
        roots = children[is_exit]
        trees = np.broadcast_to(trees[:, None, None], is_exit.shape)[is_exit]


def _group(nodes: Nodes, trees: Integers, roots: Integers, shape: GroupShape) -> _Step:
    """Add nodes below the roots as long as the columns of a group are few."""
    members = np.full((len(roots), shape.n_members), -1, dtype=np.int64)
    members[:, 0], total = roots, nodes.size[roots]
    for place in range(1, shape.n_members):
        above = members[:, (place - 1) // 2]
        node = np.where(above >= 0, nodes.left[above] + (place - 1) % 2, -1)
        splits = (node >= 0) & (nodes.left[node] >= 0)
        fits = splits & (total + nodes.size[node] <= shape.columns)
        members[fits, place] = node[fits]
        total = total + np.where(fits, nodes.size[node], 0)
    group, member = np.nonzero(members >= 0)
    own = members[group, member]
    size = nodes.size[own]
    column = np.repeat(nodes.begin[own] - _begins(size), size) + np.arange(size.sum())
    group, member, own = (np.repeat(values, size) for values in (group, member, own))
    right = nodes.right[column]
    inside = _has_children(members)[group, member, right]
    target = np.where(inside, 2 * member + 1 + right, ~(nodes.left[own] + right))
    return _Step(trees, members, total, column, member, target)


def _has_children(members: Integers) -> npt.NDArray[np.bool_]:
    """For each member, whether its left and its right child are in the group too."""
    inside = np.zeros((*members.shape, 2), dtype=bool)
    inside[:, : members.shape[1] // 2] = (members[:, 1:] >= 0).reshape(len(members), -1, 2)
    return inside


def _begins(sizes: Any) -> Integers:
    """Where parts of these sizes begin.

    >>> _begins([2, 3, 1]).tolist()
    [0, 2, 5]
    """
    each: Integers = np.asarray(sizes, dtype=np.int64)
    return np.asarray(np.cumsum(each) - each)


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def padded_width(n_features: int) -> int:
    """Number of features with zeros added: a power of two up to 64, or a multiple of 64.

    >>> padded_width(3), padded_width(40), padded_width(256), padded_width(257)
    (16, 64, 256, 320)
    """
    if n_features > 64:
        return -(-n_features // 64) * 64
    return max(16, 1 << (n_features - 1).bit_length())
