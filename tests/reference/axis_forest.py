"""A forest of random thresholds on single features in plain NumPy.

Each node tries random features with one random threshold each and keeps the best by
[Ristin2014 Eq. 3].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.reference.ncm_forest import Floats, Ints, Mask, Node, Rules, classes_at, information_gain
from tests.reference.random import Stream


@dataclass
class AxisNode(Node):
    """Sends right what has a feature above a threshold."""

    feature: int = 0
    threshold: float = 0.0

    def sends_right(self, X: Floats) -> Mask:
        mask: Mask = X[:, self.feature] > np.float32(self.threshold)
        return mask


def random_threshold(values: Floats, share: float, min_side: int) -> float | None:
    """A threshold among those that leave enough samples on both sides; None if there are none."""
    ordered = np.sort(values)
    low, high = float(ordered[min_side - 1]), float(ordered[-min_side])
    return float(np.float32(low + share * (high - low))) if low < high else None


def gain_of(right: Mask, y: Ints, rows: Ints, rules: Rules) -> float | None:
    """Information gain of a two-way split of the rows; None if a side is too small."""
    present, totals = classes_at(y, rows)
    n_right = int(right.sum())
    if min(n_right, len(rows) - n_right) < rules.min_samples_leaf:
        return None
    return information_gain(totals, [int(right[y[rows] == c].sum()) for c in present])


def best_of(candidates: list[Node], X: Floats, y: Ints, rules: Rules) -> Node | None:
    """The candidate of highest gain, the first of equals, if it gains enough."""
    best, best_gain = None, 0.0
    for node in candidates:
        gain = gain_of(node.sends_right(X[node.rows]), y, node.rows, rules)
        if gain is not None and (best is None or gain > best_gain):
            best, best_gain = node, gain
    return best if best_gain > rules.min_gain else None


def propose_axis(X: Floats, y: Ints, rows: Ints, stream: Stream, rules: Rules) -> Node | None:
    """The best of a few random features, each once before any comes twice."""
    candidates: list[Node] = []
    undrawn: list[int] = []
    usable = list(range(X.shape[1]))
    while len(candidates) < rules.n_assignments:
        if not undrawn:
            undrawn, usable = usable, []
        if not undrawn:
            break
        at = stream.below(len(undrawn))
        undrawn[at], undrawn[-1] = undrawn[-1], undrawn[at]
        feature = undrawn.pop()
        threshold = random_threshold(X[rows, feature], stream.uniform(), rules.min_samples_leaf)
        if threshold is not None:
            usable.append(feature)
            candidates.append(AxisNode(rows, feature=feature, threshold=threshold))
    return best_of(candidates, X, y, rules)
