"""Seed, counters and early samples of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evergrow.estimators.forest.value.batch import NO_EARLY_SAMPLES, EarlySamples
from evergrow.foundation.errors import InvalidInputError

_INTEGERS = ("seed", "n_updates", "n_seen")


@dataclass(frozen=True, eq=False)
class History:
    """Seed and counters of a forest.

    Attributes
    ----------
    seed : int
        All random numbers of the model derive from it.
    n_updates : int
        Updates so far; each draws its own random numbers.
    n_seen : int
        Samples seen so far, evicted ones included; the id of the next sample.
    row_rate : float
        Rows that a tree draws per sample seen.
    refresh_due : float
        Number of trees that were due to be grown again so far; modulo the number of trees, it is
        the next one.
    early : EarlySamples
        Empty once the feature scale is fixed.
    """

    seed: int
    n_updates: int
    n_seen: int
    row_rate: float
    refresh_due: float = 0.0
    early: EarlySamples = NO_EARLY_SAMPLES

    def to_json(self) -> dict[str, Any]:
        """The numbers, for the header of a model file."""
        return {
            "n_seen": self.n_seen,
            "n_updates": self.n_updates,
            "refresh_due": self.refresh_due,
            "row_rate": self.row_rate,
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, entry: Any) -> History:
        """Rebuild from :meth:`to_json`; a ``ValueError`` if a value is invalid."""
        values = entry if isinstance(entry, dict) else {}
        integers = [values.get(name) for name in _INTEGERS]
        rate, due = values.get("row_rate"), values.get("refresh_due")
        if not all(type(value) is int and 0 <= value < 2**63 for value in integers):
            raise InvalidInputError("the counters of the model are damaged")
        if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 < rate < 2**32:
            raise InvalidInputError("the row rate of the model is damaged")
        if not isinstance(due, (int, float)) or isinstance(due, bool) or not 0 <= due < 2**53:
            raise InvalidInputError("the refreshed trees of the model are damaged")
        seed, n_updates, n_seen = (int(values[name]) for name in _INTEGERS)
        return cls(seed, n_updates, n_seen, float(rate), float(due))
