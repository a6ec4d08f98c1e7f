"""The NCM forest of Ristin et al. (CVPR 2014) in plain NumPy.

Equation numbers are those of the paper. The core grows the identical forest from data on which
single-precision sums are exact, such as small integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tests.reference.random import COPIES, ROOT, ROWS, Stream, derive, tree_key

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rules:
    """Parameters of a forest; other kinds of splits call their candidates assignments too."""

    n_classes: int
    n_centroids: int
    n_assignments: int = 1024
    min_samples_leaf: int = 10
    min_gain: float = 1e-7
    rows_per_tree: int | None = None
    bootstrap: bool = False
    regularization: float = 1.0


@dataclass
class Node:
    """A leaf, or a splitting node once it has children."""

    rows: Ints
    counts: dict[int, int] = field(default_factory=dict)
    classes: list[int] = field(default_factory=list)
    centroids: Floats | None = None
    # The training row that a centroid is, where a class has only one; -1 for a mean.
    centroid_rows: list[int] = field(default_factory=list)
    goes_right: list[bool] = field(default_factory=list)
    left: Node | None = None
    right: Node | None = None

    def sends_right(self, X: Floats) -> Mask:
        """The side of the nearest centroid [Ristin2014 Eq. 6]; other kinds have other rules."""
        assert self.centroids is not None
        mask: Mask = np.array(self.goes_right)[nearest_centroid(X, self.centroids)]
        return mask


# Finds the best split of the rows that reach a node: the node without its children, or None.
Proposer = Callable[[Floats, Ints, Ints, Stream, Rules], "Node | None"]


def entropy_term(n: int) -> int:
    """Return n ln n in fixed point, so that equal gains compare equal."""
    return math.floor(n * math.log(n) * 2**30 + 0.5) if n else 0


def information_gain(parent: list[int], right: list[int]) -> float:
    """Entropy of the node less those of its children, by their sizes [Ristin2014 Eq. 3]."""
    left = [n - r for n, r in zip(parent, right, strict=True)]

    def n_times_entropy(counts: list[int]) -> int:
        return entropy_term(sum(counts)) - sum(entropy_term(n) for n in counts)

    gain = n_times_entropy(parent) - n_times_entropy(left) - n_times_entropy(right)
    return gain / (2**30 * sum(parent))


def to_bytes(vector: Floats) -> tuple[npt.NDArray[np.int8], int]:
    """Multiples of a power of two, in one byte each, and its exponent.

    The largest feature is 64 to 128 steps; 128 does not fit and becomes 127. The exponent is
    limited, so that norms are finite and products are not too small for a float.
    """
    exponent = int(np.clip(np.frexp(np.abs(vector).max())[1] - 7, -60, 43))
    steps = np.rint(np.ldexp(vector.astype(np.float64), -exponent))
    return np.clip(steps, -128, 127).astype(np.int8), exponent


def rounded(vector: Floats) -> Floats:
    """A class mean as a tree stores it."""
    steps, exponent = to_bytes(vector)
    values: Floats = np.ldexp(steps.astype(np.float32), exponent)
    return values


def centroid_of(X: Floats, rows: Ints) -> Floats:
    """The mean [Ristin2014 Eq. 5], rounded as it is stored; a single sample is itself."""
    mean = X[rows].sum(axis=0, dtype=np.float64) * (1.0 / len(rows))
    centroid: Floats = mean.astype(np.float32)
    return rounded(centroid) if only_row(rows) == -1 else X[rows[0]]


def only_row(rows: Ints) -> int:
    """The row that is its own mean, or -1 if there are several; copies of a row are one."""
    return int(rows[0]) if len(np.unique(rows)) == 1 else -1


def nearest_centroid(X: Floats, centroids: Floats) -> Ints:
    """Nearest centroid by |c|^2 / 2 - x.c, ties to the lowest [Ristin2014 Eq. 2]."""
    half_norms = (0.5 * (centroids.astype(np.float64) ** 2).sum(axis=1)).astype(np.float32)
    dots = (X.astype(np.float64) @ centroids.astype(np.float64).T).astype(np.float32)
    nearest: Ints = np.argmin(half_norms - dots, axis=1)
    return nearest


def assignments(k: int, n_assignments: int, stream: Stream) -> list[list[bool]]:
    """Which centroids go right, the e of [Ristin2014 Eq. 6].

    The last one never does, or each split came twice.
    """
    if 2 ** (k - 1) - 1 <= n_assignments:
        bits = list(range(1, 2 ** (k - 1)))
    else:
        bits = []
        seen = set()
        n_words = -(-(k - 1) // 64)
        while len(bits) < n_assignments:
            words = [stream.next() << (64 * w) for w in range(n_words)]
            drawn = sum(words) % 2 ** (k - 1)
            if drawn and drawn not in seen:
                seen.add(drawn)
                bits.append(drawn)
    return [[bool(b >> j & 1) for j in range(k)] for b in bits]


def draw_classes(present: list[int], k: int, stream: Stream) -> list[int]:
    """A random subset of the classes present at a node, in order."""
    if len(present) <= k:
        return present
    pool = list(present)
    for j in range(k):
        swap = j + stream.below(len(pool) - j)
        pool[j], pool[swap] = pool[swap], pool[j]
    return sorted(pool[:k])


def classes_at(y: Ints, rows: Ints) -> tuple[list[int], list[int]]:
    """The classes present among rows sorted by class, and the number of samples of each."""
    present = [int(c) for c in dict.fromkeys(y[rows].tolist())]
    return present, [int((y[rows] == c).sum()) for c in present]


def propose_ncm(X: Floats, y: Ints, rows: Ints, stream: Stream, rules: Rules) -> Node | None:
    """The best assignment of the means of a few random classes."""
    present, totals = classes_at(y, rows)
    classes = draw_classes(present, rules.n_centroids, stream)
    centroids = np.stack([centroid_of(X, rows[y[rows] == c]) for c in classes])
    nearest = nearest_centroid(X[rows], centroids)
    table = [np.bincount(nearest[y[rows] == c], minlength=len(classes)) for c in present]

    best, best_gain = None, 0.0
    for assignment in assignments(len(classes), rules.n_assignments, stream):
        right = [int(counts[assignment].sum()) for counts in table]
        n_right = sum(right)
        if min(n_right, len(rows) - n_right) < rules.min_samples_leaf:
            continue
        gain = information_gain(totals, right)
        if best is None or gain > best_gain:
            best, best_gain = assignment, gain
    if best is None or not best_gain > rules.min_gain:
        return None
    node = Node(rows, classes=classes, centroids=centroids, goes_right=best)
    node.centroid_rows = [only_row(rows[y[rows] == c]) for c in classes]
    return node


def grow(
    X: Floats, y: Ints, rows: Ints, key: int, rules: Rules, propose: Proposer = propose_ncm
) -> Node:
    """Grow the subtree of the rows (sorted by class) that reach a node."""
    present, totals = classes_at(y, rows)
    leaf = Node(rows, counts=dict(zip(present, totals, strict=True)))
    if len(present) < 2 or len(rows) < 2 * rules.min_samples_leaf:
        return leaf
    node = propose(X, y, rows, Stream(key), rules)
    if node is None:
        return leaf
    right = node.sends_right(X[rows])
    node.left = grow(X, y, rows[~right], derive(key, 0), rules, propose)
    node.right = grow(X, y, rows[right], derive(key, 1), rules, propose)
    return node


def draw_rows(sorted_rows: Ints, rules: Rules, stream: Stream) -> Ints:
    """The rows one tree sees: all, a subset (Knuth's algorithm S) or a bootstrap."""
    n = len(sorted_rows)
    wanted = n if rules.rows_per_tree is None else rules.rows_per_tree
    if rules.bootstrap:
        return sorted_rows[sorted(stream.below(n) for _ in range(wanted))]
    if wanted >= n:
        return sorted_rows
    chosen: list[int] = []
    for i in range(n):
        if len(chosen) < wanted and stream.below(n - i) < wanted - len(chosen):
            chosen.append(i)
    return sorted_rows[chosen]


def repeat_rows(sorted_rows: Ints, weights: npt.NDArray[np.float64], ids: Ints, key: int) -> Ints:
    """Each row as often as its weight says; the fraction is the chance of one more copy."""
    copies_key = derive(key, COPIES)
    copies: list[int] = []
    for row in sorted_rows.tolist():
        whole = math.floor(weights[row])
        one_more = Stream(derive(copies_key, int(ids[row]))).uniform() < weights[row] - whole
        copies += [row] * (whole + one_more)
    return np.array(copies, dtype=np.int64)


def grow_forest(
    X: Floats,
    y: Ints,
    n_trees: int,
    seed: int,
    rules: Rules,
    propose: Proposer = propose_ncm,
    weights: npt.NDArray[np.float64] | None = None,
) -> list[Node]:
    """Grow the trees of a forest; ``y`` holds class numbers, and row i has the id i."""
    sorted_rows = np.argsort(y, kind="stable")
    trees = []
    for tree in range(n_trees):
        key = tree_key(seed, tree, update=0)
        drawable, sampling = sorted_rows, rules
        if weights is not None:
            copies = repeat_rows(sorted_rows, weights, np.arange(len(y)), key)
            share = (rules.rows_per_tree or len(y)) / len(y)
            n_rows = max(1, math.floor(share * len(copies) + 0.5))
            drawable = copies if len(copies) else sorted_rows
            sampling = replace(rules, rows_per_tree=n_rows)
        rows = draw_rows(drawable, sampling, Stream(derive(key, ROWS)))
        trees.append(grow(X, y, rows, derive(key, ROOT), rules, propose))
    return trees


def leaf_of(node: Node, x: Floats) -> Node:
    """Take one sample down a tree."""
    while node.left is not None and node.right is not None:
        node = node.right if node.sends_right(x[None])[0] else node.left
    return node


def predict_proba(trees: list[Node], X: Floats, n_classes: int) -> npt.NDArray[np.float64]:
    """The mean of the leaves' class frequencies [Ristin2014 Eq. 4]."""
    out = np.zeros((len(X), n_classes))
    for i, x in enumerate(X):
        for tree in trees:
            counts = leaf_of(tree, x).counts
            for c, n in counts.items():
                out[i, c] += n / sum(counts.values())
    return out / len(trees)


def predict_proba_by_age(
    trees: list[Node],
    X: Floats,
    n_classes: int,
    grown: list[int],
    came: list[int],
    older: float,
    gain: float = 1.0,
) -> npt.NDArray[np.float64]:
    """As :func:`predict_proba`, with votes that know the age of the trees.

    A tree that was grown before a class came votes for it with the weight ``older``, unless no
    tree is newer, and its votes for it are multiplied by ``gain``. Per class the mean is weighted;
    per row the probabilities add up to one.
    """
    is_older = np.zeros((len(trees), n_classes), dtype=bool)
    for c in range(n_classes):
        if any(g >= came[c] for g in grown):
            is_older[:, c] = [g < came[c] for g in grown]
    weights = np.where(is_older, older * gain, 1.0)
    n_older = is_older.sum(axis=0)
    sums = (len(trees) - n_older) + older * n_older
    out = np.zeros((len(X), n_classes))
    for i, x in enumerate(X):
        for t, tree in enumerate(trees):
            counts = leaf_of(tree, x).counts
            for c, n in counts.items():
                out[i, c] += n / sum(counts.values()) * weights[t, c]
        out[i] /= sums
        # One after the other: since Python 3.12 sum() compensates the rounding of floats.
        out[i] /= np.cumsum(out[i])[-1]
    return out
