"""Claims of papers as rows, and the one rule that judges them.

A claim is about differences between two sides, such as the accuracies of two learners. Runs with
several random seeds give each difference a 95 % interval.

- "One side is higher" agrees if the whole interval is above zero. It differs if the whole interval
  is below the least difference that counts: half a percentage point, or 5 % of a time or a count.
  Otherwise it is not decided.
- A claim with a bound, such as "at least 10 points", agrees or differs if the interval lies on one
  side of the bound.
- A claim of several comparisons differs if one differs, and is not decided if one is not decided.

To add a claim, add a row to ``claims`` of its experiment, with a short name of your own::

    "steady": Claim(
        "Test time with 20 initial classes is within 10 % of that with 3.",
        [times("comparisons", "initial", 20, 3, within=1.1)],
        printed="74 against 71 distances",
    )

:func:`points` and :func:`times` compare a column of ``papers/results/NAME.csv`` at two values of
another; a :class:`Compare` names the rows of its two sides by several columns. ``where`` and
``each`` of the experiment, such as "after the last classes" and "for each data set", hold for all
its claims. Leave ``printed`` out if the paper prints no number. If the claim differs, say why under
its name in ``notes/PAPER.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any, Literal, cast

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import format_count
from evergrow_papers.table import Row, Table

# Shares, which are shown as percentage points; percentages; logarithms of ratios; any other.
Unit = Literal["points", "percent", "times", ""]
# The least difference that counts.
LEAST: dict[Unit, float] = {"points": 0.005, "percent": 0.5, "times": math.log(1.05), "": 0.0}
FEWEST_SEEDS = 3
# The noise with one or two seeds. The order of the rows alone moves an accuracy by up to one
# percentage point, and two accuracies may move in opposite directions; of few images by more.
# Times and counts of so few seeds decide nothing.
FEW_SEEDS_NOISE: dict[Unit, float] = {
    "points": 0.02,
    "percent": 5.0,
    "times": math.inf,
    "": math.inf,
}
# Digits that an interval may have in addition, where it nearly touches a bound.
MOST_DIGITS = 2


@dataclass(frozen=True)
class Verdict:
    """Whether a comparison holds: its text, and how clear it is.

    ``agrees`` is None if it is not decided. ``clearness`` is the distance from the bound in
    half-widths of the interval.
    """

    agrees: bool | None
    text: str = ""
    clearness: float = math.inf


@dataclass(frozen=True)
class Difference:
    """The mean difference between two sides, and the half-width of its 95 % interval.

    Examples
    --------
    >>> from evergrow_papers.claims import Difference
    >>> found = Difference(mean=0.04, noise=0.01)
    >>> found.above(0).agrees, found.below(0.02).agrees, found.within(0.045).agrees
    (True, False, None)
    """

    mean: float
    noise: float
    n_seeds: int = 0
    unit: Unit = "points"
    name: str = ""
    means: str = ""

    def above(self, bound: float = 0.0) -> Verdict:
        """Whether the difference is above a bound; zero asks for a difference that counts."""
        return self._verdict(self._is_above(bound), "above", bound)

    def below(self, bound: float = 0.0) -> Verdict:
        """Whether the difference is below a bound; zero asks for a difference that counts."""
        agrees = replace(self, mean=-self.mean)._is_above(-bound)
        return self._verdict(agrees, "below", bound)

    def within(self, bound: float) -> Verdict:
        """Whether both sides are the same up to a bound."""
        return deciding([self.above(-bound), self.below(bound)])

    @property
    def interval(self) -> str:
        """The 95 % interval as text."""
        return self._interval()

    def _is_above(self, bound: float) -> bool | None:
        if self.mean - self.noise > bound:
            return True
        least = LEAST[self.unit] if bound == 0 else 0.0
        return False if self.mean + self.noise < bound + least else None

    def _verdict(self, agrees: bool | None, side: str, bound: float) -> Verdict:
        gap = abs(self.mean - bound)
        bounds = [bound]
        if bound == 0 and agrees is not True:
            bounds.append(LEAST[self.unit] * (1 if side == "above" else -1))
        asked = self._format(bound) if bound or self.unit == "times" else "0"
        name = f"{self.name}: " if self.name else ""
        means = f"{self.means}, " if self.means else ""
        return Verdict(
            agrees,
            f"{name}{means}{self._interval(*bounds)}; needed: {side} {asked}",
            gap / self.noise if self.noise else math.copysign(math.inf, gap),
        )

    def _interval(self, *bounds: float) -> str:
        """The interval, with so many digits that no end looks like zero or like a bound."""
        if math.isnan(self.mean):
            return "not measured"
        if math.isinf(self.noise):
            return f"{self._format(self.mean)} (too few seeds for an interval)"
        ends = (self.mean - self.noise, self.mean + self.noise)
        more = next(
            (n for n in range(MOST_DIGITS) if self._tells_apart(ends, bounds, n)), MOST_DIGITS
        )
        mean, low, high = (self._format(end, more) for end in (self.mean, *ends))
        units = {"points": " points", "percent": " points", "times": " times", "": ""}
        seeds = f", {format_count(self.n_seeds, 'seed')}" if self.n_seeds else ""
        return f"{mean}{units[self.unit]} ({low} to {high}{seeds})"

    def _tells_apart(self, ends: Iterable[float], bounds: Sequence[float], more: int) -> bool:
        return all(
            math.isclose(end, bound, abs_tol=1e-9)
            or float(self._format(end, more)) != float(self._format(bound, more))
            for end, bound in product(ends, (0.0, *bounds))
        )

    def _format(self, value: float, more: int = 0) -> str:
        if self.unit == "times":
            return f"{math.exp(value):.{2 + more}f}"
        if self.unit == "":
            text = f"{value:+.{3 + more}g}"
        else:
            text = f"{value * (100 if self.unit == 'points' else 1):+.{1 + more}f}"
        # Zero is positive.
        return text if float(text) else text.replace("-", "+")


@dataclass(frozen=True)
class Compare:
    """One comparison: a column on two sides, seed by seed, and the bound of the difference.

    Attributes
    ----------
    column : str
        What is compared.
    one : mapping
        Selects the rows of the first side, as in :meth:`Table.where`.
    other : mapping or float
        Selects the rows of the second side, or is a printed number.
    above, below, within : float
        The bound, of which only one may be given. By default the difference must be above zero. A
        bound on a ratio is a factor: ``within=1.1`` is from 1 / 1.1 to 1.1.
    where : mapping
        Selects rows for both sides.
    unit : str
        "points" for shares, "percent" for percentages, "times" for the ratio of times and counts,
        or "" for other differences.
    name : str
        The two sides in words; by default they are named by their columns.
    """

    column: str
    one: Row
    other: Row | float
    above: float | None = None
    below: float | None = None
    within: float | None = None
    where: Row = field(default_factory=dict)
    unit: Unit = "points"
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse bounds that would judge something else than they say."""
        bounds = [b for b in (self.above, self.below, self.within) if b is not None]
        if len(bounds) > 1:
            raise InvalidInputError(f"a comparison of {self.column} has one bound, got {bounds}")
        least = 1.0 if self.within is not None else 0.0
        if self.unit == "times" and bounds and bounds[0] < least:
            raise InvalidInputError(
                f"a bound on a ratio is a factor, such as within=1.1 for 10 %, got {bounds[0]}"
            )

    def difference(self, table: Table, words: Words | None = None) -> Difference:
        """The difference between the sides, over the seeds that measured both."""
        say = words or Words()
        if isinstance(self.other, Mapping):
            name = self.name or say.sides(self.one, self.other)
        else:
            name = self.name or f"{say.setting(self.one)} against the printed number"
        shared = table.where(**self.where)
        sides = [
            shared.where(**side) for side in (self.one, self.other) if isinstance(side, Mapping)
        ]
        pairs: list[tuple[float, float]] = []
        for seed in shared.values("seed"):
            means = [side.mean(self.column, seed=seed) for side in sides]
            one, other = means if len(means) == 2 else (means[0], cast(float, self.other))
            if not (math.isnan(one) or math.isnan(other)):
                pairs.append((one, other))
        ratio = self.unit == "times"
        found = over_seeds(
            [math.log(a / b) if ratio else a - b for a, b in pairs], unit=self.unit, name=name
        )
        if not pairs:
            return found
        both = (
            say.number(self.column, sum(side) / len(pairs)) for side in zip(*pairs, strict=True)
        )
        return replace(found, means=" against ".join(both))

    def verdict(self, table: Table, words: Words | None = None) -> Verdict:
        """Whether the difference is on the right side of the bound."""
        return self.judge(self.difference(table, words))

    def judge(self, found: Difference) -> Verdict:
        """Whether a difference is on the right side of the bound."""
        scale = math.log if found.unit == "times" else float
        if self.below is not None:
            return found.below(scale(self.below))
        if self.within is not None:
            return found.within(scale(self.within))
        zero = 1.0 if found.unit == "times" else 0.0
        return found.above(scale(zero if self.above is None else self.above))


def over_seeds(
    differences: Sequence[float], *, unit: Unit = "points", name: str = ""
) -> Difference:
    """The mean and the 95 % interval of a difference that each seed measured once."""
    n_seeds = len(differences)
    if not n_seeds:
        return Difference(math.nan, math.inf, 0, unit, name)
    mean = sum(differences) / n_seeds
    if n_seeds < FEWEST_SEEDS:
        return Difference(mean, FEW_SEEDS_NOISE[unit], n_seeds, unit, name)
    from scipy.stats import t

    spread = Table({"d": d} for d in differences).deviation("d")
    width = float(t.ppf(0.975, n_seeds - 1)) * spread / n_seeds**0.5
    return Difference(mean, width, n_seeds, unit, name)


def each_seed(table: Table, difference: Callable[[Table], float], **options: Any) -> Difference:
    """A difference that a function computes from the rows of each seed."""
    return over_seeds([difference(table.where(seed=s)) for s in table.values("seed")], **options)


def points(column: str, key: str, one: Any, other: Any, **options: Any) -> Compare:
    """A comparison of two values of a key, in percentage points."""
    return Compare(column, {key: one}, {key: other}, **options)


def times(column: str, key: str, one: Any, other: Any, **options: Any) -> Compare:
    """A comparison of times or counts at two values of a key, as a ratio."""
    return Compare(column, {key: one}, {key: other}, unit="times", **options)


def increasing(column: str, key: str, values: Sequence[Any], **options: Any) -> list[Compare]:
    """Comparisons of each of these values of a key with the one before."""
    return [points(column, key, b, a, **options) for a, b in pairwise(values)]


def best(column: str, key: str, value: Any, others: Iterable[Any], **options: Any) -> list[Compare]:
    """Comparisons of one value of a key with all others."""
    return [points(column, key, value, other, **options) for other in others if other != value]


def deciding(verdicts: Iterable[Verdict | bool | None]) -> Verdict:
    """The verdict of all comparisons together: false if one is false, else None if one is None.

    The text is that of the comparison that decides: of those with this verdict, the clearest that
    is false, or the least clear that is true or None.
    """
    listed = [v if isinstance(v, Verdict) else Verdict(v) for v in verdicts]
    for agrees in (False, None, True):
        alike = [v for v in listed if v.agrees is agrees]
        # Comparisons of exact numbers have no text; they decide only if nothing else does.
        told = [v for v in alike if v.text] if agrees else alike
        if alike:
            pick = max if agrees is False else min
            return pick(told, key=lambda v: v.clearness) if told else Verdict(agrees)
    return Verdict(True)


Parts = Sequence[Compare] | Callable[[Table], Iterable[Verdict | bool | None]]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and the comparisons that judge it.

    Attributes
    ----------
    text : str
        What the paper says, in our words, as a sentence.
    parts : sequence of Compare, or callable
        The comparisons. A function of the table, which returns verdicts, serves the few claims
        that are no comparison of means.
    printed : str or mapping
        The numbers that the paper prints; a mapping has those of each group.
    where : mapping
        Selects the rows that are judged, in addition to those of the experiment.
    each : tuple of str or None
        Columns whose values are judged apart: one finding for each group of rows. None takes those
        of the experiment.
    together : bool
        Whether groups with the same verdict become one finding.
    over : tuple of str
        Columns at each of whose values the claim must hold.
    decides : callable, default=None
        Tells whether the rows of a group can decide the claim; otherwise it is not decided.
    """

    text: str
    parts: Parts
    printed: str | Mapping[Any, str] = ""
    where: Row = field(default_factory=dict)
    each: tuple[str, ...] | None = None
    together: bool = False
    over: tuple[str, ...] = ()
    decides: Callable[[Table], bool] | None = None


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim, for one group of rows or for several with the same verdict."""

    key: str
    claim: str
    group: str
    agrees: bool | None
    decided_by: str
    n_parts: int
    n_alike: int
    printed: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return {True: "agrees", False: "differs", None: "not decided"}[self.agrees]


@dataclass(frozen=True)
class Words:
    """How pages say the columns of a paper and their values.

    Attributes
    ----------
    settings : mapping of str to str
        A template for each column of settings, such as "{} classes".
    values : mapping of str to mapping
        Words for the values of a column.
    quantities : mapping of str to str
        What columns are, on the axes of figures and in tables.
    shares, percentages : tuple of str
        Columns that are shown in percent: shares of one, and numbers that are percentages already.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    quantities: Mapping[str, str] = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    percentages: tuple[str, ...] = ()

    def value(self, column: str, value: Any) -> str:
        """A value of a column as part of a sentence."""
        return self.settings.get(column, "{}").format(self.bare(column, value))

    def bare(self, column: str, value: Any) -> str:
        """A value of a column without the words of the column."""
        if callable(value):
            return "smallest" if getattr(value, "__name__", "") == "first" else "largest"
        if isinstance(value, tuple):
            return " and ".join(self.bare(column, each) for each in value)
        known = self.values.get(column, {})
        if value in known:
            return known[value]
        if isinstance(value, str):
            # "joint, low rank" is the method "joint" in a setting of its own.
            start, comma, rest = value.partition(", ")
            return f"{known.get(start, start)}{comma}{rest}"
        if isinstance(value, int | float) and column in self.shares:
            return f"{100 * value:g} %"
        return f"{value:g}" if isinstance(value, float) else str(value)

    def setting(self, setting: Row) -> str:
        """Columns and their values, without missing ones."""
        return ", ".join(self.value(k, v) for k, v in setting.items() if v is not None)

    def sides(self, one: Row, other: Row) -> str:
        """The two sides of a comparison, by the columns that differ."""
        differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        if len(differing) == 1:
            (key,) = differing
            both = " against ".join(self.bare(key, side.get(key)) for side in (one, other))
            return self.settings.get(key, "{}").format(both)
        said = (self.setting({k: side.get(k) for k in differing}) for side in (one, other))
        return " against ".join(said)

    def quantity(self, column: str) -> str:
        """What a column of measurements is."""
        return self.quantities.get(column, column)

    def number(self, column: str, mean: float, deviation: float | None = None) -> str:
        """A number of a column with its standard deviation, shares in percent."""
        scale = 100 if column in self.shares else 1
        unit = " %" if column in (*self.shares, *self.percentages) else ""
        if deviation is None:
            return f"{scale * mean:.4g}{unit}"
        # Sums of equal numbers are rounded.
        spread = round(scale * deviation, 10)
        if not unit:
            return f"{mean:.4g} ± {spread:.2g}"
        # A small deviation gets the digit that it needs to be seen.
        digits = 2 if 0 < spread < 0.05 else 1
        return f"{scale * mean:.{digits}f} ± {spread:.{digits}f}{unit}"


def judge(
    claims: Mapping[str, Claim],
    table: Table,
    words: Words,
    *,
    where: Row | None = None,
    each: tuple[str, ...] = (),
) -> list[Finding]:
    """The findings of all claims, in their order.

    ``where`` selects the rows of all claims, and ``each`` has the columns that claims are judged
    apart by unless they name their own.
    """
    found = []
    for key, claim in claims.items():
        chosen = replace(
            claim,
            where={**(where or {}), **claim.where},
            each=each if claim.each is None else claim.each,
        )
        found += _judge(key, chosen, table, words)
    return found


def _judge(key: str, claim: Claim, table: Table, words: Words) -> list[Finding]:
    _check_columns(key, claim, table)
    columns = claim.each or ()
    # A choice, such as the last number of classes, is made within each group.
    plain = {name: value for name, value in claim.where.items() if not callable(value)}
    judged = {}
    for place in _places(table.where(**plain), columns):
        at = dict(zip(columns, place, strict=True))
        verdicts = _verdicts(claim, table.where(**at).where(**claim.where), words)
        if verdicts:
            judged[words.setting(at), place] = verdicts
    if not claim.together:
        return [_finding(key, claim, {group: found}) for group, found in judged.items()]
    groups = []
    for agrees in (True, False, None):
        alike = {g: found for g, found in judged.items() if deciding(found).agrees is agrees}
        if alike:
            groups.append(_finding(key, claim, alike))
    return groups


def _check_columns(key: str, claim: Claim, table: Table) -> None:
    """Raise an error if a claim names a column that no row has: it would never be decided."""
    known = {name for row in table for name in row}
    selections = [claim.where]
    named = {*(claim.each or ()), *claim.over}
    for part in () if callable(claim.parts) else claim.parts:
        named.add(part.column)
        selections += [part.one, part.where]
        selections += [part.other] if isinstance(part.other, Mapping) else []
    # A missing value selects rows that lack the column.
    named |= {k for one in selections for k, v in one.items() if v is not None}
    if len(table) and (unknown := sorted(named - known)):
        raise InvalidInputError(
            f"the claim {key!r} names {', '.join(unknown)}; the columns are "
            f"{', '.join(sorted(known))}"
        )


def _places(table: Table, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [*dict.fromkeys(tuple(row.get(name) for name in columns) for row in table)]


def _verdicts(claim: Claim, rows: Table, words: Words) -> list[Verdict]:
    """The verdicts of all comparisons of a claim; an empty list leaves the group out."""
    verdicts: list[Verdict] = []
    for place in _places(rows, claim.over):
        at = dict(zip(claim.over, place, strict=True))
        mine = rows.where(**at)
        if callable(claim.parts):
            said = [v if isinstance(v, Verdict) else Verdict(v) for v in claim.parts(mine)]
        else:
            said = [part.verdict(mine, words) for part in claim.parts]
        where = f"{words.setting(at)}: " if at else ""
        verdicts += [replace(v, text=f"{where}{v.text}") if v.text else v for v in said]
    if claim.decides is not None and not claim.decides(rows):
        return [replace(v, agrees=None) for v in verdicts]
    return verdicts


def _finding(
    key: str, claim: Claim, judged: Mapping[tuple[str, tuple[Any, ...]], list[Verdict]]
) -> Finding:
    verdicts = [
        replace(v, text=f"{group}: {v.text}") if len(judged) > 1 and v.text else v
        for (group, _), found in judged.items()
        for v in found
    ]
    decided = deciding(verdicts)
    printed = claim.printed
    if not isinstance(printed, str):
        places = (place[0] if len(place) == 1 else place for _, place in judged)
        printed = "; ".join(filter(None, (printed.get(place, "") for place in places)))
    return Finding(
        key,
        claim.text,
        "; ".join(group for group, _ in judged),
        decided.agrees,
        decided.text,
        len(verdicts),
        sum(v.agrees is decided.agrees for v in verdicts),
        printed,
    )
