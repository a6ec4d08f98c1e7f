"""The result of an assessment, as a value; the event log holds its hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.model.least_squares import Hyperparameters
from evergrow.workspace.model.novelty import NoveltyLimits
from evergrow.workspace.records import Accuracy, Sign

# Two-sided 95 % quantile of the normal distribution.
_Z = 1.959964
# A class has enough examples if its accuracy is certainly this high.
_ENOUGH = 0.75
# A class needs this many examples for leave-one-out.
MIN_EXAMPLES = 2


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


@dataclass(frozen=True, eq=False)
class Assessment:
    """Quality of the model as of one event.

    Attributes
    ----------
    event : int
        The newest event that it covers.
    hyperparameters : Hyperparameters
        Penalty, recoding and temperature that were selected.
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
    """

    event: int
    hyperparameters: Hyperparameters
    limits: NoveltyLimits | None
    measured_false_alarms: float | None
    class_counts: Mapping[int, int]
    recognised: Mapping[int, Recognised]
    mistakes: tuple[tuple[int, int, int], ...]
    doubts: tuple[Doubt, ...]

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

    def to_event(self) -> dict[str, Any]:
        """The body of the event, whose size does not grow with the number of classes."""
        return {
            "seen": self.event,
            **asdict(self.hyperparameters),
            "measured_false_alarms": self.measured_false_alarms,
            "n_examples": sum(self.class_counts.values()),
            "n_classes": len(self.class_counts),
        }

    def to_json(self) -> dict[str, Any]:
        """The whole assessment, as the database and snapshots store it."""
        return {
            "seen": self.event,
            **asdict(self.hyperparameters),
            "limits": None if self.limits is None else self.limits.to_json(),
            "measured_false_alarms": self.measured_false_alarms,
            "class_counts": [list(item) for item in self.class_counts.items()],
            "recognised": [[k, *astuple(found)] for k, found in self.recognised.items()],
            "mistakes": [list(entry) for entry in self.mistakes],
            "doubts": [list(astuple(doubt)) for doubt in self.doubts],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Assessment:
        """The inverse of :meth:`to_json`."""
        try:
            limits = body["limits"]
            return cls(
                int(body["seen"]),
                hyperparameters_from(body),
                None if limits is None else NoveltyLimits.from_json(limits),
                body["measured_false_alarms"],
                {int(k): int(n) for k, n in body["class_counts"]},
                {int(k): Recognised(*entry) for k, *entry in body["recognised"]},
                tuple((int(a), int(b), int(n)) for a, b, n in body["mistakes"]),
                tuple(Doubt(*entry) for entry in body["doubts"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WorkspaceError(
                f"the assessment is damaged: {error!r}; restore a backup"
            ) from error

    @staticmethod
    def is_whole(body: Mapping[str, Any]) -> bool:
        """Whether a body is a whole assessment, not only its hyperparameters."""
        return "class_counts" in body


def hyperparameters_from(body: Mapping[str, Any]) -> Hyperparameters:
    """The hyperparameters in the body of an event."""
    try:
        penalty = body["penalty"]
        return Hyperparameters(
            None if penalty is None else float(penalty),
            float(body["recoding"]),
            float(body["temperature"]),
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
