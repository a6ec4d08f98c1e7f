"""Whether an order that the paper finds is there, told from the noise between seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.experiments.table import Table

__all__ = ["Difference", "difference", "increasing", "percent", "plus_minus"]


@dataclass(frozen=True)
class Difference:
    """One learner less another at the same place, over seeds."""

    mean: float
    error: float
    """Standard error of the mean; 0 of a single seed."""

    @property
    def sign(self) -> bool | None:
        """Whether it is above zero; None where it may be noise."""
        if np.isnan(self.mean) or abs(self.mean) <= self.error:
            return None
        return self.mean > 0


def difference(
    table: Table, column: str, key: str, lower: Any, higher: Any, **where: Any
) -> Difference:
    """How much more the second has than the first, seed by seed."""
    low, high = (_by_seed(table, column, **{**where, key: value}) for value in (lower, higher))
    gaps = np.array([high[seed] - low[seed] for seed in low if seed in high])
    if not len(gaps):
        return Difference(float("nan"), 0.0)
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
    return Difference(float(gaps.mean()), error)


def increasing(
    table: Table, column: str, key: str, values: Sequence[Any], **where: Any
) -> bool | None:
    """Whether a column grows from each of these values of a key to the next.

    False if some pair is the other way round by more than its noise; None if all others hold but
    some pair is too close to tell.
    """
    signs = [difference(table, column, key, a, b, **where).sign for a, b in pairwise(values)]
    if False in signs:
        return False
    return None if None in signs else True


def _by_seed(table: Table, column: str, **where: Any) -> dict[Any, float]:
    rows = table.where(**where)
    return {row["seed"]: row[column] for row in rows if row.get(column) is not None}


def percent(values: float | npt.NDArray[np.float64]) -> Any:
    """Shares as percentages."""
    return 100 * values


def plus_minus(table: Table, column: str, *, scale: float = 100, **where: Any) -> str:
    """Mean and standard deviation as text, in percent unless told otherwise."""
    mean, deviation = table.mean(column, **where), table.deviation(column, **where)
    n_seeds = len(table.where(**where).column(column))
    spread = f" ± {scale * deviation:.1f}" if n_seeds > 1 else ""
    return f"{scale * mean:.1f}{spread}"
