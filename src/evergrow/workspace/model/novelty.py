"""Novelty scores: what is usual for examples of each class, and the limit of "known"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty.calibration import MIN_HELD_OUT, Calibration

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Novelty scores that summarise those of thousands of known examples.
_SUMMARY = 201


@dataclass(frozen=True, eq=False)
class NoveltyLimits:
    """Usual scores and spreads by class id, and the novelty above which a thing is unknown.

    Attributes
    ----------
    class_ids : ndarray of shape (n_classes,)
        In ascending order.
    usual, spreads : ndarray of shape (n_classes + 1,)
        Of each class; the last entry is for all together, used for classes added later.
    novelties : ndarray
        Novelty scores of known examples: at most :data:`_SUMMARY` evenly spaced quantiles.
    level : float
        Novelty that a share ``false_alarms`` of the known examples exceeds.
    """

    class_ids: Ids
    usual: Floats
    spreads: Floats
    novelties: Floats
    level: float

    @classmethod
    def of(
        cls, class_ids: Ids, columns: Ids, scores: Floats, false_alarms: float
    ) -> NoveltyLimits | None:
        """Calibrate by the nearest class and score of left-out examples; None for too few.

        ``class_ids`` are the distinct classes of all columns.
        """
        if len(scores) < MIN_HELD_OUT:
            return None
        # The extra class has no examples, so it gets the values of all together.
        n_classes = len(class_ids)
        calibration = Calibration.of(columns, scores, np.ones(len(scores)), n_classes + 1)
        order = np.argsort(class_ids)
        places = np.append(order, n_classes)
        return cls(
            class_ids[order],
            calibration.usual[places],
            calibration.spreads[places],
            _quantiles(calibration.novelties),
            calibration.level(false_alarms),
        )

    def for_classes(self, class_ids: Ids) -> tuple[Floats, Floats]:
        """Usual scores and spreads of some classes."""
        places = np.searchsorted(self.class_ids, class_ids)
        inside = np.minimum(places, max(0, len(self.class_ids) - 1))
        known = (places < len(self.class_ids)) & (self.class_ids[inside] == class_ids)
        places = np.where(known, places, len(self.class_ids))
        return self.usual[places], self.spreads[places]

    def calibration(self, class_ids: Ids, false_alarms: float) -> Calibration:
        """The calibration of a model with these classes in its columns.

        A summary gives the level only approximately. So the level is added as a value, and the
        values are weighted such that a share ``false_alarms`` of them exceeds it.
        """
        below = self.novelties[self.novelties < self.level]
        above = self.novelties[self.novelties > self.level]
        weight_above = false_alarms if len(above) else 0.0
        # Each value below weighs less than the rest, which is the weight of the level itself.
        each_below = (1 - false_alarms) / (len(below) + 1)
        weights = np.concatenate(
            [
                np.full(len(below), each_below),
                [1 - weight_above - each_below * len(below)],
                np.full(len(above), weight_above / max(1, len(above))),
            ]
        )
        novelties = np.concatenate([below, [self.level], above])
        return Calibration(*self.for_classes(class_ids), novelties, weights)

    def to_json(self) -> dict[str, Any]:
        """The values as JSON."""
        return {
            "classes": self.class_ids.tolist(),
            "usual": _short(self.usual),
            "spreads": _short(self.spreads),
            "novelties": _short(self.novelties),
            "level": self.level,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> NoveltyLimits:
        """The inverse of :meth:`to_json`."""
        return cls(
            np.array(entry["classes"], dtype=np.int64),
            np.array(entry["usual"], dtype=np.float64),
            np.array(entry["spreads"], dtype=np.float64),
            np.array(entry["novelties"], dtype=np.float64),
            float(entry["level"]),
        )


def measured_false_alarms(
    columns: Ids, scores: Floats, n_classes: int, false_alarms: float, seed: int
) -> float | None:
    """Share of known examples that would be called unknown, by two-fold cross-validation.

    None if there are too few examples.
    """
    if len(scores) < 2 * MIN_HELD_OUT:
        return None
    order = np.random.default_rng(seed).permutation(len(scores))
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    n_alarms = 0
    for here, there in (halves, halves[::-1]):
        calibration = Calibration.of(columns[here], scores[here], np.ones(len(here)), n_classes)
        novelty = calibration.novelty(columns[there], scores[there])
        n_alarms += int((novelty > calibration.level(false_alarms)).sum())
    return n_alarms / len(scores)


def _quantiles(ordered: Floats) -> Floats:
    n = min(_SUMMARY, len(ordered))
    return ordered[np.linspace(0, len(ordered) - 1, n).round().astype(np.int64)]


def _short(values: Floats) -> list[float]:
    """Numbers rounded to nine digits; there may be thousands of them in one assessment."""
    return [float(f"{value:.9g}") for value in values.tolist()]
