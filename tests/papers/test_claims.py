"""Claims are told from noise, group by group."""

import math

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers.claims import (
    Claim,
    Compare,
    Difference,
    Verdict,
    Words,
    best,
    deciding,
    each_seed,
    increasing,
    judge,
    over_seeds,
    points,
    times,
)
from evergrow_papers.table import ANY, Table, at_most, first, last

WORDS = Words({"n": "{} classes"}, {"method": {"a": "A"}}, {"accuracy": "accuracy"}, ("accuracy",))


def table(**accuracies):
    return Table(
        {"method": method, "seed": seed, "accuracy": accuracy}
        for method, values in accuracies.items()
        for seed, accuracy in enumerate(values)
    )


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [
        pytest.param([0.60, 0.61, 0.62], [0.50, 0.51, 0.53], True, id="clear"),
        pytest.param([0.50, 0.51, 0.53], [0.60, 0.61, 0.62], False, id="reversed"),
        pytest.param([0.60, 0.50, 0.62], [0.50, 0.58, 0.53], None, id="seeds disagree"),
        pytest.param([0.31, 0.51, 0.71], [0.30, 0.50, 0.70], True, id="seed by seed"),
        pytest.param([0.6000, 0.6001, 0.5999], [0.6, 0.6, 0.6], False, id="too small to count"),
        pytest.param([0.60], [0.57], True, id="one seed, far apart"),
        pytest.param([0.60], [0.59], None, id="one seed, close"),
        pytest.param([0.6, 0.6, 0.6], [], None, id="not measured"),
    ],
)
def test_one_side_is_above_the_other(one, other, agrees):
    found = points("accuracy", "method", "a", "b").verdict(table(a=one, b=other))
    assert found.agrees is agrees


@pytest.mark.parametrize(
    ("mean", "noise", "above", "below", "within"),
    [
        (0.01, 0.005, False, True, True),
        (-0.01, 0.005, False, True, True),
        (0.04, 0.005, True, False, False),
        (-0.04, 0.005, False, True, False),
        (0.01, 0.05, None, None, None),
        (0.025, 0.01, None, None, None),
    ],
)
def test_bounds(mean, noise, above, below, within):
    found = Difference(mean, noise)
    assert found.above(0.03).agrees is above
    assert found.below(0.03).agrees is below
    assert found.within(0.03).agrees is within


def test_printed_numbers_are_the_other_side():
    rows = table(a=[0.501, 0.502, 0.503])
    assert Compare("accuracy", {"method": "a"}, 0.49, within=0.02).verdict(rows).agrees is True
    assert Compare("accuracy", {"method": "a"}, 0.40, within=0.02).verdict(rows).agrees is False


def test_ratios_are_of_each_seed():
    rows = Table({"k": k, "seed": s, "s": (10 + s) * k} for k in (1, 3) for s in range(3))
    found = times("s", "k", 3, 1)
    assert math.exp(found.difference(rows).mean) == pytest.approx(3)
    assert [
        Compare("s", {"k": 3}, {"k": 1}, unit="times", **bound).verdict(rows).agrees
        for bound in ({"above": 2.9}, {"above": 3.1}, {"below": 3.1}, {"within": 2.0})
    ] == [True, False, True, False]


def test_ratios_of_one_seed_decide_nothing():
    rows = Table({"k": k, "seed": 0, "s": k} for k in (1, 100))
    assert times("s", "k", 100, 1).verdict(rows).agrees is None


def test_noise_is_rarely_taken_for_a_difference():
    noise = np.random.default_rng(0).normal(size=(2000, 3))
    decided = [over_seeds(each).above(0.01).agrees is True for each in noise]
    assert np.mean(decided) == pytest.approx(0.025, abs=0.01)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([True, True], True), ([True, None], None), ([None, False], False), ([], True)],
)
def test_one_false_part_decides(verdicts, expected):
    assert deciding(verdicts).agrees is expected


def test_the_deciding_part_is_shown():
    parts = [Verdict(False, "near", 1.0), Verdict(False, "far", 5.0), Verdict(True, "true", 9.0)]
    assert deciding(parts).text == "far"
    parts = [Verdict(True, "near", 1.0), Verdict(True, "far", 5.0), Verdict(True)]
    assert deciding(parts).text == "near"
    parts = [Verdict(None, "near", 0.1), Verdict(None, "far", 0.9), Verdict(True, "true", 9.0)]
    assert deciding(parts).text == "near"


def test_order_and_best():
    rows = table(a=[0.8, 0.8, 0.8], b=[0.7, 0.7, 0.7], c=[0.79, 0.81, 0.8])
    assert [c.verdict(rows).agrees for c in increasing("accuracy", "method", "ba")] == [True]
    assert [c.verdict(rows).agrees for c in best("accuracy", "method", "a", "abc")] == [True, None]


def test_a_verdict_shows_means_interval_and_bound():
    rows = table(a=[0.60, 0.61, 0.62], b=[0.50, 0.51, 0.52])
    text = points("accuracy", "method", "a", "b").verdict(rows, WORDS).text
    assert (
        text
        == "A against b: 61 % against 51 %, +10.0 points (+10.0 to +10.0, 3 seeds); needed: above 0"
    )


@pytest.mark.parametrize(
    ("found", "text"),
    [
        # An end gets the digits that tell it from zero or from a bound.
        (Difference(0.1, 0.02, 1), "+10.0 points (+8.0 to +12.0, 1 seed)"),
        (Difference(0.0049, 0.0045, 5), "+0.49 points (+0.04 to +0.94, 5 seeds)"),
        (Difference(math.log(1.5), 0.0, 5, "times"), "1.50 times (1.50 to 1.50, 5 seeds)"),
        (Difference(math.nan, math.inf), "not measured"),
        (Difference(2.0, math.inf, 1, "percent"), "+2.0 (too few seeds for an interval)"),
    ],
)
def test_intervals_as_text(found, text):
    assert found.interval == text


# Accuracies by number of classes; data "y" ends earlier.
STREAMS = Table(
    {"data": d, "method": m, "n": n, "seed": s, "accuracy": a / 100 + s / 1000}
    for d, m, n, a in (
        ("x", "a", 10, 90),
        ("x", "b", 10, 95),
        ("x", "a", 50, 70),
        ("x", "b", 50, 60),
        ("y", "a", 20, 50),
        ("y", "b", 20, 60),
    )
    for s in range(3)
)
LEAD = [points("accuracy", "method", "a", "b")]


def judged(claim, **options):
    found = judge({"lead": claim}, STREAMS, WORDS, **options)
    return [(each.group, each.agrees) for each in found]


def test_groups_are_judged_apart_each_at_its_own_end():
    assert judged(Claim("A leads.", LEAD, where={"n": last}, each=("data",))) == [
        ("x", True),
        ("y", False),
    ]


def test_groups_of_one_verdict_can_be_one_finding():
    claim = Claim("A leads.", LEAD, each=("data", "n"), together=True)
    assert judged(claim) == [("x, 50 classes", True), ("x, 10 classes; y, 20 classes", False)]


def test_a_claim_must_hold_at_each_value():
    claim = Claim("A leads.", LEAD, over=("n",))
    (found,) = judge({"lead": claim}, STREAMS, WORDS, where={"data": "x"})
    assert (found.agrees, found.n_parts, found.n_alike) == (False, 2, 1)
    assert found.decided_by.startswith("10 classes: A against b: ")


def test_claims_take_rows_and_groups_of_their_experiment():
    defaults = {"where": {"n": last}, "each": ("data",)}
    assert judged(Claim("A leads.", LEAD), **defaults) == [("x", True), ("y", False)]
    lifted = Claim("A leads.", LEAD, where={"n": ANY, "data": "x"}, each=(), over=("n",))
    assert judged(lifted, **defaults) == [("", False)]


def test_rows_that_cannot_decide_leave_a_claim_undecided():
    claim = Claim(
        "A leads.",
        LEAD,
        where={"n": last},
        each=("data",),
        decides=lambda rows: rows.values("n") == [50],
    )
    assert judged(claim) == [("x", True), ("y", None)]


def test_functions_serve_claims_that_are_no_means():
    def growth(rows):
        return [each_seed(rows, lambda one: one.mean("accuracy", n=50)).above(0.5), True]

    (found,) = judge({"growth": Claim("It grows.", growth, where={"data": "x"})}, STREAMS, WORDS)
    assert (found.agrees, found.n_parts) == (True, 2)


def test_printed_numbers_of_groups():
    claim = Claim("A leads.", LEAD, printed={"x": "7 %"}, where={"n": last}, each=("data",))
    assert [f.printed for f in judge({"lead": claim}, STREAMS, WORDS)] == ["7 %", ""]


def test_rows_are_chosen():
    assert {r["n"] for r in STREAMS.where(data="x", n=first)} == {10}
    assert {r["n"] for r in STREAMS.where(n=at_most(30))} == {20}
    assert {r["n"] for r in STREAMS.where(n=(10, 20))} == {10, 20}
    assert len(STREAMS.where(n=ANY, missing=None)) == len(STREAMS)
    assert len(STREAMS.where(data="z", n=last)) == 0


def test_csv_keeps_values():
    rows = [
        {"a": 1, "b": 0.1, "c": "0.10", "d": True, "e": None, "f": 1e9 / 7, "g": 'x, "y"\n'},
        {"a": -3, "b": 12.0, "c": "007", "d": False, "e": "e", "f": 1e-9, "g": "nan"},
    ]
    text = Table(rows).to_csv("abcdefg")
    one, other = Table.from_csv(text)
    assert one == {**{k: v for k, v in rows[0].items() if k != "e"}, "f": 1.42857e8}
    assert other == rows[1]
    assert Table.from_csv(text).to_csv("abcdefg") == text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: points("accuracy", "n", 2, 1, above=0.1, within=0.2), "has one bound"),
        (lambda: times("seconds", "n", 2, 1, within=0.1), "a bound on a ratio is a factor"),
        (lambda: times("seconds", "n", 2, 1, below=-1.0), "a bound on a ratio is a factor"),
    ],
)
def test_bounds_that_would_mislead_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "part", [points("acuracy", "n", 2, 1), points("accuracy", "m", 2, 1), {"where": {"x": 1}}]
)
def test_unknown_columns_are_refused(part):
    options = part if isinstance(part, dict) else {"parts": [part]}
    claim = Claim(**{"text": "More is better.", "parts": [], **options})
    table = Table({"n": n, "seed": 0, "accuracy": n / 10} for n in (1, 2))
    with pytest.raises(ValueError, match=r"'more' names .*; the columns are accuracy, n, seed"):
        judge({"more": claim}, table, Words())
