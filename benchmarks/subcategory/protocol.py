"""Which samples train, and of which of them the fine class is told.

As Ristin et al. (CVPR 2015), sec. 5: the samples of each fine class are divided at random into a
part of which only the coarse class is told and a part of which both are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Array
from benchmarks.subcategory.data import TwoLevels

__all__ = ["MISSING", "Draw", "draw"]

MISSING = -1


@dataclass(frozen=True)
class Draw:
    """Training samples in random order; ``known`` says of which the fine class is told."""

    X: Array
    coarse: Array
    fine: Array
    known: Array

    @property
    def labels(self) -> Array:
        """Coarse and fine labels, the fine ones missing where they are not told."""
        return np.column_stack([self.coarse, np.where(self.known, self.fine, MISSING)])

    @property
    def all_labels(self) -> Array:
        """Coarse and fine labels of all: full supervision."""
        return np.column_stack([self.coarse, self.fine])


def draw(data: TwoLevels, seed: int, fine_share: float, coarse_share: float) -> Draw:
    """Choose samples of each fine class.

    Fine labels are told of ``fine_share`` of a class's samples, of one at least; ``coarse_share``
    come with the coarse label only, as far as there are others left. Smaller shares are parts of
    larger ones with the same seed, so that shares differ by nothing else. The seed also shuffles
    the rows, which alone moves accuracy by up to a point.
    """
    rng = np.random.default_rng(seed)
    told, untold = [], []
    for fine in range(len(data.parents)):
        mine = rng.permutation(np.flatnonzero(data.fine == fine))
        n_told = max(1, round(fine_share * len(mine)))
        rest = mine[: len(mine) - n_told]
        told.append(mine[len(rest) :])
        untold.append(rest[: round(coarse_share * len(mine))])
    rows = np.concatenate([*told, *untold])
    known = np.arange(len(rows)) < sum(len(part) for part in told)
    order = rng.permutation(len(rows))
    rows = rows[order]
    return Draw(data.X[rows], data.coarse[rows], data.fine[rows], known[order])
