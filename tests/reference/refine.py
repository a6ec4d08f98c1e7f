"""Samples of a trained forest that get other, finer classes, and how leaves are read then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.reference.guessing import path_to_class
from tests.reference.ncm_forest import Floats, Ints, Node, Proposer, Rules, leaf_of, propose_ncm
from tests.reference.updates import TreePass, children, counts_below, is_leaf, leaves


def refine_tree(
    root: Node,
    X: Floats,
    y: Ints,
    before: Ints,
    rules: Rules,
    key: int,
    *,
    rows: set[int],
    share: float,
    parents: list[int],
    propose: Proposer = propose_ncm,
) -> None:
    """Give rows the classes they have in ``y`` instead of those in ``before``, in place.

    The topmost nodes of whose samples at least ``share`` belong to one refined class are grown
    again, and so are leaves with such rows. A row refines its class or, if that has no finer ones,
    the class above it.
    """
    work = TreePass(root, X, y, rules, key, propose)
    for leaf in leaves(root):
        moved = [row for row in leaf.rows.tolist() if row in rows]
        if not moved:
            continue
        for row in moved:
            leaf.counts[int(before[row])] -= 1
            leaf.counts[int(y[row])] = leaf.counts.get(int(y[row]), 0) + 1
        leaf.counts = {c: n for c, n in leaf.counts.items() if n}
        leaf.rows = work.by_class(leaf.rows)
        work.changed.add(id(leaf))

    refined = {c if finer(parents, c) else parents[c] for c in {int(y[row]) for row in rows}}

    def cut_full(node: Node) -> None:
        if is_leaf(node):
            return
        counts = counts_below(node)
        n_of = [
            sum(n for c, n in counts.items() if own in path_to_class(parents, c)) for own in refined
        ]
        if max(n_of) and max(n_of) >= share * sum(counts.values()):
            work.cut(node, np.zeros(0, dtype=np.int64))
            return
        for child in children(node):
            cut_full(child)

    cut_full(root)
    work.settle()


def path_to(node: Node, leaf: Node) -> list[Node]:
    """The nodes from the root to a leaf."""
    if node is leaf:
        return [node]
    if is_leaf(node):
        return []
    for child in children(node):
        below = path_to(child, leaf)
        if below:
            return [node, *below]
    return []


def finer(parents: list[int], c: int) -> list[int]:
    """The classes directly below a class."""
    return [f for f, parent in enumerate(parents) if parent == c and f != c]


def count_within(counts: dict[int, int], parents: list[int], c: int) -> int:
    """Samples of a class, those of finer classes included."""
    return sum(n for own, n in counts.items() if c in path_to_class(parents, own))


def given_above(
    nodes: list[Node], below: list[int], parents: list[int], smoothing: float
) -> list[float]:
    """P(class | class above) at the end of a path, each node's smoothed towards the one above it.

    ``below`` are all classes directly below one class.
    """
    counts = counts_below(nodes[-1])
    n = [count_within(counts, parents, f) for f in below]
    if len(nodes) == 1:
        return [k / sum(n) if sum(n) else 1 / len(below) for k in n]
    above = given_above(nodes[:-1], below, parents, smoothing)
    if not sum(n):
        return above
    return [(k + smoothing * p) / (sum(n) + smoothing) for k, p in zip(n, above, strict=True)]


def read_hierarchical(root: Node, leaf: Node, parents: list[int], smoothing: float) -> list[float]:
    """P(fine) = P(coarse) P(fine | coarse), the first over all samples of the leaf.

    With more levels, the product of P(class | class above) over all of them.
    """
    counts = leaf.counts
    shares = [0.0] * len(parents)

    def divide(c: int, share: float) -> None:
        below = finer(parents, c)
        if not below:
            shares[c] = share
            return
        given = given_above(path_to(root, leaf), below, parents, smoothing)
        for f, p in zip(below, given, strict=True):
            divide(f, share * p)

    for top in {path_to_class(parents, c)[0] for c in counts}:
        divide(top, count_within(counts, parents, top) / sum(counts.values()))
    return shares


def read_joint(root: Node, leaf: Node, parents: list[int], _: float) -> list[float]:
    """Shares among samples with a finest class, of the last node on the path that has any."""
    for node in reversed(path_to(root, leaf)):
        counts = counts_below(node)
        n = [0 if finer(parents, c) else counts.get(c, 0) for c in range(len(parents))]
        if sum(n):
            return [k / sum(n) for k in n]
    shares = [0.0] * len(parents)

    def split_evenly(c: int, share: float) -> None:
        below = finer(parents, c)
        shares[c] += 0.0 if below else share
        for f in below:
            split_evenly(f, share / len(below))

    for c, k in leaf.counts.items():
        split_evenly(c, k / sum(leaf.counts.values()))
    return shares


READINGS = {"joint": read_joint, "hierarchical": read_hierarchical}


def predict_proba(
    trees: list[Node], X: Floats, parents: list[int], reading: str, smoothing: float
) -> npt.NDArray[np.float64]:
    """The mean over the trees of what their leaves say."""
    out = np.zeros((len(X), len(parents)))
    for i, x in enumerate(X):
        for tree in trees:
            out[i] += READINGS[reading](tree, leaf_of(tree, x), parents, smoothing)
    return out / len(trees)
