"""Calibration: the usual scores of each class, and how far below them an example is rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

# With fewer held-out examples a share such as one in ten cannot be measured.
MIN_HELD_OUT = 20
# With this many examples, the mean score of a class and that of all classes count the same: the
# mean of a few examples is mostly noise. The same holds for spreads. On three sets of image
# features, values from 15 to 60 made little difference.
PRIOR = 30.0
# Spreads below this, relative to the scores, are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration:
    """Usual scores and spreads per class, and the novelty of the held-out examples.

    Attributes
    ----------
    usual : ndarray of shape (n_classes,)
        Mean score of the held-out examples nearest to the class, shrunk towards the mean of all
        with the weight of :data:`PRIOR` examples.
    spreads : ndarray of shape (n_classes,)
        Root mean square difference from the usual score, shrunk likewise; 1 if scores do not
        differ.
    novelties, weights : ndarray of shape (n_held_out,)
        Novelty and weight of the held-out examples, sorted by novelty.
    """

    usual: Floats
    spreads: Floats
    novelties: Floats
    weights: Floats

    @classmethod
    def of(cls, columns: Columns, scores: Floats, weights: Floats, n_classes: int) -> Calibration:
        """Calibrate on the nearest class, the score and the weight of each held-out example."""
        if not len(scores):
            return cls(np.zeros(n_classes), np.ones(n_classes), np.zeros(0), np.zeros(0))
        # PRIOR examples of mean weight, so that the unit of the weights has no effect.
        prior = PRIOR * weights.mean()
        pooled = np.average(scores, weights=weights)
        sums = np.bincount(columns, weights * scores, minlength=n_classes)
        total = np.bincount(columns, weights, minlength=n_classes)
        usual = (sums + prior * pooled) / (total + prior)
        spreads = _spreads(columns, scores - usual[columns], weights, n_classes)
        spreads = np.where(spreads > _ROUNDING * np.abs(scores).max(), spreads, 1.0)
        # Each example is compared with the usual score without it, as a new example would be. But
        # not with less than the usual score: if most scores are equal, as for a classifier that is
        # always certain, every new example would exceed the level.
        others = (sums[columns] - weights * scores + prior * pooled) / (
            total[columns] - weights + prior
        )
        novelties = (np.maximum(others, usual[columns]) - scores) / spreads[columns]
        order = np.argsort(novelties, kind="stable")
        return cls(usual, spreads, novelties[order], weights[order])

    def novelty(self, columns: Columns, scores: Floats) -> Floats:
        """Return how far each score is below the usual score of the class, in spreads."""
        return (self.usual[columns] - scores) / self.spreads[columns]

    def level(self, false_alarms: float) -> float:
        """Return the novelty that a share of ``false_alarms`` of the held-out examples exceeds."""
        if len(self.novelties) < MIN_HELD_OUT:
            return float("inf")
        below = np.cumsum(self.weights)
        # The lowest novelty that at most this share exceeds.
        place = np.searchsorted(below, (1 - false_alarms) * below[-1] * (1 - 1e-12))
        return float(self.novelties[min(int(place), len(below) - 1)])


def _spreads(columns: Columns, differences: Floats, weights: Floats, n_classes: int) -> Floats:
    """Return the root mean square of the differences per class, shrunk towards that of all."""
    largest = np.abs(differences).max()
    if not largest:
        return np.zeros(n_classes)
    # Divided by the largest first, because squares of large numbers overflow.
    squares = (differences / largest) ** 2
    prior = PRIOR * weights.mean()
    pooled = np.average(squares, weights=weights)
    sums = np.bincount(columns, weights * squares, minlength=n_classes)
    total = np.bincount(columns, weights, minlength=n_classes)
    return cast("Floats", largest * np.sqrt((sums + prior * pooled) / (total + prior)))
