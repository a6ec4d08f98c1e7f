"""What scores are usual for a class, and how far below them is too strange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["MIN_HELD_OUT", "PRIOR", "Calibration"]

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

# With fewer held-out examples a share such as one in ten cannot be told.
MIN_HELD_OUT = 20
# A class's usual score counts as much as the pooled one when it rests on this many examples:
# that of a handful is mostly noise; and its spread likewise. Measured on three sets of image
# features, from 15 to 60 little changes.
PRIOR = 30.0
# Spreads below this, relative to the scores, are made of rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration:
    """Usual scores per class, how far scores spread, and the novelty of the held-out examples.

    Attributes
    ----------
    usual : ndarray of shape (n_classes,)
        Mean score of held-out examples nearest to the class, drawn towards the mean of all as by
        :data:`PRIOR` examples of that.
    spreads : ndarray of shape (n_classes,)
        Root of the mean squared difference from the usual score, drawn likewise towards that of
        all; 1 where scores do not differ.
    novelties, weights : ndarray of shape (n_held_out,)
        Of the held-out examples, by novelty.
    """

    usual: Floats
    spreads: Floats
    novelties: Floats
    weights: Floats

    @classmethod
    def of(cls, columns: Columns, scores: Floats, weights: Floats, n_classes: int) -> Calibration:
        """From the nearest class, the score and the weight of each held-out example."""
        if not len(scores):
            return cls(np.zeros(n_classes), np.ones(n_classes), np.zeros(0), np.zeros(0))
        # As by PRIOR examples of mean weight: the unit of weights means nothing.
        prior = PRIOR * weights.mean()
        pooled = np.average(scores, weights=weights)
        sums = np.bincount(columns, weights * scores, minlength=n_classes)
        total = np.bincount(columns, weights, minlength=n_classes)
        usual = (sums + prior * pooled) / (total + prior)
        spreads = _spreads(columns, scores - usual[columns], weights, n_classes)
        spreads = np.where(spreads > _ROUNDING * np.abs(scores).max(), spreads, 1.0)
        # Of each one as of a new example, which had no part in what is usual. But not as less than
        # usual scores are: where most scores are the same, as of a classifier that is always sure,
        # their own part would put every new one above the level.
        others = (sums[columns] - weights * scores + prior * pooled) / (
            total[columns] - weights + prior
        )
        novelties = (np.maximum(others, usual[columns]) - scores) / spreads[columns]
        order = np.argsort(novelties, kind="stable")
        return cls(usual, spreads, novelties[order], weights[order])

    def novelty(self, columns: Columns, scores: Floats) -> Floats:
        """How far each score lies below what is usual for the class, in spreads of the class."""
        novelty: Floats = (self.usual[columns] - scores) / self.spreads[columns]
        return novelty

    def level(self, false_alarms: float) -> float:
        """Novelty that a share of ``false_alarms`` of the held-out examples exceeds."""
        if len(self.novelties) < MIN_HELD_OUT:
            return float("inf")
        below = np.cumsum(self.weights)
        # The lowest novelty that at most this share lies above.
        place = np.searchsorted(below, (1 - false_alarms) * below[-1] * (1 - 1e-12))
        return float(self.novelties[min(int(place), len(below) - 1)])


def _spreads(columns: Columns, differences: Floats, weights: Floats, n_classes: int) -> Floats:
    """Root mean square of the differences per class, drawn towards that of all."""
    largest = np.abs(differences).max()
    if not largest:
        return np.zeros(n_classes)
    # By the largest first: the square of a large number may be too large.
    squares = (differences / largest) ** 2
    prior = PRIOR * weights.mean()
    pooled = np.average(squares, weights=weights)
    sums = np.bincount(columns, weights * squares, minlength=n_classes)
    total = np.bincount(columns, weights, minlength=n_classes)
    spreads: Floats = largest * np.sqrt((sums + prior * pooled) / (total + prior))
    return spreads
