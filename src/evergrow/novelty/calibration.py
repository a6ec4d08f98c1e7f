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
# that of a handful is mostly noise. Measured on three sets of image features, from 15 to 60 little
# changes; a spread or a quantile of each class's own did not do better.
PRIOR = 30.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """Usual scores per class, and the novelty of the held-out examples.

    Attributes
    ----------
    usual : ndarray of shape (n_classes,)
        Mean score of held-out examples nearest to the class, drawn towards the mean of all as by
        :data:`PRIOR` examples of that.
    novelties, weights : ndarray of shape (n_held_out,)
        Of the held-out examples, by novelty.
    """

    usual: Floats
    novelties: Floats
    weights: Floats

    @classmethod
    def of(cls, columns: Columns, scores: Floats, weights: Floats, n_classes: int) -> Calibration:
        """From the nearest class, the score and the weight of each held-out example."""
        if not len(scores):
            return cls(np.zeros(n_classes), np.zeros(0), np.zeros(0))
        # As by PRIOR examples of mean weight: the unit of weights means nothing.
        prior = PRIOR * weights.mean()
        pooled = np.average(scores, weights=weights)
        sums = np.bincount(columns, weights * scores, minlength=n_classes)
        total = np.bincount(columns, weights, minlength=n_classes)
        usual = (sums + prior * pooled) / (total + prior)
        # Of each one as of a new example, which had no part in what is usual.
        others = (sums[columns] - weights * scores + prior * pooled) / (
            total[columns] - weights + prior
        )
        novelties = others - scores
        order = np.argsort(novelties, kind="stable")
        return cls(usual, novelties[order], weights[order])

    def novelty(self, columns: Columns, scores: Floats) -> Floats:
        """How far each score lies below what is usual for the class."""
        novelty: Floats = self.usual[columns] - scores
        return novelty

    def level(self, false_alarms: float) -> float:
        """Novelty that a share of ``false_alarms`` of the held-out examples exceeds."""
        if len(self.novelties) < MIN_HELD_OUT:
            return float("inf")
        below = np.cumsum(self.weights)
        # The lowest novelty that at most this share lies above.
        place = np.searchsorted(below, (1 - false_alarms) * below[-1] * (1 - 1e-12))
        return float(self.novelties[min(int(place), len(below) - 1)])
