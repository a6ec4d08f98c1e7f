"""Extremely randomised clustering trees of Moosmann, Triggs and Jurie (NIPS 2006) in plain NumPy.

As in [Moosmann2006 Sec. 2], tests are drawn at random, scored, and trees are grown fully,
then pruned bottom-up. Growing for new classes goes beyond the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tests.reference.random import ROOT, Stream, derive, tree_key

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rules:
    """Parameters of a forest; ``min_gain`` is in bits."""

    supervised: bool = True
    max_trials: int = 1
    min_score: float = 0.5
    max_words: int | None = None
    min_gain: float = 0.0
    stop_early: bool = False


@dataclass(eq=False)
class Node:
    """A leaf, or a splitting node once it has children."""

    rows: Ints
    key: int
    word: int | None = None
    number: int = 0
    is_old: bool = True
    feature: int = 0
    threshold: float = 0.0
    gain: int = 0
    children: list[Node] = field(default_factory=list)

    def leaves(self) -> Iterator[Node]:
        """The leaves below, from left to right."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def n_entropy(counts: Ints) -> int:
    """``n H`` of classes with these counts, in fixed point as the core stores it."""
    f = [math.floor(int(n) * math.log(int(n)) * 2.0**30 + 0.5) if n else 0 for n in counts]
    n = int(counts.sum())
    return math.floor(n * math.log(n) * 2.0**30 + 0.5) - sum(f)


def score(y: Ints, right: npt.NDArray[np.bool_], rules: Rules) -> tuple[float, int]:
    """Score of a test, and n times the information it gives."""
    n_right = int(right.sum())
    of_test = n_entropy(np.array([len(y) - n_right, n_right]))
    if not rules.supervised:
        return 2.0 * min(n_right, len(y) - n_right) / len(y), of_test
    of_class = n_entropy(np.bincount(y))
    both = n_entropy(np.bincount(2 * y + right))
    information = max(0, of_class + of_test - both)  # rounding may leave less than nothing
    # Sc(C, T) = 2 I(C, T) / (H_C + H_T) [Moosmann2006 Sec. 2].
    return 2.0 * information / (of_class + of_test), information


def find_test(X: Floats, y: Ints, node: Node, rules: Rules) -> tuple[int, float, int] | None:
    """The first test that scores min_score, or the best of max_trials; None if there is none."""
    if len(node.rows) < 2 or (rules.supervised and len(set(y[node.rows])) < 2):
        return None
    stream = Stream(node.key)
    undrawn: list[int] = []
    usable = list(range(X.shape[1]))
    best, best_score, n_tried = None, -1.0, 0
    while n_tried < rules.max_trials and best_score < rules.min_score:
        if not undrawn:
            undrawn, usable = usable, []
        if not undrawn:
            break
        at = stream.below(len(undrawn))
        undrawn[at], undrawn[-1] = undrawn[-1], undrawn[at]
        feature, share = undrawn.pop(), stream.uniform()
        values = X[node.rows, feature]
        low, high = values.min(), values.max()
        if low == high:
            continue
        usable.append(feature)
        n_tried += 1
        threshold = np.float32(float(low) + share * (float(high) - float(low)))
        if threshold >= high:
            threshold = np.nextafter(high, np.float32(-np.inf))
        found, gain = score(y[node.rows], values > threshold, rules)
        if found > best_score:
            best, best_score = (feature, float(threshold), gain), found
    return best


def bits(gain: int, n_rows: int) -> float:
    """Mean information of a test over the descriptors of the tree."""
    return gain / (2.0**30 * n_rows) / math.log(2)


def grow(root: Node, X: Floats, y: Ints, first_new: int, key: int, rules: Rules) -> None:
    """Grow the leaves that descriptors from ``first_new`` on reach."""
    root.rows, root.key = np.argsort(y, kind="stable"), key
    pending, n_nodes = [root], 1 + sum(1 for _ in _below(root))
    while pending:
        node = pending.pop()
        if not node.children:
            if not (node.rows >= first_new).any():
                continue
            test = find_test(X, y, node, rules)
            if test is None or (rules.stop_early and bits(test[2], len(X)) < rules.min_gain):
                continue
            node.feature, node.threshold, node.gain = test
            node.is_old = False
            empty = np.array([], dtype=np.int64)
            node.children = [Node(empty, 0, number=n_nodes + side) for side in (0, 1)]
            n_nodes += 2
        right = X[node.rows, node.feature] > np.float32(node.threshold)
        for side, child in enumerate(node.children):
            child.rows, child.key = node.rows[right == side], derive(node.key, side)
        pending += node.children[::-1]


def prune(root: Node, n_rows: int, rules: Rules) -> None:
    """Remove the new test above two leaves with the lowest gain until the rules are kept."""
    while True:
        tests = [
            node
            for node in (root, *_below(root))
            if node.children and not node.is_old and not any(c.children for c in node.children)
        ]
        if not tests:
            return
        lowest = min(tests, key=lambda node: (node.gain, -node.number))
        few = rules.max_words is None or sum(1 for _ in root.leaves()) <= rules.max_words
        if few and bits(lowest.gain, n_rows) >= rules.min_gain:
            return
        lowest.children = []


def name_words(old_leaves: list[Node], first_new: int) -> None:
    """A word stays with the part that has most of its descriptors; the others get new ones."""
    n_words = len(old_leaves)
    for old in old_leaves:
        parts = list(old.leaves())
        known = [int((part.rows < first_new).sum()) for part in parts]
        heir = parts[known.index(max(known))]
        word = old.word
        for part in parts:
            part.word = word if part is heir else n_words
            n_words += part is not heir


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)


def _by_level(root: Node) -> list[Node]:
    nodes = [root]
    for node in nodes:
        nodes += node.children
    return nodes


class Tree:
    """One tree of a forest."""

    def __init__(self, seed: int, index: int) -> None:
        self.seed, self.index, self.n_updates = seed, index, 0
        self.root = Node(np.array([], dtype=np.int64), 0, word=0)

    def learn(self, X: Floats, y: Ints, first_new: int, rules: Rules) -> None:
        """Learn the descriptors from ``first_new`` on; those before were learnt already."""
        nodes = _by_level(self.root)
        for number, node in enumerate(nodes):
            node.number, node.is_old = number, True
        leaves = [node for node in nodes if not node.children]
        key = derive(tree_key(self.seed, self.index, self.n_updates), ROOT)
        grow(self.root, X, y, first_new, key, rules)
        prune(self.root, len(X), rules)
        name_words(leaves, first_new)
        self.n_updates += 1

    def nodes(self) -> list[Node]:
        """All nodes, level by level."""
        return _by_level(self.root)

    def words(self, X: Floats) -> list[int]:
        """The word of each descriptor."""
        found = []
        for x in X:
            node = self.root
            while node.children:
                node = node.children[int(x[node.feature] > np.float32(node.threshold))]
            assert node.word is not None
            found.append(node.word)
        return found
