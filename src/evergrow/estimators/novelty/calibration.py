"""Calibration: the usual scores of each class, and how far below them an example is rejected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from evergrow.estimators.novelty.scores import N_OTHERS, BestScores, Rehearsal
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Number
from evergrow.storage.models.codec import Array, Fields

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

# With fewer held-out examples a share such as one in ten cannot be measured.
MIN_HELD_OUT = 20
# With this many examples, the mean score of a class and that of all classes count the same: the
# mean of a few examples is mostly noise. The same holds for spreads. On three sets of image
# features, values from 15 to 60 made little difference.
PRIOR = 30.0
# A left-out example is scored by a class with one example less than a new example will find. The
# difference shrinks with the square of the class size: the novelty of a left-out example is higher
# by this, divided by n (n - 1) and times the weight of all scores but the first. With five drawings
# of each of 121 classes, 1 gave 9.8 % false alarms where 10 were asked for, 0 gave 8.5. With fewer
# than 5 examples the law does not hold.
LEARNING = 1.0
FEWEST = 5
# A score of which more than this share of the variance is between classes is left out: it would
# reject whole classes. It was at most 0.7 with features of photographs and drawings.
MOST_BETWEEN = 0.9
# Added to the variance of every score, 1 for known examples, where scores are weighted.
STEADY = 0.1
# With this many classes, weights learnt from them and equal weights count the same. With two or
# three classes of digits, learnt weights alone found fewer unknown ones than equal weights.
EVEN = 3.0
# Spreads below this, relative to the scores, are rounding errors.
_ROUNDING = 1e-12
# The same for scores besides the first: features in single precision have errors of this size, so
# that lengths of unit vectors differ by nothing else.
_SINGLE_ROUNDING = 1e-6
# Novelties that differ by less than this are equal.
_TIE = 1e-9


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
    scales : ndarray of shape (n_others, 2)
        Mean of each of the other scores over all classes, and its weight divided by its spread; 0
        leaves a score out.
    share : float
        The weight of the first score.
    """

    usual: Floats
    spreads: Floats
    novelties: Floats
    weights: Floats
    scales: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    share: float = 1.0

    _stored: ClassVar[Fields] = {
        "usual": Array(np.float64, ("classes",)),
        "spreads": Array(np.float64, ("classes",), 0.0, open_low=True),
        "novelties": Array(np.float64, ("held_out",), order="ascending"),
        "weights": Array(np.float64, ("held_out",), 0.0, open_low=True),
        "scales": Array(np.float64, (None, 2)),
        "share": [Number(0.0, 1.0)],
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for scales that no scores have."""
        if len(self.scales) not in (0, N_OTHERS) or (self.scales[:, 1:] < 0).any():
            raise InvalidInputError("its calibration has invalid scales")

    @classmethod
    def of(
        cls,
        found: BestScores,
        weights: Floats,
        n_classes: int,
        n_own: npt.NDArray[np.int64] | None = None,
        rehearsal: Rehearsal | None = None,
    ) -> Calibration:
        """Calibrate on the nearest class, the scores and the weight of each held-out example.

        ``n_own`` is the number of examples in the class that each held-out example was left out of.
        """
        columns, scores, others = found
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
        without = (sums[columns] - weights * scores + prior * pooled) / (
            total[columns] - weights + prior
        )
        novelties = (np.maximum(without, usual[columns]) - scores) / spreads[columns]
        share, scales = _shares(found, weights, rehearsal)
        novelties = share * novelties + _below(others, scales)
        if n_own is not None and scales.any():
            n = np.maximum(n_own, FEWEST)
            novelties -= (1 - share) * LEARNING / (n * (n - 1))
        order = np.argsort(novelties, kind="stable")
        return cls(usual, spreads, novelties[order], weights[order], scales, share)

    def novelty(self, found: BestScores) -> Floats:
        """Return how far scores are below what is usual, in spreads: a weighted mean.

        The first score is compared with what is usual for the class, the others with all classes.
        """
        below = (self.usual[found.columns] - found.scores) / self.spreads[found.columns]
        return self.share * below + _below(found.others, self.scales)

    def level(self, false_alarms: float) -> float:
        """Return the novelty that a share of ``false_alarms`` of the held-out examples exceeds."""
        if len(self.novelties) < MIN_HELD_OUT:
            return float("inf")
        below = np.cumsum(self.weights)
        # The lowest novelty that at most this share exceeds.
        place = np.searchsorted(below, (1 - false_alarms) * below[-1] * (1 - 1e-12))
        return float(self.novelties[min(int(place), len(below) - 1)])


def exceeds(novelties: Floats, level: float) -> npt.NDArray[np.bool_]:
    """Whether novelties are above a level; rounding errors do not count, and NaN is not above."""
    return np.greater(novelties, rejection_limit(level))


def rejection_limit(level: float) -> float:
    """Return what novelties are compared with: a level, and what rounding errors may add to it."""
    return level + _TIE * max(1.0, abs(level))


def _shares(
    found: BestScores, weights: Floats, rehearsal: Rehearsal | None
) -> tuple[float, Floats]:
    """Return the weight of the first score, and means and factors of the others.

    Weights add up to 1. They are equal without a rehearsal.
    """
    if not found.others.size:
        return 1.0, np.zeros((found.others.shape[1], 2))
    known = np.column_stack([found.scores, found.others])
    means, factors = _scales(known, weights, found.columns)
    shares = (factors > 0).astype(np.float64)
    shares /= max(1.0, shares.sum())
    if rehearsal is not None and factors.any():
        # Few classes tell little of other classes.
        certainty = rehearsal.n_classes / (rehearsal.n_classes + EVEN)
        chosen = _discriminant(rehearsal, factors > 0)
        if chosen.any():
            shares *= 1 - certainty
            shares[factors > 0] += certainty * chosen / chosen.sum()
    if not shares.any():
        shares[0] = 1.0
    return float(shares[0]), np.column_stack([means, shares * factors])[1:]


def _discriminant(rehearsal: Rehearsal, used: npt.NDArray[np.bool_]) -> Floats:
    """Return Fisher's discriminant between known and unknown examples, without negative weights."""
    known, unknown = rehearsal.known[:, used], rehearsal.unknown[:, used]
    spreads = known.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    covariance = (
        np.cov(known / spreads, rowvar=False) + np.cov(unknown / spreads, rowvar=False)
    ) / 2
    difference = (known.mean(axis=0) - unknown.mean(axis=0)) / spreads
    factor = np.linalg.cholesky(np.atleast_2d(covariance) + STEADY * np.eye(len(spreads)))
    shares, _ = nnls(factor.T, np.linalg.solve(factor, difference))
    return cast("Floats", shares)


def _scales(known: Floats, weights: Floats, columns: Columns) -> tuple[Floats, Floats]:
    """Return the mean of each score and the reciprocal of its spread; 0 leaves a score out.

    Of the first score the spread between classes does not count.
    """
    means = np.average(known, weights=weights, axis=0)
    spreads = np.sqrt(np.average((known - means) ** 2, weights=weights, axis=0))
    rounding = np.full(known.shape[1], _SINGLE_ROUNDING)
    rounding[0] = _ROUNDING
    differ = spreads > rounding * np.abs(known).max(axis=0)
    total = np.bincount(columns, weights)
    for k, score in enumerate(known.T[1:], start=1):
        sums = np.bincount(columns, weights * score)
        usual = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        between = np.average((usual[columns] - means[k]) ** 2, weights=weights)
        differ[k] &= between <= MOST_BETWEEN * spreads[k] ** 2
    return means, np.divide(1.0, spreads, out=np.zeros(len(means)), where=differ)


def _below(others: Floats, scales: Floats) -> Floats:
    """Return how far scores are below their means, in spreads, added up."""
    n_others = min(others.shape[1], len(scales))
    means, factors = scales[:n_others].T
    return cast("Floats", (means - others[:, :n_others]) @ factors)


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
