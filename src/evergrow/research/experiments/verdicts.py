"""Differences between two sides with their intervals, verdicts, and the findings that follow.

One rule for all claims. A claim is about a difference, which has a 95 % interval over the seeds.
That one side is above another agrees if the whole interval is above zero. It differs if the whole
interval is below the least difference that counts: half a percentage point of an accuracy, 5 % of
a time or a count: the order is reversed, or both sides are the same. Otherwise it is open.
Claims with a bound of their own, such as "at least 10 points", agree or differ if the interval does
not contain the bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from evergrow.research.experiments.experiment import Finding, Verdict
from evergrow.research.experiments.table import Row, Table
from evergrow.research.experiments.wording import say_sides

# What was measured, as part of a sentence, and the verdict.
Seen = tuple[str, Verdict | bool | None]

_FEWEST_SEEDS = 3
# Digits that an interval may have in addition, where it nearly touches a bound.
_MOST_DIGITS = 2
# Shares, which are shown as percentage points; percentages; logarithms of ratios; any other.
Unit = Literal["points", "percent", "times", ""]
# The least difference that counts.
LEAST: dict[Unit, float] = {"points": 0.005, "percent": 0.5, "times": math.log(1.05), "": 0.0}
# The noise with one or two seeds. The order of the rows alone moves an accuracy by up to one
# percentage point, and two accuracies may move in opposite directions; of few images by more.
# Times and counts of so few seeds decide nothing.
FEW_SEEDS_NOISE: dict[Unit, float] = {
    "points": 0.02,
    "percent": 5.0,
    "times": math.inf,
    "": math.inf,
}


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and how it is judged by the rows of one data set."""

    text: str
    """What the paper says, in our words, as a sentence."""
    look: Callable[[Table], Seen]
    printed: str = ""
    """The numbers that the paper prints for it."""
    reason: Callable[[Table], str] | str = ""
    """Why it differs, as measured: a text, or a function of the rows."""


@dataclass(frozen=True)
class Difference:
    """The mean difference between two sides, and the half-width of its 95 % interval.

    Examples
    --------
    >>> from evergrow.research.experiments.verdicts import Difference
    >>> found = Difference(mean=0.04, noise=0.01)
    >>> found.verdict.agrees, found.below(0.02).agrees, found.within(0.045).agrees
    (True, False, None)
    >>> Difference(mean=0.001, noise=0.003).verdict.agrees
    False
    """

    mean: float
    noise: float
    n_seeds: int = 0
    unit: Unit = "points"
    name: str = ""
    """The two sides, for example "A against B"."""

    @property
    def verdict(self) -> Verdict:
        """Whether the first side is above the second."""
        return self.above(0.0)

    def above(self, bound: float) -> Verdict:
        """Whether the difference is above a bound.

        A bound of zero asks for a difference: below the least one that counts there is none.
        """
        least = LEAST[self.unit] if bound == 0 else 0.0
        if self.mean - self.noise > bound:
            return self._verdict(True, "above", bound)
        below = self.mean + self.noise < bound + least
        return self._verdict(False if below else None, "above", bound)

    def below(self, bound: float) -> Verdict:
        """Whether the difference is below a bound; for zero, as in :meth:`above`."""
        found = replace(self, mean=-self.mean).above(-bound)
        return self._verdict(found.agrees, "below", bound)

    def within(self, bound: float) -> Verdict:
        """Whether both sides are the same up to a bound.

        Sides that the seeds cannot tell apart are not the same: that needs noise below the bound.
        """
        found = combine_verdicts([self.above(-bound), self.below(bound)])
        return replace(found, n_parts=1, n_deciding=1)

    @property
    def interval(self) -> str:
        """The 95 % interval as text."""
        return self._interval()

    def _interval(self, *bounds: float) -> str:
        """The interval, with so many digits that no end looks like zero or like a bound."""
        ends = (self.mean, self.mean - self.noise, self.mean + self.noise)
        if math.isnan(self.mean):
            return "not measured"
        if math.isinf(self.noise):
            return f"{self._format(self.mean)} (too few seeds for an interval)"
        more = next(
            (more for more in range(_MOST_DIGITS) if self._tells_apart(ends[1:], bounds, more)),
            _MOST_DIGITS,
        )
        mean, low, high = (self._format(end, more) for end in ends)
        units = {"points": " points", "percent": " points", "times": " times", "": ""}
        seeds = f", {self.n_seeds} seeds" if self.n_seeds else ""
        return f"{mean}{units[self.unit]} ({low} to {high}{seeds})"

    def _tells_apart(self, ends: Iterable[float], bounds: Iterable[float], more: int) -> bool:
        """Whether ends and bounds that differ do so as text too."""
        return all(
            math.isclose(end, bound, abs_tol=1e-9)
            or float(self._format(end, more)) != float(self._format(bound, more))
            for end in ends
            for bound in (0.0, *bounds)
        )

    def _format(self, value: float, more: int = 0) -> str:
        """The value as text, with some digits more than usual."""
        if self.unit == "times":
            return f"{math.exp(value):.{2 + more}f}"
        if self.unit == "":
            text = f"{value:+.{3 + more}g}"
        else:
            text = f"{value * (100 if self.unit == 'points' else 1):+.{1 + more}f}"
        # Zero is positive.
        return text if float(text) else text.replace("-", "+")

    def _verdict(self, agrees: bool | None, side: str, bound: float) -> Verdict:
        # Exact bounds without a sign, except where they are differences.
        asked = self._format(bound) if bound or self.unit == "times" else "0"
        name = f"{self.name}: " if self.name else ""
        # How far the interval is from the bound, in units of its width: which part decides.
        gap = abs(self.mean - bound)
        distance = gap / self.noise if self.noise else math.copysign(math.inf, gap)
        none = agrees is False and gap <= self.noise
        remark = ". So small a difference does not count" if none else ""
        what = "a factor" if self.unit == "times" else "a difference"
        needed = f"the claim needs {what} {side} {asked}{remark}"
        bounds = [bound]
        if bound == 0 and agrees is not True:
            # It is judged by the least difference that counts too.
            bounds.append(LEAST[self.unit] * (1 if side == "above" else -1))
        return Verdict(agrees, f"{name}{self._interval(*bounds)}; {needed}", distance)


def compare_means(
    table: Table,
    column: str,
    one: Row,
    other: Row,
    *,
    unit: Unit = "points",
) -> Difference:
    """Mean difference over the seeds, with the half-width of its 95 % confidence interval.

    ``one`` and ``other`` select the rows of each side by columns and values; rows of the same seed
    are compared. One or two seeds cannot show the noise, which is then taken from
    ``FEW_SEEDS_NOISE``.
    """
    return compare_seeds(
        [mean - other_mean for mean, other_mean in _means_by_seed(table, column, one, other)],
        unit=unit,
        name=say_sides(one, other),
    )


def _means_by_seed(
    table: Table, column: str, one: Row, other: Row
) -> Iterator[tuple[float, float]]:
    """The means of both sides for each seed that measured both."""
    for seed in table.values("seed"):
        rows = table.where(seed=seed)
        if all(len(rows.where(**side).column(column)) for side in (one, other)):
            yield rows.mean(column, **one), rows.mean(column, **other)


def compare_seeds(
    differences: Sequence[float],
    *,
    unit: Unit = "points",
    name: str = "",
) -> Difference:
    """The same from known differences, one of each seed."""
    n_seeds = len(differences)
    if not n_seeds:
        return Difference(float("nan"), float("inf"), 0, unit, name)
    mean = sum(differences) / n_seeds
    if n_seeds < _FEWEST_SEEDS:
        return Difference(mean, FEW_SEEDS_NOISE[unit], n_seeds, unit, name)
    from scipy.stats import t

    spread = Table({"d": d} for d in differences).deviation("d")
    width = float(t.ppf(0.975, n_seeds - 1)) * spread / n_seeds**0.5
    return Difference(mean, width, n_seeds, unit, name)


def compare_each_seed(
    table: Table, difference: Callable[[Table], float], **options: Any
) -> Difference:
    """The same from a function that takes the rows of one seed."""
    by_seed = (table.where(seed=seed) for seed in table.values("seed"))
    return compare_seeds([difference(rows) for rows in by_seed], **options)


def compare_ratios(table: Table, column: str, one: Row, other: Row) -> Difference:
    """How many times larger a column is on one side, as a logarithm, over the seeds.

    For times and counts. One or two seeds decide nothing.
    """
    means = _means_by_seed(table, column, one, other)
    return compare_seeds(
        [math.log(mean / other_mean) for mean, other_mean in means],
        unit="times",
        name=say_sides(one, other),
    )


def compare_values(table: Table, column: str, key: str, lower: Any, higher: Any) -> Difference:
    """How much larger a column is at the second value of a key than at the first."""
    return compare_means(table, column, {key: higher}, {key: lower})


def is_increasing(
    table: Table,
    column: str,
    key: str,
    values: Sequence[Any],
    compare: Callable[[Table, str, Row, Row], Difference] = compare_means,
) -> Verdict:
    """Whether a column grows from each of these values of a key to the next."""
    return combine_verdicts(
        compare(table, column, {key: higher}, {key: lower}).verdict
        for lower, higher in pairwise(values)
    )


def is_best(table: Table, column: str, one: Row, others: Iterable[Row]) -> Verdict:
    """Whether one side is above all others."""
    return combine_verdicts(compare_means(table, column, one, other).verdict for other in others)


def compare_extremes(table: Table, column: str, key: str) -> Difference:
    """The value of a key with the highest mean compared with the one with the lowest."""
    means = {value: table.mean(column, **{key: value}) for value in table.values(key)}
    worst, best = (find(means, key=lambda value: means[value]) for find in (min, max))
    return compare_values(table, column, key, worst, best)


def combine_verdicts(verdicts: Iterable[Verdict | bool | None]) -> Verdict:
    """False if any verdict is false, open if any is open.

    The contrast is that of the part that decides: of those with the common verdict, the clearest
    that is false, or the least clear that is true or open.
    """
    listed = [v if isinstance(v, Verdict) else Verdict(v) for v in verdicts]
    told = [v for v in listed if v.contrast]
    for agrees in (False, None, True):
        deciding = [v for v in listed if v.agrees is agrees]
        if not deciding:
            continue
        # An open part is the more open, the nearer its bound.
        pick = max if agrees is False else min
        named = [v for v in deciding if v.contrast] if agrees else deciding
        if not named:
            break
        return replace(
            pick(named, key=lambda v: v.distance),
            n_parts=sum(v.n_parts for v in told),
            n_deciding=sum(v.n_deciding for v in deciding if v.contrast),
        )
    return Verdict(True)


def format_mean(table: Table, column: str, *, scale: float = 100, **where: Any) -> str:
    """Mean and standard deviation as text, in percent unless another scale is given."""
    mean, deviation = table.mean(column, **where), table.deviation(column, **where)
    n_seeds = len(table.where(**where).column(column))
    return f"{scale * mean:.1f}" + (f" ± {scale * deviation:.1f}" if n_seeds > 1 else "")


def format_percent(table: Table, column: str, **where: Any) -> str:
    """Mean and standard deviation of a share as text with a percent sign."""
    # Rows are selected here, because a column may be called "scale".
    return f"{format_mean(table.where(**where), column)} %"


def findings_by_data(table: Table, claims: Iterable[Claim]) -> list[Finding]:
    """One finding per claim and verdict: it names the data sets with that verdict."""
    findings = []
    for claim in claims:
        looked = {name: claim.look(table.where(data=name)) for name in table.values("data")}
        for agrees in (True, False, None):
            seen = {
                name: (text, verdict if isinstance(verdict, Verdict) else Verdict(verdict))
                for name, (text, verdict) in looked.items()
            }
            mine = {name: each for name, each in seen.items() if each[1].agrees is agrees}
            if not mine:
                continue
            said = "; ".join(f"on {name} {text}" for name, (text, _) in mine.items())
            findings.append(
                Finding(
                    # A claim that occurs twice says for which data.
                    claim.text if len(mine) == len(looked) else f"{_listed(mine)}: {claim.text}",
                    f"Here {said}.",
                    combine_verdicts(
                        replace(verdict, contrast=f"{name}: {verdict.contrast}")
                        if verdict.contrast and len(looked) > 1
                        else verdict
                        for name, (_, verdict) in mine.items()
                    ),
                    printed=claim.printed,
                    reason=_reason(claim, table, [*mine]) if agrees is False else "",
                )
            )
    return findings


def name_repeated(findings: Iterable[tuple[str, Finding]]) -> list[Finding]:
    """Findings with the names of their data: claims that occur twice begin with them."""
    named = [*findings]
    counts = Counter(finding.claim for _, finding in named)
    return [
        replace(finding, claim=f"{_listed([name])}: {finding.claim}")
        if counts[finding.claim] > 1
        else finding
        for name, finding in named
    ]


def _listed(names: Iterable[Any]) -> str:
    """Names as the beginning of a sentence."""
    *others, last = map(str, names)
    text = f"{', '.join(others)} and {last}" if others else last
    return f"{text[:1].upper()}{text[1:]}"


def _reason(claim: Claim, table: Table, names: Sequence[str]) -> str:
    if isinstance(claim.reason, str):
        return claim.reason
    reasons = (claim.reason(table.where(data=name)) for name in names)
    return " ".join(dict.fromkeys(text for text in reasons if text))
