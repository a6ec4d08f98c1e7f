"""Samples of a trained forest that get other, finer classes, and how leaves are read then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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

    The topmost nodes of whose samples at least ``share`` belong to one refined coarse class are
    grown again, and so are leaves with such rows.
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

    refined = {parents[int(y[row])] for row in rows}

    def cut_full(node: Node) -> None:
        if is_leaf(node):
            return
        counts = counts_below(node)
        n_of = [sum(n for c, n in counts.items() if parents[c] == coarse) for coarse in refined]
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


def fine_given_coarse(path: list[Node], fine: list[int], smoothing: float) -> list[float]:
    """P(fine | coarse) at the end of a path, each node's smoothed towards the one above it."""
    counts = counts_below(path[-1])
    n = [counts.get(f, 0) for f in fine]
    if len(path) == 1:
        return [k / sum(n) if sum(n) else 1 / len(fine) for k in n]
    above = fine_given_coarse(path[:-1], fine, smoothing)
    if not sum(n):
        return above
    return [(k + smoothing * p) / (sum(n) + smoothing) for k, p in zip(n, above, strict=True)]


def fine_of(parents: list[int], coarse: int) -> list[int]:
    """The fine classes of a coarse one; itself if it has none."""
    below = [c for c, parent in enumerate(parents) if parent == coarse and c != coarse]
    return below or [coarse]


def read_hierarchical(root: Node, leaf: Node, parents: list[int], smoothing: float) -> list[float]:
    """P(fine) = P(coarse) P(fine | coarse), the first over all samples of the leaf."""
    counts = leaf.counts
    shares = [0.0] * len(parents)
    for coarse in {parents[c] for c in counts}:
        of_coarse = sum(n for c, n in counts.items() if parents[c] == coarse)
        fine = fine_of(parents, coarse)
        given = fine_given_coarse(path_to(root, leaf), fine, smoothing)
        for f, p in zip(fine, given, strict=True):
            shares[f] = of_coarse / sum(counts.values()) * p
    return shares


def read_joint(root: Node, leaf: Node, parents: list[int], _: float) -> list[float]:
    """Shares among samples with a finest class, of the last node on the path that has any."""
    for node in reversed(path_to(root, leaf)):
        counts = counts_below(node)
        is_finest = [c in fine_of(parents, parent) for c, parent in enumerate(parents)]
        n = [counts.get(c, 0) if finest else 0 for c, finest in enumerate(is_finest)]
        if sum(n):
            return [k / sum(n) for k in n]
    shares = [0.0] * len(parents)
    for c, k in leaf.counts.items():
        for f in fine_of(parents, c):
            shares[f] += k / sum(leaf.counts.values()) / len(fine_of(parents, c))
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
