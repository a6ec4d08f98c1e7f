"""Orders over several settings, and numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from evergrow.research.experiments.contrasts import FEW_SEEDS_NOISE, Contrast, combined, contrast
from evergrow.research.experiments.table import Table

__all__ = ["ANYTHING", "gain", "increasing", "plus_minus"]

# One or two seeds cannot tell how far times and counts are off.
ANYTHING = float("inf")


def gain(
    table: Table,
    column: str,
    key: str,
    lower: Any,
    higher: Any,
    *,
    few_seeds_noise: float = FEW_SEEDS_NOISE,
) -> Contrast:
    """How much more of a column there is with the second value of a key than with the first."""
    sides = {key: higher}, {key: lower}
    return contrast(table, column, *sides, few_seeds_noise=few_seeds_noise)


def increasing(
    table: Table,
    column: str,
    key: str,
    values: Sequence[Any],
    *,
    few_seeds_noise: float = FEW_SEEDS_NOISE,
) -> bool | None:
    """Whether a column grows from each of these values of a key to the next.

    False if some pair is the other way round by more than its noise; None if all others hold but
    some pair is too close to tell.
    """
    return combined(
        gain(table, column, key, a, b, few_seeds_noise=few_seeds_noise).verdict
        for a, b in pairwise(values)
    )


def plus_minus(table: Table, column: str, *, scale: float = 100, **where: Any) -> str:
    """Mean and standard deviation as text, in percent unless told otherwise."""
    mean, deviation = table.mean(column, **where), table.deviation(column, **where)
    n_seeds = len(table.where(**where).column(column))
    spread = f" ± {scale * deviation:.1f}" if n_seeds > 1 else ""
    return f"{scale * mean:.1f}{spread}"
