"""The verdicts on the claims of Ristin et al. 2014 follow from the numbers."""

import pytest

from evergrow.research import Table
from evergrow.research.experiments.verdicts import compare_values, is_increasing
from evergrow.research.papers.cvpr2014.protocol import points, relative_to_baseline
from tests.research.papers.checks import find, verdict

from .made_up import ORDER, SEEDS, seeded


def _stretch(order, initial=10, sizes=(10, 50, 100)):
    """A stream over these numbers of classes with these last accuracies."""
    costs = {"uls": 1.0, "igt": 2.0, "rust": 10.0, "rtst": 25.0, "retrained": 60.0}
    return relative_to_baseline(
        seeded(
            {
                "data": "features",
                "initial": initial,
                "strategy": strategy,
                "n_classes": n,
                "accuracy": accuracy,
                "comparisons": costs[strategy],
                "n_distances": costs[strategy],
                "seconds": n * costs[strategy],
            }
            for strategy, accuracy in order.items()
            for n in sizes
        )
    )


@pytest.mark.parametrize(
    ("change", "agrees"),
    [({}, True), ({"igt": 0.62}, False), ({"rtst": ORDER["rust"]}, False)],
    ids=["the paper's order", "another order", "no difference"],
)
def test_fig5_judges_the_order(change, agrees):
    table = _stretch({**ORDER, **change})
    assert verdict("cvpr2014-fig5", table, "In the paper, accuracy grows in") is agrees


AS_PRINTED = {"uls": 0.267, "igt": 0.807, "rust": 0.881, "rtst": 0.912, "retrained": 1.0}


@pytest.mark.parametrize(
    ("change", "end", "agrees"), [(0.0, 50, True), (0.3, 50, False), (0.0, 30, None)]
)
def test_fig5_judges_levels_on_the_papers_stream_alone(change, end, agrees):
    order = {**AS_PRINTED, "uls": AS_PRINTED["uls"] + change}
    assert (
        verdict("cvpr2014-fig5", _stretch(order, 3, (3, 20, end)), "The paper keeps these shares")
        is agrees
    )


@pytest.mark.parametrize(("end", "agrees"), [(50, True), (30, None)])
def test_fig5_judges_savings_on_the_papers_stream_alone(end, agrees):
    assert (
        verdict(
            "cvpr2014-fig5", _stretch(ORDER, 3, (3, 20, end)), "In the paper, IGT trains 25 times"
        )
        is agrees
    )


def test_fig5_explains_what_differs_by_streams_with_fewer_samples():
    usual = _stretch({**AS_PRINTED, "uls": 0.6}, 3, (3, 20, 50))
    fewer = [{**row, "n_train": 50, "relative": 0.25} for row in usual]
    findings = find("cvpr2014-fig5").judge(Table([*usual, *fewer]))
    assert len(findings) == len(find("cvpr2014-fig5").judge(usual))
    (levels,) = [f for f in findings if f.claim.startswith("The paper keeps")]
    assert levels.agrees is False
    assert "with 50 samples per class of features 25.0 / 25.0 / 25.0 / 25.0" in levels.reason
    assert "with all of features 60.0 / 80.7 / 88.1 / 91.2" in levels.reason


def test_baselines_with_fewer_samples_are_compared_with_their_own_strategies():
    place = {"data": "features", "n_classes": 5, "seed": 0}
    rows = [
        {**place, "strategy": "retrained", "accuracy": 0.8},
        {**place, "strategy": "retrained", "n_train": 50, "accuracy": 0.5},
        {**place, "strategy": "igt", "n_train": 50, "accuracy": 0.4},
        {**place, "strategy": "igt", "accuracy": 0.4},
    ]
    assert [row["relative"] for row in relative_to_baseline(Table(rows))] == [1.0, 1.0, 0.8, 0.5]


@pytest.mark.parametrize(("end", "drawn"), [(50, True), (30, False)])
def test_fig5_draws_the_papers_marks_only_where_they_were_measured(end, drawn):
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    find("cvpr2014-fig5").draw(figure, _stretch(ORDER, 3, (3, 20, end)))
    assert ("RUST, paper" in figure.axes[0].get_legend_handles_labels()[1]) is drawn


def _subsets(accuracies, distances=(10.0, 20.0, 40.0)):
    rows = zip(("logarithm", "square root", "a fifth"), accuracies, distances, strict=True)
    return seeded(
        {"data": "features", "subset": s, "n_classes": 100, "accuracy": a, "comparisons": d}
        for s, a, d in rows
    )


@pytest.mark.parametrize(
    ("accuracies", "agrees"),
    [
        ((0.4, 0.5, 0.55), True),
        ((0.4, 0.42, 0.55), False),
        # Both below the logarithm: a share of a loss is no gain.
        ((0.5, 0.4, 0.45), None),
        ((0.5, 0.45, 0.4), None),
    ],
)
def test_fig3_sees_a_trade_off_only_where_there_is_something_to_gain(accuracies, agrees):
    assert (
        verdict("cvpr2014-fig3", _subsets(accuracies), "The paper calls the square root") is agrees
    )


@pytest.mark.parametrize(("most", "agrees"), [(40.0, True), (25.0, False)])
def test_fig3_sees_whether_a_share_takes_much_longer(most, agrees):
    table = _subsets((0.4, 0.5, 0.6), (10.0, 20.0, most))
    assert verdict("cvpr2014-fig3", table, "In the paper, a fifth of the classes") is agrees
    assert verdict("cvpr2014-fig3", table, "In the paper, nodes with a fifth") is True


def _leaves(whole, rust):
    return seeded(
        {"data": "features", "strategy": strategy, "min_samples_leaf": n, "n_classes": 50}
        | {"accuracy": 0.6 - change * i, "comparisons": 50.0 - 5 * i}
        for strategy, change in (("retrained", whole), ("rust", rust))
        for i, n in enumerate((2, 5, 10, 20, 50))
    )


@pytest.mark.parametrize(
    ("change", "agrees"),
    [
        ((0.02, 0.02), [True, True]),
        ((0.02, 0.03), [True, False]),
        ((-0.02, 0.01), [False, True]),
    ],
)
def test_fig4_compares_the_influence_on_rust_with_that_on_the_forest(change, agrees):
    findings = find("cvpr2014-fig4").judge(_leaves(*change))
    assert [finding.agrees for finding in findings] == agrees


def _shares(rtst, rust, igt=0.5):
    whole = {"data": "features", "n_classes": 50}
    rows = [{**whole, "strategy": "retrained", "accuracy": 1.0, "seconds": 60.0}]
    rows.append({**whole, "strategy": "igt", "accuracy": igt, "seconds": 1.0})
    for strategy, end, seconds in (("rtst", rtst, 20.0), ("rust", rust, 10.0)):
        rows += [
            {**whole, "strategy": strategy, "share": share, "seconds": 1 + seconds * share}
            | {"accuracy": 0.5 + (end - 0.5) * share}
            for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        ]
    return relative_to_baseline(seeded(rows, noise=0.0))


@pytest.mark.parametrize(
    ("table", "agrees"),
    [
        (_shares(0.99, 0.9), [True, True, True, True]),
        (_shares(0.9, 0.8), [True, True, False, True]),
        (_shares(0.99, 0.999), [True, True, False, True]),
        (_shares(0.99, 0.4), [True, False, True, True]),
        (_shares(0.99, 0.9, igt=0.4), [False, True, True, True]),
    ],
)
def test_fig6_judges_both_ends_of_the_shares(table, agrees):
    assert [f.agrees for f in find("cvpr2014-fig6").judge(table)] == agrees


def _orders(spread, n_orders):
    return Table(
        {"data": "features", "strategy": "rust", "initial": n, "seed": s, "n_classes": 50}
        | {"relative": 0.8 + spread * (s % 2), "comparisons": 10.0}
        | {"n_distances": 7.0, "seconds": 5.0 + s}
        for n in (3, 5)
        for s in range(n_orders)
    )


@pytest.mark.parametrize(
    ("spread", "n_orders", "agrees"),
    [(0.05, 10, True), (0.15, 10, None), (0.6, 10, False), (0.0, 1, None)],
)
def test_fig8_judges_a_deviation_that_several_orders_make(spread, n_orders, agrees):
    (finding,) = find("cvpr2014-fig8").judge(_orders(spread, n_orders))
    assert finding.agrees is agrees


def _chunks(five, whole, seconds=5.0):
    costs = {1: 10.0, 5: seconds, 10: 3.0, 40: 1.0}
    gains = {1: 0.0, 5: five, 10: (five + whole) / 2, 40: whole}
    table = seeded(
        {"data": "features", "strategy": "rust", "chunk": c, "n_classes": 50}
        | {"accuracy": 0.8 + gains[c], "seconds": costs[c]}
        for c in costs
    )
    return Table({**row, "relative": row["accuracy"]} for row in table)


@pytest.mark.parametrize(
    ("table", "agrees"),
    [
        (_chunks(0.01, 0.1), [True, True]),
        (_chunks(0.09, 0.1), [False, True]),
        (_chunks(0.01, -0.1), [False, True]),
        (_chunks(0.01, 0.1, seconds=12.0), [True, False]),
    ],
)
def test_fig9_judges_the_gain_of_large_chunks_and_the_time_of_small_ones(table, agrees):
    assert [f.agrees for f in find("cvpr2014-fig9").judge(table)] == agrees


def _panel_b(metric=0.4, igt=30.0):
    seconds = {"uls": 1.0, "igt": igt, "rust": 100.0, "rtst": 200.0}
    return seeded(
        {
            "panel": "b",
            "data": "features",
            "initial": 10,
            "method": method,
            "n_classes": n,
            "accuracy": accuracy,
            "comparisons": accuracy,
            "seconds": seconds.get(method, 1.0),
        }
        for method, accuracy in {**ORDER, "met": metric, "met_low_rank": 0.3}.items()
        for n in (10, 100)
    )


@pytest.mark.parametrize(("metric", "agrees"), [(0.4, True), (0.55, False)])
def test_fig10_sees_whether_a_metric_of_few_classes_falls_below_the_forests(metric, agrees):
    findings = find("cvpr2014-fig10").judge(_panel_b(metric))
    (finding,) = [f for f in findings if "in all dimensions" in f.here]
    assert finding.agrees is agrees


@pytest.mark.parametrize(("igt", "agrees"), [(30.0, True), (2.0, False)])
def test_fig10_sees_whether_leaves_alone_are_by_far_the_fastest(igt, agrees):
    assert verdict("cvpr2014-fig10", _panel_b(igt=igt), "In the paper ULS is by far") is agrees


def test_fig10_explains_the_ratio_of_training_times_by_streams_from_fewer_classes():
    few = seeded(
        {"panel": "times", "data": "features", "initial": 2, "method": method, "n_classes": 100}
        | {"accuracy": 0.5, "seconds": seconds, "n_distances": 4 * seconds}
        for method, seconds in (("uls", 1.0), ("igt", 12.0))
    )
    rows = [{"n_distances": row["seconds"], **row} for row in [*_panel_b(igt=2.0), *few]]
    findings = find("cvpr2014-fig10").judge(Table(rows))
    (far,) = [f for f in findings if "by far" in f.claim]
    assert far.agrees is False
    assert "12.0 in time and 12.0 in distances from 2 to 100 on features" in far.reason
    assert "2.0 in time and 2.0 in distances from 10 to 100" in far.reason


@pytest.mark.parametrize(
    ("ncm", "met", "leads", "comparable"), [(0.5, 0.7, True, True), (0.65, 0.6, False, False)]
)
def test_fig10_derives_leads_and_likeness_from_their_bounds(ncm, met, leads, comparable):
    table = seeded(
        {"panel": "a", "data": "features", "method": m, "n_classes": 50, "accuracy": a}
        for m, a in {"ncmf": 0.7, "ncm": ncm, "rf": 0.5, "met": met, "knn": 0.6, "svm": 0.6}.items()
    )
    findings = find("cvpr2014-fig10").judge(table)
    assert [finding.agrees for finding in findings] == [leads, comparable, True]


@pytest.mark.parametrize(
    ("many", "agrees"), [(0.92, [True, True]), (0.99, [True, False]), (0.85, [False, True])]
)
def test_fig7_sees_whether_more_initial_classes_gain_a_little(many, agrees):
    table = Table(
        {"data": "features", "strategy": "rust", "initial": n, "n_classes": 50, "seed": s}
        | {"relative": relative + 0.001 * s}
        for n, relative in {3: 0.88, 5: 0.89, 10: 0.9, 20: many}.items()
        for s in SEEDS
    )
    assert [f.agrees for f in find("cvpr2014-fig7").judge(table)] == agrees
    shorter = Table({**row, "n_classes": 40} for row in table)
    assert find("cvpr2014-fig7").judge(shorter)[0].agrees is None


def test_published_numbers_are_the_papers():
    published = Table(find("cvpr2014-fig5").published).where(data="words", n_classes=50)
    relative = {s: published.mean("relative", strategy=s) for s in ("uls", "igt", "rust", "rtst")}
    assert relative == {"uls": 0.267, "igt": 0.807, "rust": 0.881, "rtst": 0.912}
    assert published.mean("accuracy") == 0.349
    initial = Table(find("cvpr2014-fig7").published).where(data="features")
    assert [initial.mean("relative", initial=n) for n in (3, 20)] == [0.881, 0.927]


def test_accuracies_are_relative_to_the_baseline_of_the_same_seed_and_classes():
    place = {"data": "features", "n_classes": 5}
    rows = [
        {**place, "strategy": "retrained", "seed": 0, "accuracy": 0.8},
        {**place, "strategy": "retrained", "seed": 1, "accuracy": 0.5},
        {**place, "strategy": "igt", "seed": 1, "accuracy": 0.4},
    ]
    assert [row["relative"] for row in relative_to_baseline(Table(rows))] == [1.0, 1.0, 0.8]


def test_an_order_is_judged_seed_by_seed():
    rows = [
        {"method": method, "seed": seed, "accuracy": 0.1 * seed + gained}
        for seed in SEEDS
        for method, gained in (("a", 0.0), ("b", 0.01))
    ]
    found = compare_values(Table(rows), "accuracy", "method", "a", "b")
    assert found.mean == pytest.approx(0.01)
    assert found.noise == pytest.approx(0.0, abs=1e-12)
    assert is_increasing(Table(rows), "accuracy", "method", ["a", "b"]).agrees is True
    assert is_increasing(Table(rows), "accuracy", "method", ["b", "a"]).agrees is False


def test_points_are_the_first_round_ones_and_the_last():
    assert points(10, 100, 30) == [10, 30, 60, 90, 100]
    assert points(3, 3, 10) == [3]
