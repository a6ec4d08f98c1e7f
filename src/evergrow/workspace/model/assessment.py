"""The result of an assessment, as a value: hyperparameters, novelty limits, accuracies, doubts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty.calibration import MIN_HELD_OUT, Calibration
from evergrow.estimators.novelty.scores import BestScores, Rehearsal
from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.model.least_squares import Hyperparameters
from evergrow.workspace.records import Accuracy, Sign

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Novelty scores that summarise those of thousands of known examples.
_SUMMARY = 201
# Two-sided 95 % quantile of the normal distribution.
_Z = 1.959964
# A class has enough examples if its accuracy is certainly this high.
_ENOUGH = 0.75
# A class needs this many examples for leave-one-out.
MIN_EXAMPLES = 2


@dataclass(frozen=True, eq=False)
class NoveltyLimits:
    """Usual scores and spreads by class id, and the novelty above which a thing is unknown.

    Attributes
    ----------
    class_ids : ndarray of shape (n_classes,)
        In ascending order.
    known : Calibration
        Usual scores and spreads of each class; the last entries are for all together, used for
        classes added later. Of the novelties at most :data:`_SUMMARY` evenly spaced quantiles.
    level : float
        Novelty that a share ``false_alarms`` of the known examples exceeds.
    by_cosine : NoveltyLimits or None
        The limits of the cosine alone, for other sets of classes than the assessed one: a new class
        changes the other scores of all examples.
    """

    class_ids: Ids
    known: Calibration
    level: float
    by_cosine: NoveltyLimits | None = None

    @classmethod
    def of(
        cls,
        class_ids: Ids,
        found: BestScores,
        n_own: Ids,
        false_alarms: float,
        rehearsal: Rehearsal | None = None,
    ) -> NoveltyLimits | None:
        """Calibrate by the nearest class and scores of left-out examples; None for too few.

        ``class_ids`` are the distinct classes of all columns, and ``n_own`` the numbers of examples
        in the classes that the examples were left out of. The rehearsal weights the scores.
        """
        n_found = len(found.scores)
        if n_found < MIN_HELD_OUT:
            return None
        by_cosine = None
        if found.others.shape[1]:
            alone = found._replace(others=found.others[:, :0])
            by_cosine = cls.of(class_ids, alone, n_own, false_alarms)
        # The extra class has no examples, so it gets the values of all together.
        n_classes = len(class_ids)
        calibration = Calibration.of(found, np.ones(n_found), n_classes + 1, n_own, rehearsal)
        order = np.argsort(class_ids)
        places = np.append(order, n_classes)
        known = replace(
            calibration,
            usual=calibration.usual[places],
            spreads=calibration.spreads[places],
            novelties=_quantiles(calibration.novelties),
        )
        return cls(class_ids[order], known, calibration.level(false_alarms), by_cosine)

    def valid_for(self, class_ids: Ids) -> NoveltyLimits:
        """The limits for a model with these classes: of the cosine alone if they have changed."""
        if self.by_cosine is None or np.array_equal(np.sort(class_ids), self.class_ids):
            return self
        return self.by_cosine

    def novelty(self, class_ids: Ids, scores: Floats, others: Floats) -> Floats:
        """Novelty of examples by their nearest class, the score there and the other scores."""
        # Each example is its own class here.
        found = BestScores(np.arange(len(scores)), scores, others)
        return self._for_classes(class_ids).novelty(found)

    def _for_classes(self, class_ids: Ids) -> Calibration:
        """The usual scores and spreads of some classes."""
        places = np.searchsorted(self.class_ids, class_ids)
        inside = np.minimum(places, max(0, len(self.class_ids) - 1))
        known = (places < len(self.class_ids)) & (self.class_ids[inside] == class_ids)
        places = np.where(known, places, len(self.class_ids))
        return replace(
            self.known, usual=self.known.usual[places], spreads=self.known.spreads[places]
        )

    def calibration(self, class_ids: Ids, false_alarms: float) -> Calibration:
        """The calibration of a model with these classes in its columns.

        A summary gives the level only approximately. So the level is added as a value, and the
        values are weighted such that a share ``false_alarms`` of them exceeds it.
        """
        below = self.known.novelties[self.known.novelties < self.level]
        above = self.known.novelties[self.known.novelties > self.level]
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
        return replace(self._for_classes(class_ids), novelties=novelties, weights=weights)

    def to_json(self) -> dict[str, Any]:
        """The values as JSON."""
        entry = {
            "classes": self.class_ids.tolist(),
            "usual": _short(self.known.usual),
            "spreads": _short(self.known.spreads),
            "novelties": _short(self.known.novelties),
            "level": self.level,
        }
        if self.by_cosine is None:
            return entry
        alone = self.by_cosine
        return {
            **entry,
            "scales": self.known.scales.tolist(),
            "share": self.known.share,
            "by_cosine": {"novelties": _short(alone.known.novelties), "level": alone.level},
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> NoveltyLimits:
        """The inverse of :meth:`to_json`."""
        usual, spreads, novelties = (
            np.array(entry[name], dtype=np.float64) for name in ("usual", "spreads", "novelties")
        )
        known = Calibration(usual, spreads, novelties, np.ones(len(novelties)))
        limits = cls(np.array(entry["classes"], dtype=np.int64), known, float(entry["level"]))
        alone = entry.get("by_cosine")
        if alone is None:
            return limits
        novelties = np.array(alone["novelties"], dtype=np.float64)
        by_cosine = replace(
            limits, known=replace(known, novelties=novelties), level=float(alone["level"])
        )
        scales = np.array(entry["scales"], dtype=np.float64).reshape(-1, 2)
        known = replace(known, scales=scales, share=float(entry["share"]))
        return replace(limits, known=known, by_cosine=by_cosine)


def _quantiles(ordered: Floats) -> Floats:
    n = min(_SUMMARY, len(ordered))
    return ordered[np.linspace(0, len(ordered) - 1, n).round().astype(np.int64)]


def _short(values: Floats) -> list[float]:
    """Numbers rounded to nine digits; there may be thousands of them in one assessment."""
    return [float(f"{value:.9g}") for value in values.tolist()]


@dataclass(frozen=True)
class Recognised:
    """Leave-one-out results of a class, and the class that it is most often confused with."""

    n: int
    n_right: int
    confused_with: int | None
    n_confused: int

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy with its confidence interval."""
        return wilson(self.n_right, self.n)


@dataclass(frozen=True)
class Doubt:
    """An example whose label is contradicted by the model of the other examples."""

    example_id: int
    class_id: int
    suggestion: int
    probability: float


@dataclass(frozen=True)
class Mistaken:
    """An example that a model of the others does not recognise; ``predicted`` None for unknown."""

    example_id: int
    class_id: int
    predicted: int | None


@dataclass(frozen=True, eq=False)
class Assessment:
    """Quality of the model as of one event.

    Attributes
    ----------
    event : int
        The newest event that it covers.
    hyperparameters : Hyperparameters
        Penalty, recoding, temperature and blocks of features that were selected.
    limits : NoveltyLimits or None
        Calibration of the novelty; None with too few examples.
    measured_false_alarms : float or None
        Share of known examples called unknown, by limits from other examples.
    class_counts : mapping
        Examples per class.
    recognised : mapping
        Leave-one-out results per class id, of classes with at least two examples.
    mistakes : tuple of (int, int, int)
        Class, predicted other class, and number of examples; the most frequent pairs.
    doubts : tuple of Doubt
        The most certain first.
    unknown : mapping or None
        Number of examples per class id that would be called unknown, if any; None if there are too
        few examples to tell.
    mistaken : tuple of Mistaken
        Examples that a model of the others mistakes for another class or calls unknown, up to 100
        of each pair of classes.
    """

    event: int
    hyperparameters: Hyperparameters
    limits: NoveltyLimits | None
    measured_false_alarms: float | None
    class_counts: Mapping[int, int]
    recognised: Mapping[int, Recognised]
    mistakes: tuple[tuple[int, int, int], ...]
    doubts: tuple[Doubt, ...]
    unknown: Mapping[int, int] | None = None
    mistaken: tuple[Mistaken, ...] = ()

    @property
    def accuracy(self) -> Accuracy | None:
        """Accuracy over all examples of the sample; None if there are too few."""
        n = sum(found.n for found in self.recognised.values())
        return wilson(sum(found.n_right for found in self.recognised.values()), n) if n else None

    @property
    def confusion(self) -> list[tuple[int, int, int]]:
        """Entries of the confusion matrix: class, predicted class, number of examples."""
        right = [(k, k, seen.n_right) for k, seen in self.recognised.items() if seen.n_right]
        return sorted([*right, *self.mistakes])

    def n_unknown(self, class_id: int) -> int | None:
        """Measured examples of a class that would be called unknown; None if not measured."""
        if self.unknown is None:
            return None
        return min(self.unknown.get(class_id, 0), self.recognised[class_id].n)

    def to_event(self) -> dict[str, Any]:
        """The body of the event, whose size does not grow with the number of classes."""
        return {
            "seen": self.event,
            **self.hyperparameters.to_json(),
            "measured_false_alarms": self.measured_false_alarms,
            "n_examples": sum(self.class_counts.values()),
            "n_classes": len(self.class_counts),
        }

    def to_json(self) -> dict[str, Any]:
        """The whole assessment, as the database and snapshots store it."""
        return {
            "seen": self.event,
            **self.hyperparameters.to_json(),
            "limits": None if self.limits is None else self.limits.to_json(),
            "measured_false_alarms": self.measured_false_alarms,
            "class_counts": [list(item) for item in self.class_counts.items()],
            "recognised": [[k, *astuple(found)] for k, found in self.recognised.items()],
            "mistakes": [list(entry) for entry in self.mistakes],
            "doubts": [list(astuple(doubt)) for doubt in self.doubts],
            "unknown": None
            if self.unknown is None
            else [list(one) for one in self.unknown.items()],
            "mistaken": [list(astuple(one)) for one in self.mistaken],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Assessment:
        """The inverse of :meth:`to_json`."""
        try:
            limits, unknown = body["limits"], body["unknown"]
            return cls(
                int(body["seen"]),
                hyperparameters_from(body),
                None if limits is None else NoveltyLimits.from_json(limits),
                body["measured_false_alarms"],
                {int(k): int(n) for k, n in body["class_counts"]},
                {int(k): Recognised(*entry) for k, *entry in body["recognised"]},
                tuple((int(a), int(b), int(n)) for a, b, n in body["mistakes"]),
                tuple(Doubt(*entry) for entry in body["doubts"]),
                None if unknown is None else {int(k): int(n) for k, n in unknown},
                tuple(Mistaken(*entry) for entry in body["mistaken"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WorkspaceError(
                f"the assessment is damaged: {error!r}; restore a backup"
            ) from error

    @staticmethod
    def is_whole(body: Mapping[str, Any]) -> bool:
        """Whether a body is a whole assessment, not only its hyperparameters."""
        return "class_counts" in body


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r} is not true or false")
    return value


def _positive(value: Any) -> float | None:
    if value is not None and not 0 < float(value) < math.inf:
        raise ValueError(f"{value!r} is not positive")
    return None if value is None else float(value)


def hyperparameters_from(body: Mapping[str, Any]) -> Hyperparameters:
    """The hyperparameters in the body of an event."""
    try:
        penalty = body["penalty"]
        return Hyperparameters(
            None if penalty is None else float(penalty),
            float(body["recoding"]),
            float(body["temperature"]),
            tuple(int(block) for block in body["used_blocks"]),
            _flag(body["by_means"]),
            _positive(body["novelty_penalty"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WorkspaceError(
            f"an event of kind 'choose' is damaged: {error!r}; restore a backup"
        ) from error


def wilson(n_right: int, n: int) -> Accuracy:
    """A rate with Wilson's 95 % interval, which suits few examples too.

    >>> found = wilson(12, 12)
    >>> found.rate, round(found.low, 2), found.high
    (1.0, 0.76, 1.0)
    """
    rate, square = n_right / n, _Z**2 / n
    middle = (rate + square / 2) / (1 + square)
    half = np.sqrt(square * (rate * (1 - rate) + square / 4)) / (1 + square)
    # Exact at the ends, where rounding would exceed the interval.
    low = 0.0 if n_right == 0 else float(middle - half)
    high = 1.0 if n_right == n else float(middle + half)
    return Accuracy(rate, low, high, n)


def sign_of(n_examples: int, accuracy: Accuracy | None) -> Sign:
    """Whether a class has enough examples.

    >>> sign_of(1, None), sign_of(5, wilson(5, 5)), sign_of(20, wilson(20, 20))
    ('new', 'more', 'enough')
    >>> sign_of(20, wilson(5, 20))
    'confused'
    """
    if n_examples < MIN_EXAMPLES:
        return "new"
    if accuracy is None:
        return "more"
    if accuracy.low >= _ENOUGH:
        return "enough"
    return "confused" if accuracy.high < _ENOUGH else "more"
