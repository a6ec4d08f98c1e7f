"""Small data with coarse and fine classes that the tests share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Kinds:
    """Samples, what is known of them, and the truth."""

    X: Array
    coarse: Array
    fine: Array
    parents: Array
    truth: Array

    @property
    def labels(self) -> tuple[Array, Array, Array]:
        return self.coarse, self.fine, self.parents


def kinds(
    n: int = 240, d: int = 6, *, noise: float = 1.0, known: float = 0.4, seed: int = 0
) -> Kinds:
    """Three coarse classes of 3, 2 and 1 fine ones; the fine class of most samples is missing."""
    parents = np.array([0, 0, 0, 1, 1, 2])
    random = np.random.default_rng(seed)
    centres = 3 * random.normal(size=(3, d))[parents] + 1.5 * random.normal(size=(6, d))
    truth = np.arange(n) % 6
    X = centres[truth] + noise * random.normal(size=(n, d))
    # Two of each class at the least.
    fine = np.where((random.random(n) < known) | (np.arange(n) < 12), truth, -1).astype(np.int32)
    return Kinds(X, parents[truth], fine, parents, truth)
