"""What a forest remembers of its past, besides trees and samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

_INTEGERS = ("seed", "n_updates", "n_seen")


@dataclass(frozen=True, eq=False)
class EarlySamples:
    """The first samples as they came, kept until there are enough to fix the feature scale."""

    X: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class History:
    """Seed and counters of a forest.

    Attributes
    ----------
    seed : int
        What all random numbers of the model derive from.
    n_updates : int
        Updates so far; each draws numbers of its own.
    n_seen : int
        Samples shown so far, also those let go; the next sample's id.
    row_rate : float
        Rows that a tree draws per sample shown.
    refresh_due : float
        Trees that were to be grown again so far, counted around; the next in turn.
    early : EarlySamples or None
        Present while fewer samples have come than fix the feature scale.
    """

    seed: int
    n_updates: int
    n_seen: int
    row_rate: float
    refresh_due: float = 0.0
    early: EarlySamples | None = None

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
        """Rebuild from :meth:`to_json`; a ``ValueError`` if anything is off."""
        values = entry if isinstance(entry, dict) else {}
        integers = [values.get(name) for name in _INTEGERS]
        rate, due = values.get("row_rate"), values.get("refresh_due")
        if not all(type(value) is int and 0 <= value < 2**63 for value in integers):
            raise ValueError("the counters of the model are damaged")
        if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 < rate < 2**32:
            raise ValueError("the row rate of the model is damaged")
        if not isinstance(due, (int, float)) or isinstance(due, bool) or not 0 <= due < 2**53:
            raise ValueError("the refreshed trees of the model are damaged")
        seed, n_updates, n_seen = (int(values[name]) for name in _INTEGERS)
        return cls(seed, n_updates, n_seen, float(rate), float(due))

    def with_early(self, early: EarlySamples | None) -> History:
        """The same with other early samples."""
        return replace(self, early=early)
