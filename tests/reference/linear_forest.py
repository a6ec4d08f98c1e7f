"""A forest of random planes in plain NumPy.

Each node tries random directions with one random threshold each and keeps the best by
[Ristin2014 Eq. 3].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.reference.axis_forest import best_of, random_threshold
from tests.reference.ncm_forest import Floats, Ints, Mask, Node, Rules
from tests.reference.random import Stream


@dataclass
class PlaneNode(Node):
    """Sends right what lies beyond a threshold along a direction, stored in half precision."""

    threshold: float = 0.0

    def sends_right(self, X: Floats) -> Mask:
        assert self.centroids is not None
        mask: Mask = project(X, self.centroids[0]) > np.float32(self.threshold)
        return mask


def project(X: Floats, weights: Floats) -> Floats:
    """Products of samples and weights, rounded once."""
    products: Floats = (X.astype(np.float64) @ weights.astype(np.float64)).astype(np.float32)
    return products


def to_half(weights: Floats) -> Floats:
    """Round to the precision in which trees keep vectors."""
    rounded: Floats = weights.astype(np.float16).astype(np.float32)
    return rounded


def propose_linear(X: Floats, y: Ints, rows: Ints, stream: Stream, rules: Rules) -> Node | None:
    """The best of a few random directions."""
    candidates: list[Node] = []
    for _ in range(rules.n_assignments):
        normals = [stream.normal() for _ in range(X.shape[1])]
        weights = to_half(np.array(normals, dtype=np.float32))
        share = stream.uniform()
        threshold = random_threshold(project(X[rows], weights), share, rules.min_samples_leaf)
        if threshold is not None:
            candidates.append(PlaneNode(rows, centroids=weights[None], threshold=threshold))
    return best_of(candidates, X, y, rules)
