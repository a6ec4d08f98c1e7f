"""Which of two is better, and whether the seeds can tell; findings from that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.research.experiments.experiment import Finding
from evergrow.research.experiments.table import Table

__all__ = [
    "FEW_SEEDS_NOISE",
    "Contrast",
    "by_data",
    "combined",
    "contrast",
    "contrast_of",
    "leads",
    "shown",
]

Choice = Mapping[str, Any]
Look = Callable[[Table], tuple[str, bool | None]]

_FEWEST_SEEDS = 3
# With fewer seeds: the order of the rows alone moves an accuracy by up to a point, and two of them
# may move apart.
FEW_SEEDS_NOISE = 0.02


@dataclass(frozen=True)
class Contrast:
    """By how much one side is above the other, and how far chance alone may carry that.

    Examples
    --------
    >>> from evergrow.research.experiments.contrasts import Contrast
    >>> found = Contrast(difference=0.04, noise=0.01)
    >>> found.verdict, found.below(0.02), found.within(0.045)
    (True, False, None)
    """

    difference: float
    noise: float

    @property
    def verdict(self) -> bool | None:
        """Whether one is above the other; None when chance may have done it."""
        return self.above(0.0)

    def above(self, bound: float) -> bool | None:
        """Whether it is above the other by more than this; None when chance may decide."""
        gap = self.difference - bound
        return gap > 0 if abs(gap) > self.noise else None

    def below(self, bound: float) -> bool | None:
        """Whether it is above the other by less than this; None when chance may decide."""
        above = self.above(bound)
        return None if above is None else not above

    def within(self, bound: float) -> bool | None:
        """Whether both are the same up to this; None when the noise is too wide to tell.

        What no seed can tell apart is not the same: that takes noise below the bound.
        """
        return combined([self.above(-bound), self.below(bound)])


def contrast(
    table: Table,
    column: str,
    one: Choice,
    other: Choice,
    *,
    few_seeds_noise: float = FEW_SEEDS_NOISE,
) -> Contrast:
    """Mean over seeds of the difference, with the half-width of its 95 % interval.

    Parameters
    ----------
    table : Table
        Rows of both sides; those of the same seed are compared with each other.
    column : str
        What is compared.
    one, other : mapping
        Columns and values that choose the rows of each side.
    few_seeds_noise : float, default=0.02
        What one or two seeds may be off by, which they cannot tell themselves. The default is for
        shares; other quantities have other sizes, and infinity lets so few decide nothing.
    """
    seeds = [s for s in table.values("seed") if _has(table, column, one, other, s)]
    return contrast_of(
        [table.mean(column, **one, seed=s) - table.mean(column, **other, seed=s) for s in seeds],
        few_seeds_noise=few_seeds_noise,
    )


def contrast_of(
    differences: Sequence[float], *, few_seeds_noise: float = FEW_SEEDS_NOISE
) -> Contrast:
    """The same from differences that are known, one of each seed, as of a gain from a gain."""
    if not len(differences):
        return Contrast(float("nan"), float("inf"))
    mean = sum(differences) / len(differences)
    if len(differences) < _FEWEST_SEEDS:
        return Contrast(mean, few_seeds_noise)
    from scipy.stats import t

    spread = Table({"d": d} for d in differences).deviation("d")
    width = float(t.ppf(0.975, len(differences) - 1)) * spread / len(differences) ** 0.5
    return Contrast(mean, width)


def _has(table: Table, column: str, one: Choice, other: Choice, seed: int) -> bool:
    return all(len(table.where(**side, seed=seed).column(column)) for side in (one, other))


def leads(table: Table, column: str, one: Choice, others: Iterable[Choice]) -> bool | None:
    """Whether one is above all others: not if clearly below any, open if level with any."""
    return combined(contrast(table, column, one, other).verdict for other in others)


def combined(verdicts: Iterable[bool | None]) -> bool | None:
    """Not if any is not, open if any is open."""
    listed = [*verdicts]
    if False in listed:
        return False
    return None if None in listed else True


def shown(table: Table, column: str, **where: Any) -> str:
    """Mean and deviation of an accuracy in percent."""
    mean, deviation = table.mean(column, **where), table.deviation(column, **where)
    several = f" ± {100 * deviation:.1f}" if len(table.where(**where).column(column)) > 1 else ""
    return f"{100 * mean:.1f}{several} %"


# What is not clear of chance is said to be so.
_HERE = {True: "Here", False: "Here", None: "Here, not clear of chance,"}


def by_data(claim: str, table: Table, look: Look) -> list[Finding]:
    """One finding for the data sets that agree, one for those that differ, one for the rest.

    ``look`` says of the rows of one data set what is seen there and whether it agrees.
    """
    seen = {name: look(table.where(data=name)) for name in table.values("data")}
    findings = []
    for agrees in (True, False, None):
        said = [f"on {name} {text}" for name, (text, verdict) in seen.items() if verdict is agrees]
        if said:
            findings.append(Finding(claim, f"{_HERE[agrees]} {'; '.join(said)}.", agrees))
    return findings
