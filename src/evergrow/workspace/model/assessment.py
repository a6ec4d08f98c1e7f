"""What an assessment found out, as a value; an event of the log holds the choices in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.model.least_squares import Choice
from evergrow.workspace.model.novelty import Limits
from evergrow.workspace.records import Accuracy, Sign

__all__ = ["FEWEST", "Assessment", "Doubt", "Recognised", "choice_of", "sign_of", "wilson"]

# Two-sided 95 % of the normal distribution.
_Z = 1.959964
# A class is known well enough when it is surely recognised this often.
_ENOUGH = 0.75
# With fewer examples of a class nothing can be left out.
FEWEST = 2


@dataclass(frozen=True)
class Recognised:
    """How often examples of a class were recognised, and what they were most often taken for."""

    n: int
    n_right: int
    confused_with: int | None
    n_confused: int

    @property
    def accuracy(self) -> Accuracy:
        """As a rate with an interval."""
        return wilson(self.n_right, self.n)


@dataclass(frozen=True)
class Doubt:
    """An example whose label the others contradict."""

    example_id: int
    class_id: int
    suggestion: int
    probability: float


@dataclass(frozen=True, eq=False)
class Assessment:
    """What is known of the model as of one event.

    Attributes
    ----------
    event : int
        The last one whose examples it heeds.
    choice : Choice
        Penalty, recoding and temperature.
    limits : Limits or None
        How strange is too strange; None where too few examples can tell.
    measured_false_alarms : float or None
        Share of known examples called unknown, by limits from other examples.
    class_counts : mapping
        Examples per class there were.
    recognised : mapping
        Per class id; classes of one example are not among them.
    mistakes : tuple of (int, int, int)
        Class, other class it was taken for, and how many examples of the sample; the most
        frequent pairs.
    doubts : tuple of Doubt
        The most certain first.
    """

    event: int
    choice: Choice
    limits: Limits | None
    measured_false_alarms: float | None
    class_counts: Mapping[int, int]
    recognised: Mapping[int, Recognised]
    mistakes: tuple[tuple[int, int, int], ...]
    doubts: tuple[Doubt, ...]

    @property
    def accuracy(self) -> Accuracy | None:
        """Over all examples of the sample; None if nothing can be told yet."""
        n = sum(found.n for found in self.recognised.values())
        return wilson(sum(found.n_right for found in self.recognised.values()), n) if n else None

    @property
    def confusion(self) -> list[tuple[int, int, int]]:
        """Class, class it was taken for, itself or another, and how many examples."""
        right = [(k, k, seen.n_right) for k, seen in self.recognised.items() if seen.n_right]
        return sorted([*right, *self.mistakes])

    def to_event(self) -> dict[str, Any]:
        """What an event holds of it: as much with many classes as with few."""
        return {
            "seen": self.event,
            **asdict(self.choice),
            "measured_false_alarms": self.measured_false_alarms,
            "n_examples": sum(self.class_counts.values()),
            "n_classes": len(self.class_counts),
        }

    def to_json(self) -> dict[str, Any]:
        """All of it, as the database and snapshots hold it."""
        return {
            "seen": self.event,
            **asdict(self.choice),
            "limits": None if self.limits is None else self.limits.to_json(),
            "measured_false_alarms": self.measured_false_alarms,
            "class_counts": [list(item) for item in self.class_counts.items()],
            "recognised": [[k, *astuple(found)] for k, found in self.recognised.items()],
            "mistakes": [list(entry) for entry in self.mistakes],
            "doubts": [list(astuple(doubt)) for doubt in self.doubts],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Assessment:
        """Back from :meth:`to_json`."""
        try:
            limits = body["limits"]
            return cls(
                int(body["seen"]),
                choice_of(body),
                None if limits is None else Limits.from_json(limits),
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
        """Whether something recorded is what :meth:`to_json` gives, not only its choices."""
        return "class_counts" in body


def choice_of(body: Mapping[str, Any]) -> Choice:
    """The numbers that an event adopted."""
    try:
        penalty = body["penalty"]
        return Choice(
            None if penalty is None else float(penalty),
            float(body["recoding"]),
            float(body["temperature"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WorkspaceError(
            f"an event of kind 'choose' is damaged: {error!r}; restore a backup"
        ) from error


def wilson(n_right: int, n: int) -> Accuracy:
    """A rate with Wilson's interval of 95 %, which is sensible for few examples too.

    >>> found = wilson(12, 12)
    >>> found.rate, round(found.low, 2), found.high
    (1.0, 0.76, 1.0)
    """
    rate, square = n_right / n, _Z**2 / n
    middle = (rate + square / 2) / (1 + square)
    half = np.sqrt(square * (rate * (1 - rate) + square / 4)) / (1 + square)
    # At the ends rounding would leave a hair outside.
    low = 0.0 if n_right == 0 else float(middle - half)
    high = 1.0 if n_right == n else float(middle + half)
    return Accuracy(rate, low, high, n)


def sign_of(n_examples: int, accuracy: Accuracy | None) -> Sign:
    """Whether a class was taught enough.

    >>> sign_of(1, None), sign_of(5, wilson(5, 5)), sign_of(20, wilson(20, 20))
    ('new', 'more', 'enough')
    >>> sign_of(20, wilson(5, 20))
    'confused'
    """
    if n_examples < FEWEST:
        return "new"
    if accuracy is None:
        return "more"
    if accuracy.low >= _ENOUGH:
        return "enough"
    return "confused" if accuracy.high < _ENOUGH else "more"
