"""Growing a trained forest [Ristin2014 Sec. 4] in plain NumPy.

ULS, IGT, RTST (and the report's RTSTQ) and RUST, forgetting, and eviction of samples while their
counts stay. All but RUST work with any kind of split. The core makes the identical forest on
small integers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tests.reference.ncm_forest import (
    Floats,
    Ints,
    Mask,
    Node,
    Proposer,
    Rules,
    centroid_of,
    draw_rows,
    entropy_term,
    grow,
    nearest_centroid,
    only_row,
    propose_ncm,
    repeat_rows,
)
from tests.reference.random import CHOICE, RESERVOIR, ROOT, ROWS, Stream, derive, tree_key

Floats64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Update:
    """Parameters of one update."""

    strategy: str  # uls, igt, rtst, rust
    share: float = 0.8
    nodes: str = "size"  # size, uniform, quality
    row_rate: float = 1.0
    bootstrap: bool = False


def is_leaf(node: Node) -> bool:
    """Whether a node has no children."""
    return node.left is None


def children(node: Node) -> tuple[Node, Node]:
    """Both children of a splitting node."""
    assert node.left is not None
    assert node.right is not None
    return node.left, node.right


def with_keys(node: Node, key: int) -> Iterator[tuple[Node, int]]:
    """All nodes of a subtree, a node before its children, left before right."""
    yield node, key
    if not is_leaf(node):
        for side, child in enumerate(children(node)):
            yield from with_keys(child, derive(key, side))


def leaves(node: Node) -> list[Node]:
    """All leaves of a subtree from left to right."""
    return [n for n, _ in with_keys(node, 0) if is_leaf(n)]


def rows_below(node: Node) -> Ints:
    """The training rows of a subtree, leaf by leaf."""
    return np.concatenate([leaf.rows for leaf in leaves(node)]).astype(np.int64)


def counts_below(node: Node) -> dict[int, int]:
    """Samples per class that a subtree has seen."""
    total: dict[int, int] = {}
    for leaf in leaves(node):
        for c, n in leaf.counts.items():
            total[c] = total.get(c, 0) + n
    return total


def entropy(counts: dict[int, int]) -> int:
    """n times the entropy, in fixed point."""
    return entropy_term(sum(counts.values())) - sum(entropy_term(n) for n in counts.values())


def quality(node: Node) -> float:
    """Q(n) of the report: what all splits below a node gain together."""
    n = sum(counts_below(node).values())
    below = sum(entropy(leaf.counts) for leaf in leaves(node))
    return (entropy(counts_below(node)) - below) / (2.0**30 * n)


WEIGHTS: dict[str, Callable[[Node], float]] = {
    "size": lambda node: 1.0 / (sum(1 for _ in with_keys(node, 0)) + 1),  # [Ristin2014 Eq. 7]
    "uniform": lambda node: 1.0,
    "quality": lambda node: 1.0 / quality(node) if quality(node) > 0 else 0.0,
}


def choose_nodes(root: Node, update: Update, key: int) -> set[int]:
    """A weighted share of the splitting nodes without replacement, as ids of objects."""
    splitting = [(node, k) for node, k in with_keys(root, key) if not is_leaf(node)]
    wanted = math.floor(update.share * len(splitting) + 0.5)
    ranks = []
    for node, node_key in splitting:
        weight = WEIGHTS[update.nodes](node)
        if weight > 0:
            u = Stream(derive(node_key, CHOICE)).uniform()
            ranks.append((-math.log(1.0 - u) / weight, id(node)))
    ranks.sort(key=lambda rank: rank[0])
    return {node for _, node in ranks[:wanted]}


def become(node: Node, other: Node) -> None:
    """Put another node in the place of one."""
    node.__class__ = other.__class__
    vars(node).clear()
    vars(node).update(vars(other))


class TreePass:
    """One pass of an update through one tree."""

    def __init__(
        self, root: Node, X: Floats, y: Ints, rules: Rules, key: int, propose: Proposer
    ) -> None:
        self.root, self.X, self.y, self.rules, self.propose = root, X, y, rules, propose
        self.key = derive(key, ROOT)
        self.changed: set[int] = set()
        self.shrunk: set[int] = set()

    def by_class(self, rows: Ints) -> Ints:
        """Sort rows by class, rows of one class in the order given."""
        return rows[np.argsort(self.y[rows], kind="stable")]

    def sides(self, node: Node, rows: Ints) -> Mask:
        """Which rows go right."""
        return node.sends_right(self.X[rows]) if len(rows) else np.zeros(0, dtype=bool)

    def add(self, rows: Ints, update: Update) -> None:
        """Take new rows down the tree."""
        chosen: set[int] = set()
        if update.strategy in ("rtst", "rust"):
            chosen = self.choose(rows, update)
        batch = set(self.y[rows].tolist())

        def at_node(node: Node, key: int, arrivals: Ints) -> Ints | None:
            if id(node) not in chosen:
                return np.zeros(0, dtype=np.int64)
            if update.strategy == "rtst":
                self.cut(node, arrivals)
                return None
            return self.reuse(node, key, arrivals, batch)

        self.visit(self.root, self.key, rows, at_node, everywhere=False)

    def choose(self, rows: Ints, update: Update) -> set[int]:
        """Nodes that may change, as ids; their quality is that of old and new samples together."""
        if update.nodes != "quality":
            return choose_nodes(self.root, update, self.key)
        counted = copy.deepcopy(self.root)
        work = type(self)(counted, self.X, self.y, self.rules, 0, self.propose)
        work.visit(counted, 0, rows, lambda *_: np.zeros(0, dtype=np.int64), everywhere=False)
        chosen = choose_nodes(counted, update, self.key)
        pairs = zip(with_keys(counted, 0), with_keys(self.root, 0), strict=True)
        return {id(node) for (copied, _), (node, _) in pairs if id(copied) in chosen}

    def visit(
        self,
        node: Node,
        key: int,
        arrivals: Ints,
        at_node: Callable[[Node, int, Ints], Ints | None],
        *,
        everywhere: bool,
    ) -> None:
        """A node sees its stored and its new samples once and sends both on."""
        if not len(arrivals) and not everywhere:
            return
        if is_leaf(node):
            if len(arrivals):
                node.rows = self.by_class(np.concatenate([node.rows, arrivals]))
                self.count(node, arrivals)
                self.changed.add(id(node))
            return
        moving = at_node(node, key, arrivals)
        if moving is None:
            return
        for side, child in enumerate(children(node)):
            arriving = arrivals[self.sides(node, arrivals) == bool(side)]
            moved = moving[self.sides(node, moving) == bool(side)]
            both = self.by_class(np.concatenate([moved, arriving]))
            self.visit(child, derive(key, side), both, at_node, everywhere=everywhere)

    def count(self, leaf: Node, rows: Ints) -> None:
        """Add rows to the class counts of a leaf."""
        for c in self.y[rows].tolist():
            leaf.counts[c] = leaf.counts.get(c, 0) + 1

    def cut(self, node: Node, arrivals: Ints) -> None:
        """Make a node a leaf that holds all samples of its subtree."""
        counts = counts_below(node)
        node.rows = self.by_class(np.concatenate([rows_below(node), arrivals]))
        become(node, Node(node.rows, counts))
        self.count(node, arrivals)
        self.changed.add(id(node))
        self.shrunk.add(id(node))

    def reuse(self, node: Node, key: int, arrivals: Ints, batch: set[int]) -> Ints | None:
        """RUST at one node [Ristin2014 Eq. 8]: rows that change sides, None if it was cut."""
        new, n_seen = self.offered(node, arrivals, batch)
        places = self.reservoir(node, list(new), n_seen, Stream(derive(key, RESERVOIR)))
        if all(place is None for place in places):
            return np.zeros(0, dtype=np.int64)
        assert node.centroids is not None
        centroids = []
        for j, c in enumerate(places):
            if c is None:
                centroids.append(node.centroids[j])
                continue
            centroids.append(centroid_of(self.X, new[c]))
        stored = rows_below(node)
        everything = np.concatenate([stored, arrivals])
        nearest = nearest_centroid(self.X[everything], np.stack(centroids))
        known: list[bool | None] = [
            node.goes_right[j] if c is None else None for j, c in enumerate(places)
        ]
        for j, c in enumerate(places):
            if c is not None:
                known[j] = self.better_side(everything, nearest, known, j)
        sides = [bool(side) for side in known]
        if len(set(sides)) < 2:
            self.cut(node, arrivals)
            return None
        n_left = len(rows_below(children(node)[0]))
        is_right = np.arange(len(stored)) >= n_left
        moving = stored[np.array(sides)[nearest[: len(stored)]] != is_right]
        old_rows = [*node.centroid_rows, *[-1] * (len(places) - len(node.centroid_rows))]
        node.centroid_rows = [
            old_rows[j] if c is None else only_row(new[c]) for j, c in enumerate(places)
        ]
        node.classes = [node.classes[j] if c is None else c for j, c in enumerate(places)]
        node.centroids, node.goes_right = np.stack(centroids), sides
        self.take_out(node, set(moving.tolist()))
        return self.by_class(moving)

    def offered(self, node: Node, arrivals: Ints, batch: set[int]) -> tuple[dict[int, Ints], int]:
        """Rows of the classes of the batch that are new to a node, and how many it knows."""
        seen = counts_below(node)
        new = [c for c in dict.fromkeys(self.y[arrivals].tolist()) if c in batch and c not in seen]
        return {c: arrivals[self.y[arrivals] == c] for c in new}, len(seen)

    def most_centroids(self, node: Node) -> int:
        """Means that a node may have."""
        return self.rules.n_centroids

    def reservoir(
        self, node: Node, new: list[int], n_seen: int, stream: Stream
    ) -> list[int | None]:
        """Which new class stands at each place of a node; None where the old centroid stays."""
        places: list[int | None] = [None] * len(node.classes)
        for c in new:
            n_seen += 1
            if len(places) < self.most_centroids(node):
                places.append(c)
            elif stream.below(n_seen) < self.most_centroids(node):
                places[stream.below(len(places))] = c
        return places

    def better_side(self, rows: Ints, nearest: Ints, known: list[bool | None], j: int) -> bool:
        """The side of centroid j that is worth more, left if both are worth the same."""

        def score(right: bool) -> float:
            trial = [right if i == j else side for i, side in enumerate(known)]
            sided = [i for i, side in enumerate(trial) if side is not None]
            counted = np.isin(nearest, sided)
            return self.worth(rows[counted], np.array(trial)[nearest[counted]].astype(bool))

        return score(True) > score(False)

    def worth(self, rows: Ints, right: Mask) -> float:
        """[Ristin2014 Eq. 3], n times and up to what does not depend on the sides."""
        total = 0
        for side in (False, True):
            counts = np.unique(self.y[rows[right == side]], return_counts=True)[1].tolist()
            total += sum(entropy_term(n) for n in counts) - entropy_term(sum(counts))
        return total

    def take_out(self, node: Node, rows: set[int], *, keep_counts: bool = False) -> None:
        """Take rows out of the leaves below a node."""
        for leaf in leaves(node):
            stays = np.array([row not in rows for row in leaf.rows.tolist()], dtype=bool)
            if stays.all():
                continue
            for c in self.y[leaf.rows[~stays]].tolist():
                if not keep_counts:
                    leaf.counts[c] -= 1
            leaf.counts = {c: n for c, n in leaf.counts.items() if n}
            leaf.rows = leaf.rows[stays]
            self.shrunk.add(id(leaf))

    def forget(self, rows: set[int], classes: set[int]) -> None:
        """Take out rows, and every centroid that is one of them or a mean of the classes."""
        self.take_out(self.root, rows)
        for leaf in leaves(self.root):
            leaf.counts = {c: n for c, n in leaf.counts.items() if c not in classes}
            if not leaf.counts:
                self.shrunk.add(id(leaf))

        # A mean that equals a forgotten row is taken for a copy of it.
        copies = {tuple(self.X[row].tolist()) for row in rows if self.y[row] not in classes}

        def stays(node: Node, j: int) -> bool:
            assert node.centroids is not None
            if node.centroid_rows[j] >= 0:
                named = node.centroid_rows[j] in rows
            else:
                named = tuple(node.centroids[j].tolist()) in copies
            return node.classes[j] not in classes and not named

        def at_node(node: Node, key: int, arrivals: Ints) -> Ints | None:
            kept = [j for j in range(len(node.classes)) if stays(node, j)]
            if len(kept) == len(node.classes):
                return np.zeros(0, dtype=np.int64)
            if len({node.goes_right[j] for j in kept}) < 2:
                self.cut(node, arrivals)
                return None
            assert node.centroids is not None
            node.classes = [node.classes[j] for j in kept]
            node.goes_right = [node.goes_right[j] for j in kept]
            node.centroid_rows = [node.centroid_rows[j] for j in kept]
            node.centroids = node.centroids[kept]
            moving = []
            for side, child in enumerate(children(node)):
                stored = rows_below(child)
                moving.append(stored[self.sides(node, stored) != bool(side)])
            both = np.concatenate(moving)
            self.take_out(node, set(both.tolist()))
            return self.by_class(both)

        nothing = np.zeros(0, dtype=np.int64)
        self.visit(self.root, self.key, nothing, at_node, everywhere=True)

    def settle(self) -> None:
        """Cut leaves that became too small, then grow the leaves that changed."""
        self.cut_small(self.root)
        for node, key in list(with_keys(self.root, self.key)):
            if is_leaf(node) and id(node) in self.changed:
                counts = node.counts
                become(node, grow(self.X, self.y, node.rows, key, self.rules, self.propose))
                share_counts(node, counts, self.y)

    def cut_small(self, node: Node) -> None:
        """A parent of a leaf that shrank too far becomes a leaf."""
        if is_leaf(node):
            return
        for child in children(node):
            self.cut_small(child)
        for child in children(node):
            too_small = len(child.rows) < self.rules.min_samples_leaf
            if is_leaf(child) and id(child) in self.shrunk and too_small:
                self.cut(node, np.zeros(0, dtype=np.int64))
                return


def share_counts(node: Node, counts: dict[int, int], y: Ints) -> None:
    """Class counts of a grown subtree; samples without rows are shared out as the rows are."""
    if is_leaf(node):
        node.counts = dict(counts)
        return
    left, right = children(node)
    on_left, on_right = y[rows_below(left)], y[rows_below(right)]
    shares: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for c, n in counts.items():
        n_right, n_both = int((on_right == c).sum()), int((on_left == c).sum())
        n_both += n_right
        if not n_both:
            n_right, n_both = len(on_right), len(on_left) + len(on_right)
        to_right = n * n_right // n_both
        if to_right:
            shares[1][c] = to_right
        if to_right < n:
            shares[0][c] = n - to_right
    share_counts(left, shares[0], y)
    share_counts(right, shares[1], y)


def update_tree(
    root: Node,
    X: Floats,
    y: Ints,
    rows: Ints,
    rules: Rules,
    update: Update,
    key: int,
    *,
    refreshed: bool = False,
    evicted: frozenset[int] = frozenset(),
    propose: Proposer = propose_ncm,
    kind: type[TreePass] = TreePass,
    weights: Floats64 | None = None,
    ids: Ints | None = None,
) -> None:
    """Update one tree in place; ``rows`` are the new ones, in the order they came.

    ``weights`` and ``ids`` are those of all rows.
    """
    work = kind(root, X, y, rules, key, propose)
    rows = work.by_class(rows)
    if weights is not None and ids is not None:
        rows = repeat_rows(rows, weights, ids, key)
    if len(rows) and (update.row_rate != 1.0 or update.bootstrap):
        stream = Stream(derive(key, ROWS))
        n_rows = int(update.row_rate * len(rows) + stream.uniform())
        sampling = replace(rules, rows_per_tree=n_rows, bootstrap=update.bootstrap)
        rows = draw_rows(rows, sampling, stream)
    if refreshed:
        work.cut(root, rows)
    else:
        work.add(rows, update)
    work.take_out(root, set(evicted), keep_counts=True)
    for node, _ in with_keys(root, key):  # a centroid that was such a row is now a copy of it
        node.centroid_rows = [-1 if row in evicted else row for row in node.centroid_rows]
    if update.strategy != "uls" or refreshed:
        work.settle()


def forget_in_tree(
    root: Node,
    X: Floats,
    y: Ints,
    rules: Rules,
    key: int,
    *,
    rows: set[int],
    classes: set[int],
    propose: Proposer = propose_ncm,
) -> None:
    """Forget rows and classes in one tree, in place."""
    work = TreePass(root, X, y, rules, key, propose)
    work.forget(rows, classes)
    work.settle()


def relabel_tree(root: Node, y: Ints, columns: list[int]) -> None:
    """Name class c ``columns[c]`` instead; ``y`` has the new names."""
    for node, _ in with_keys(root, 0):
        node.classes = [columns[c] for c in node.classes]
        if is_leaf(node):
            counts: dict[int, int] = {}
            for c, n in node.counts.items():
                counts[columns[c]] = counts.get(columns[c], 0) + n
            node.counts = counts
            node.rows = node.rows[np.argsort(y[node.rows], kind="stable")]


__all__ = ["Update", "forget_in_tree", "relabel_tree", "tree_key", "update_tree"]
