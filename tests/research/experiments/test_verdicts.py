"""Differences are separated from noise."""

import numpy as np
import pytest

from evergrow.research import Finding, Table
from evergrow.research.experiments.verdicts import (
    Claim,
    Difference,
    combine_verdicts,
    compare_means,
    compare_ratios,
    compare_seeds,
    findings_by_data,
    format_percent,
    is_best,
    name_repeated,
)


def table(**accuracies):
    return Table(
        {"method": method, "seed": seed, "accuracy": accuracy}
        for method, values in accuracies.items()
        for seed, accuracy in enumerate(values)
    )


def compared(one, other):
    found = compare_means(table(a=one, b=other), "accuracy", {"method": "a"}, {"method": "b"})
    return found.verdict.agrees


def test_a_difference_that_all_seeds_share_is_clear():
    assert compared([0.60, 0.61, 0.62], [0.50, 0.51, 0.53]) is True
    assert compared([0.50, 0.51, 0.53], [0.60, 0.61, 0.62]) is False


def test_a_difference_that_seeds_do_not_share_is_not():
    assert compared([0.60, 0.50, 0.62], [0.50, 0.58, 0.53]) is None


def test_few_seeds_show_only_large_differences():
    assert compared([0.60], [0.57]) is True
    assert compared([0.60], [0.59]) is None


def test_each_seed_is_compared_with_itself():
    # Seeds differ by far more than the methods, which keep the same distance in each.
    assert compared([0.31, 0.51, 0.71], [0.30, 0.50, 0.70]) is True


def test_what_was_not_measured_is_undecided():
    rows = table(a=[0.5, 0.6, 0.7])
    assert compare_means(rows, "accuracy", {"method": "a"}, {"method": "b"}).verdict.agrees is None


def test_a_single_seed_decides_nothing_where_it_may_be_off_by_anything():
    sides = ({"method": "a"}, {"method": "b"})
    found = compare_means(table(a=[9.0], b=[1.0]), "accuracy", *sides, unit="")
    assert (found.mean, found.verdict.agrees) == (8.0, None)


def test_three_seeds_of_pure_noise_are_rarely_taken_for_a_difference():
    noise = np.random.default_rng(0).normal(size=(2000, 3))
    decided = [compare_seeds(each).above(0.01).agrees is True for each in noise]
    assert np.mean(decided) == pytest.approx(0.025, abs=0.01)


@pytest.mark.parametrize(
    ("difference", "noise", "within"),
    [
        (0.01, 0.005, True),
        (-0.01, 0.005, True),
        (0.04, 0.005, False),
        (-0.04, 0.005, False),
        # Not shown to differ, yet not known to be the same.
        (0.01, 0.05, None),
        (0.025, 0.01, None),
    ],
)
def test_sides_are_the_same_if_noise_cannot_exceed_the_bound(difference, noise, within):
    assert Difference(difference, noise).within(0.03).agrees is within


@pytest.mark.parametrize(("difference", "above"), [(0.15, True), (0.05, False), (0.11, None)])
def test_a_difference_is_compared_with_a_bound(difference, above):
    found = Difference(difference, 0.02)
    assert found.above(0.1).agrees is above
    assert found.below(0.1).agrees is (None if above is None else not above)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([True, True], True), ([True, None], None), ([None, False], False)],
)
def test_one_false_verdict_decides(verdicts, expected):
    assert combine_verdicts(verdicts).agrees is expected


def test_the_best_is_above_all_others():
    rows = table(a=[0.8, 0.8, 0.8], b=[0.7, 0.7, 0.7], c=[0.79, 0.81, 0.8])
    one, worse, level = ({"method": name} for name in "abc")
    assert is_best(rows, "accuracy", one, [worse]).agrees is True
    assert is_best(rows, "accuracy", one, [worse, level]).agrees is None
    assert is_best(rows, "accuracy", worse, [one]).agrees is False


def test_data_sets_of_one_verdict_make_one_finding():
    rows = Table({"data": name} for name in ("a", "b", "c"))
    seen = {"a": True, "b": False, "c": True}
    claim = Claim("It is so.", lambda mine: ("seen", seen[mine.rows[0]["data"]]))
    findings = findings_by_data(rows, [claim])
    assert [(f.here, f.agrees) for f in findings] == [
        ("Here on a seen; on c seen.", True),
        ("Here on b seen.", False),
    ]


def test_deviations_are_shown_for_several_seeds_only():
    assert format_percent(table(a=[0.5, 0.6]), "accuracy") == "55.0 ± 7.1 %"
    assert format_percent(table(a=[0.5]), "accuracy") == "50.0 %"


@pytest.mark.parametrize(
    ("mean", "noise", "agrees"),
    [
        (0.002, 0.001, True),
        # The interval contains zero and ends below half a point: there is no difference.
        (0.001, 0.003, False),
        (0.001, 0.006, None),
        (-0.002, 0.004, False),
    ],
)
def test_a_difference_below_half_a_point_is_none(mean, noise, agrees):
    assert Difference(mean, noise).verdict.agrees is agrees
    assert Difference(-mean, noise).below(0.0).agrees is agrees


def test_ratios_below_five_percent_are_none():
    assert Difference(0.01, 0.02, unit="times").verdict.agrees is False
    assert Difference(0.01, 0.05, unit="times").verdict.agrees is None


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            Difference(0.012, 0.004, 5),
            "+1.2 points (+0.8 to +1.6, 5 seeds); the claim needs a difference above 0",
        ),
        (Difference(np.log(2), 0, 3, "times", "a against b"), "2.00 times (2.00 to 2.00, 3 seeds)"),
        (Difference(0.012, float("inf"), 1), "too few seeds for an interval"),
        (compare_seeds([]), "not measured"),
    ],
)
def test_a_verdict_shows_the_interval_that_decided(found, text):
    assert text in found.verdict.contrast


def test_the_deciding_part_of_several_is_shown():
    clear, slight, none = (Difference(mean, 0.01, name=str(mean)) for mean in (0.2, 0.02, -0.1))
    assert combine_verdicts([clear.verdict, slight.verdict]).contrast.startswith("0.02: ")
    assert combine_verdicts([clear.verdict, none.verdict]).contrast.startswith("-0.1: ")


def test_the_page_can_say_how_many_parts_decided():
    clear, slight, none = (Difference(mean, 0.01, name=str(mean)) for mean in (0.2, 0.02, -0.1))
    agrees = combine_verdicts([clear.verdict, slight.verdict])
    assert (agrees.n_parts, agrees.n_deciding) == (2, 2)
    differs = combine_verdicts([agrees, none.verdict])
    assert (differs.n_parts, differs.n_deciding) == (3, 1)
    # Both sides of one difference are one comparison.
    assert clear.within(0.5).n_parts == 1


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Difference(0.0027, 0.0024, 12).verdict, "+0.27 points (+0.03 to +0.51, 12 seeds)"),
        (Difference(0.0027, 0.00268, 12).verdict, "+0.270 points (+0.002 to +0.538, 12 seeds)"),
        (Difference(-0.0014, 0.0012).verdict, "-0.14 points (-0.26 to -0.02)"),
        (Difference(0.037, 0.0088).below(0.046), "+3.70 points (+2.82 to +4.58)"),
        # The upper end is below half a point, which decides.
        (Difference(0.002, 0.0027).verdict, "+0.20 points (-0.07 to +0.47)"),
        (Difference(0.0096, 0.0044).verdict, "+1.0 points (+0.5 to +1.4)"),
        (Difference(0.0, 0.0, 3).verdict, "+0.0 points (+0.0 to +0.0, 3 seeds)"),
        (Difference(np.log(1.01), 0.008, unit="times").verdict, "1.010 times (1.002 to 1.018)"),
    ],
)
def test_an_interval_that_nearly_touches_its_bound_has_more_digits(found, text):
    assert found.contrast.startswith(text)


def test_claims_that_occur_twice_begin_with_their_data():
    rows = Table({"data": name} for name in ("a", "b", "c"))
    claim = Claim("It is so.", lambda mine: ("seen", mine.rows[0]["data"] != "b"))
    claims = [finding.claim for finding in findings_by_data(rows, [claim])]
    assert claims == ["A and c: It is so.", "B: It is so."]
    findings = [(name, Finding(text, "", True)) for name, text in (("x", "1"), ("y", "1"))]
    one = ("x", Finding("2", "", True))
    assert [f.claim for f in name_repeated([*findings, one])] == ["X: 1", "Y: 1", "2"]


def test_a_reason_is_told_where_a_claim_differs():
    rows = Table({"data": name} for name in ("a", "b"))
    look = lambda mine: ("seen", mine.rows[0]["data"] == "a")  # noqa: E731
    claim = Claim("It is so.", look, printed="1 %", reason=lambda mine: f"{mine.rows[0]['data']}!")
    agrees, differs = findings_by_data(rows, [claim])
    assert (agrees.printed, agrees.reason) == ("1 %", "")
    assert differs.reason == "b!"


def test_ratios_are_of_seeds_that_measured_both_sides():
    rows = Table([*table(a=[2.0, 4.0, 6.0, 9.0]), *table(b=[1.0, 2.0, 3.0])])
    found = compare_ratios(rows, "accuracy", {"method": "a"}, {"method": "b"})
    assert (found.mean, found.n_seeds) == (pytest.approx(np.log(2)), 3)
