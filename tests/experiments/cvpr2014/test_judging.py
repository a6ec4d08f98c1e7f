"""What is said of the forest paper's claims follows from the numbers."""

import pytest

from evergrow.experiments import Table, find_experiments
from evergrow.experiments.cvpr2014.claims import difference, increasing
from evergrow.experiments.cvpr2014.growing import points, relative_to_baseline

from .made_up import ORDER, SEEDS, seeded


def _experiment(name):
    return find_experiments([name])[0]


def _stretch(order, seconds=None, comparisons=None):
    """A stream from 10 to 100 classes with these last accuracies."""
    costs = {"uls": 1.0, "igt": 2.0, "rust": 10.0, "rtst": 20.0, "retrained": 60.0}
    return relative_to_baseline(
        seeded(
            {
                "data": "features",
                "initial": 10,
                "strategy": strategy,
                "n_classes": n,
                "accuracy": accuracy,
                "comparisons": costs[strategy],
                "n_distances": costs[strategy],
                "seconds": n * costs[strategy],
            }
            for strategy, accuracy in order.items()
            for n in (10, 50, 100)
        )
    )


def _verdict(findings, start):
    (finding,) = [f for f in findings if f.claim.startswith(start)]
    return finding.agrees


def test_fig5_sees_the_papers_order():
    findings = _experiment("cvpr2014-fig5").judge(_stretch(ORDER))
    assert _verdict(findings, "The paper orders by accuracy") is True


def test_fig5_sees_another_order():
    swapped = {**ORDER, "igt": 0.62}
    findings = _experiment("cvpr2014-fig5").judge(_stretch(swapped))
    assert _verdict(findings, "The paper orders by accuracy") is False


def test_fig5_leaves_open_what_seeds_cannot_tell():
    close = {**ORDER, "rtst": ORDER["rust"]}
    findings = _experiment("cvpr2014-fig5").judge(_stretch(close))
    assert _verdict(findings, "The paper orders by accuracy") is None


def _panel_b(metric):
    return seeded(
        {
            "panel": "b",
            "data": "features",
            "initial": 10,
            "method": method,
            "n_classes": n,
            "accuracy": accuracy,
            "comparisons": 1.0,
            "seconds": 1.0,
        }
        for method, accuracy in {**ORDER, "met": metric, "met_low_rank": 0.3}.items()
        for n in (10, 100)
    )


@pytest.mark.parametrize(("metric", "agrees"), [(0.4, True), (0.55, False)])
def test_fig10_sees_whether_a_metric_of_few_classes_falls_below_the_forests(metric, agrees):
    findings = _experiment("cvpr2014-fig10").judge(_panel_b(metric))
    (finding,) = [f for f in findings if "in all dimensions" in f.here]
    assert finding.agrees is agrees


@pytest.mark.parametrize(("many", "agrees"), [(0.93, True), (0.99, False), (0.85, False)])
def test_fig7_sees_whether_more_initial_classes_gain_a_little(many, agrees):
    table = Table(
        {"data": "features", "strategy": "rust", "initial": n, "n_classes": 50, "seed": s}
        | {"relative": relative + 0.001 * s}
        for n, relative in {3: 0.88, 5: 0.89, 10: 0.9, 20: many}.items()
        for s in SEEDS
    )
    (finding,) = _experiment("cvpr2014-fig7").judge(table)
    assert finding.agrees is agrees


def test_published_numbers_are_the_papers():
    published = Table(_experiment("cvpr2014-fig5").published).where(data="words", n_classes=50)
    relative = {s: published.mean("relative", strategy=s) for s in ("uls", "igt", "rust", "rtst")}
    assert relative == {"uls": 0.267, "igt": 0.807, "rust": 0.881, "rtst": 0.912}
    assert published.mean("accuracy") == 0.349
    initial = Table(_experiment("cvpr2014-fig7").published).where(data="features")
    assert [initial.mean("relative", initial=n) for n in (3, 20)] == [0.881, 0.927]


def test_accuracies_are_relative_to_the_baseline_of_the_same_seed_and_classes():
    place = {"data": "features", "n_classes": 5}
    rows = [
        {**place, "strategy": "retrained", "seed": 0, "accuracy": 0.8},
        {**place, "strategy": "retrained", "seed": 1, "accuracy": 0.5},
        {**place, "strategy": "igt", "seed": 1, "accuracy": 0.4},
    ]
    assert [row["relative"] for row in relative_to_baseline(Table(rows))] == [1.0, 1.0, 0.8]


def test_differences_are_taken_seed_by_seed():
    rows = [
        {"method": method, "seed": seed, "accuracy": 0.1 * seed + gain}
        for seed in SEEDS
        for method, gain in (("a", 0.0), ("b", 0.01))
    ]
    found = difference(Table(rows), "accuracy", "method", "a", "b")
    assert found.mean == pytest.approx(0.01)
    assert found.error == pytest.approx(0.0, abs=1e-12)
    assert increasing(Table(rows), "accuracy", "method", ["a", "b"]) is True


def test_points_are_the_first_round_ones_and_the_last():
    assert points(10, 100, 30) == [10, 30, 60, 90, 100]
    assert points(3, 3, 10) == [3]
