"""Differences between two sides, told from noise, and the findings that follow.

A verdict is True, False, or None where it is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evergrow.research.experiments.experiment import Finding
from evergrow.research.experiments.table import Row, Table

# What was measured, as part of a sentence, and the verdict.
Seen = tuple[str, bool | None]
# A claim of the paper, and how it is judged by the rows of one data set.
Claim = tuple[str, Callable[[Table], Seen]]

_FEWEST_SEEDS = 3
# The noise of an accuracy with one or two seeds. The order of the rows alone moves an accuracy by
# up to one percentage point, and two accuracies may move in opposite directions.
FEW_SEEDS_NOISE = 0.02
# For times and counts, whose noise one or two seeds do not show: they then decide nothing.
UNKNOWN_NOISE = float("inf")


@dataclass(frozen=True)
class Difference:
    """The mean difference between two sides, and the noise it may be due to.

    Examples
    --------
    >>> from evergrow.research.experiments.verdicts import Difference
    >>> found = Difference(mean=0.04, noise=0.01)
    >>> found.verdict, found.below(0.02), found.within(0.045)
    (True, False, None)
    """

    mean: float
    noise: float

    @property
    def verdict(self) -> bool | None:
        """Whether the first side is above the second; None when it may be noise."""
        return self.above(0.0)

    def above(self, bound: float) -> bool | None:
        """Whether the difference is above a bound; None when it may be noise."""
        gap = self.mean - bound
        return gap > 0 if abs(gap) > self.noise else None

    def below(self, bound: float) -> bool | None:
        """Whether the difference is below a bound; None when it may be noise."""
        above = self.above(bound)
        return None if above is None else not above

    def within(self, bound: float) -> bool | None:
        """Whether both sides are the same up to a bound; None when the noise is too large.

        Sides that the seeds cannot tell apart are not the same: that needs noise below the bound.
        """
        return combine_verdicts([self.above(-bound), self.below(bound)])


def compare_means(
    table: Table,
    column: str,
    one: Row,
    other: Row,
    *,
    few_seeds_noise: float = FEW_SEEDS_NOISE,
) -> Difference:
    """Mean difference over the seeds, with the half-width of its 95 % confidence interval.

    ``one`` and ``other`` select the rows of each side by columns and values; rows of the same seed
    are compared. One or two seeds cannot show the noise, for which ``few_seeds_noise`` is assumed:
    the default is for accuracies, ``UNKNOWN_NOISE`` leaves the verdict undecided.
    """
    return compare_seeds(
        [
            table.mean(column, **one, seed=seed) - table.mean(column, **other, seed=seed)
            for seed in table.values("seed")
            if all(len(table.where(**side, seed=seed).column(column)) for side in (one, other))
        ],
        few_seeds_noise=few_seeds_noise,
    )


def compare_seeds(
    differences: Sequence[float], *, few_seeds_noise: float = FEW_SEEDS_NOISE
) -> Difference:
    """The same from known differences, one of each seed."""
    if not len(differences):
        return Difference(float("nan"), float("inf"))
    mean = sum(differences) / len(differences)
    if len(differences) < _FEWEST_SEEDS:
        return Difference(mean, few_seeds_noise)
    from scipy.stats import t

    spread = Table({"d": d} for d in differences).deviation("d")
    width = float(t.ppf(0.975, len(differences) - 1)) * spread / len(differences) ** 0.5
    return Difference(mean, width)


def compare_each_seed(
    table: Table, difference: Callable[[Table], float], *, few_seeds_noise: float = FEW_SEEDS_NOISE
) -> Difference:
    """The same from a function that takes the rows of one seed."""
    by_seed = (table.where(seed=seed) for seed in table.values("seed"))
    return compare_seeds([difference(rows) for rows in by_seed], few_seeds_noise=few_seeds_noise)


def compare_ratios(table: Table, column: str, one: Row, other: Row) -> Difference:
    """How many times larger a column is on one side, as a logarithm, over the seeds.

    For times and counts. One or two seeds decide nothing.
    """
    return compare_each_seed(
        table,
        lambda rows: math.log(rows.mean(column, **one) / rows.mean(column, **other)),
        few_seeds_noise=UNKNOWN_NOISE,
    )


def compare_values(
    table: Table, column: str, key: str, lower: Any, higher: Any, **options: float
) -> Difference:
    """How much larger a column is at the second value of a key than at the first."""
    return compare_means(table, column, {key: higher}, {key: lower}, **options)


def is_increasing(
    table: Table, column: str, key: str, values: Sequence[Any], **options: float
) -> bool | None:
    """Whether a column grows from each of these values of a key to the next."""
    return combine_verdicts(
        compare_values(table, column, key, *pair, **options).verdict for pair in pairwise(values)
    )


def is_best(table: Table, column: str, one: Row, others: Iterable[Row]) -> bool | None:
    """Whether one side is above all others."""
    return combine_verdicts(compare_means(table, column, one, other).verdict for other in others)


def compare_extremes(table: Table, column: str, key: str) -> Difference:
    """The value of a key with the highest mean compared with the one with the lowest."""
    means = {value: table.mean(column, **{key: value}) for value in table.values(key)}
    worst, best = (find(means, key=lambda value: means[value]) for find in (min, max))
    return compare_values(table, column, key, worst, best)


def combine_verdicts(verdicts: Iterable[bool | None]) -> bool | None:
    """False if any verdict is false, undecided if any is undecided."""
    listed = [*verdicts]
    if False in listed:
        return False
    return None if None in listed else True


def format_mean(table: Table, column: str, *, scale: float = 100, **where: Any) -> str:
    """Mean and standard deviation as text, in percent unless another scale is given."""
    mean, deviation = table.mean(column, **where), table.deviation(column, **where)
    n_seeds = len(table.where(**where).column(column))
    return f"{scale * mean:.1f}" + (f" ± {scale * deviation:.1f}" if n_seeds > 1 else "")


def format_percent(table: Table, column: str, **where: Any) -> str:
    """Mean and standard deviation of a share as text with a percent sign."""
    # Rows are selected here, because a column may be called "scale".
    return f"{format_mean(table.where(**where), column)} %"


_HERE = {True: "Here", False: "Here", None: "Here, not clear of chance,"}


def findings_by_data(table: Table, claims: Iterable[Claim]) -> list[Finding]:
    """One finding per claim and verdict: it names the data sets with that verdict."""
    findings = []
    for claim, look in claims:
        seen = {name: look(table.where(data=name)) for name in table.values("data")}
        for agrees in (True, False, None):
            said = [f"on {name} {text}" for name, (text, found) in seen.items() if found is agrees]
            if said:
                findings.append(Finding(claim, f"{_HERE[agrees]} {'; '.join(said)}.", agrees))
    return findings
