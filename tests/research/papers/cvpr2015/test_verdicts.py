"""The verdicts of each table and figure on made-up numbers."""

import pytest

from evergrow.research import Table
from evergrow.research.papers.cvpr2015 import fig2, fig3, fig4, guesses, sizes, table1, table6
from evergrow.research.papers.cvpr2015.evaluation import published_rows, relative_to
from evergrow.research.papers.cvpr2015.learners import PAPERS_METHODS
from tests.research.papers.checks import check_verdicts, find

# Added to the accuracies of three seeds, which then show half a point, or not even five.
STEADY, WAVERING = (0.0, 0.001, -0.001), (0.0, 0.05, -0.05)


def repeated(rows, *, noise=STEADY, noisy=None):
    """Rows of one data set as three seeds measure them, where ``noisy`` says of a row it moves."""
    return [
        {"data": "made up", **row, "seed": seed}
        | {"accuracy": row["accuracy"] + (shift if noisy is None or noisy(row) else 0.0)}
        for row in rows
        for seed, shift in enumerate(noise)
    ]


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4", "table5"])
def test_the_papers_own_numbers_agree_with_its_claims(name):
    """Printed tables as if they were measured here, with every seed the same."""
    experiment = find(f"cvpr2015-{name}")
    rows = [
        {"data": "paper", "seed": seed, "fine": 0.5} | dict(row)
        for row in experiment.published
        if row.get("features") != table1.NETWORK
        for seed in range(3)
    ]
    full = [
        {**row, "method": "full", "accuracy": 0.1979} for row in rows if row["method"] == "nn-h"
    ]
    for finding in experiment.judge(Table([*rows, *full])):
        assert finding.agrees is not False, finding


def of_metric(**gains):
    return repeated(
        [
            {"method": method, "metric": metric, "accuracy": 0.5 + gain}
            for method in table1.METHODS
            for metric, gain in (("none", 0.0), ("all", gains.get(method, 0.05)))
        ]
    )


def test_the_claim_about_networks_is_judged_on_features_of_a_network_only():
    experiment, rows = find("cvpr2015-table1"), of_metric()
    claims = [
        {f.claim for f in experiment.judge(Table({**row, "data": data} for row in rows))}
        for data in ("words", "birds")
    ]
    (added,) = claims[1] - claims[0]
    assert added.startswith("With features of a network")


def of_shares(accuracies):
    """Accuracies of methods at a tenth, a fifth and half of the fine labels."""
    numbers = {name: accuracies.get(name, (20.0, 20.0, 20.0)) for name in PAPERS_METHODS}
    rows = published_rows(numbers, [{"fine": share} for share in (0.1, 0.2, 0.5)])
    return repeated(relative_to(rows, {"method": "fine-only"}, ["fine"]), noise=(0, 0, 0))


def nearly(share):
    return repeated(
        [
            {"method": "nn-h", "metric": "fine", "accuracy": 0.5 * share},
            {"method": "full", "metric": "fine", "accuracy": 0.5},
        ],
    )


def test_more_coarse_labels_count_by_accuracy_not_by_a_baseline_that_moved():
    experiment = find("cvpr2015-table4")
    rows = [
        {"data": "made up", "seed": seed, "method": row["method"], "coarse": row["coarse"]}
        | {"accuracy": 0.5, "relative": 1 + row["coarse"]}
        for row in experiment.published
        for seed in range(3)
    ]
    assert experiment.judge(Table(rows))[0].agrees is False


def of_features(kind, accuracies):
    return repeated(
        [
            {"method": name, "features": kind, "fine": share, "accuracy": accuracy}
            for name, accuracy in accuracies.items()
            for share in table6.SHARES
        ],
    )


def of_guesses(accuracies, scales):
    """Accuracies by the way to guess, and by the scale of stacking."""
    rows = [
        {"part": "guess", "guess": guess, "accuracy": accuracy, "right": 0.5, "guessed": 1.0}
        for guess, accuracy in zip(guesses.GUESSES, accuracies, strict=True)
    ]
    rows += [
        {"part": "scale", "scale": scale, "accuracy": accuracy}
        for scale, accuracy in zip((0.0, *guesses.SCALES), scales, strict=True)
    ]
    return repeated(rows)


def of_sizes(**accuracies):
    return repeated(
        [
            {"size": size, "method": method, "accuracy": accuracy}
            for size in sizes.SIZES
            for method, accuracy in accuracies.items()
        ]
    )


def of_sweeps(change, **more):
    """Figure 2: accuracy and comparisons by parameter and value."""
    rows = [
        {"parameter": parameter, "value": value, "accuracy": 0.5, "comparisons": 50.0}
        | change.get((parameter, value), {})
        for parameter, values in fig2.SWEEPS.items()
        for value in values
    ]
    return repeated(rows, **more)


AS_IN_FIGURE_2 = {
    ("n_subsets", 10): {"accuracy": 0.4, "comparisons": 90.0},
    ("cost_weight", 0.1): {"accuracy": 0.4, "comparisons": 20.0},
    ("cost_weight", 0.001): {"comparisons": 40.0},
}


def of_weights(joint, hierarchical, both):
    by_method = {"joint": joint, "hierarchical": hierarchical}
    rows = [
        {"method": method, "means": "fine", "weight": weight, "accuracy": accuracy}
        for method, accuracies in by_method.items()
        for weight, accuracy in zip(fig3.WEIGHTS, accuracies, strict=True)
    ]
    rows.append({"method": "hierarchical", "means": "both", "weight": 1.0, "accuracy": both})
    return repeated(rows)


def of_scales(accuracies, comparisons, **more):
    rows = [
        {"scale": scale, "accuracy": accuracy, "comparisons": cost}
        for scale, accuracy, cost in zip(fig4.SCALES, accuracies, comparisons, strict=True)
    ]
    return repeated(rows, **more)


OPPOSITE_OF_FIGURE_2 = {
    ("n_subsets", 1000): {"accuracy": 0.4, "comparisons": 90.0},
    ("n_assignments", 10): {"accuracy": 0.4},
    ("cost_weight", 0.1): {"accuracy": 0.6, "comparisons": 90.0},
    ("cost_weight", 0.001): {"accuracy": 0.4, "comparisons": 90.0},
}
HIDDEN = {("n_assignments", 10), ("cost_weight", 0.001)}
REVERSED = {"nn-h": 10.0, "hierarchical": 20.0, "fine-only": 30.0, "stacked": 40.0}
ORDER = ("class means", "nn-h", "nn", "fine-only", "hierarchical")
FISHER = {name: 0.3 + 0.05 * place for place, name in enumerate(ORDER)}
NEAR, COSTS = (0.4, 0.5, 0.6, 0.605), (10.0, 40.0, 80.0, 150.0)

CASES = {
    "table 1: the metric helps class means most": (of_metric(**{"class means": 0.2}), "..+"),
    "table 1: it helps the SVM more": (of_metric(**{"class means": 0.2, "svm": 0.3}), "..-"),
    "table 1: it helps all alike": (of_metric(), "..-"),
    "table 1: it harms a forest": (of_metric(**{"class means": 0.2, "plain": -0.05}), "..-"),
    "table 2: 99 % of full supervision": (nearly(0.99), "...+"),
    "table 2: 98 % of full supervision": (nearly(0.98), "...?"),
    "table 2: 95 % of full supervision": (nearly(0.95), "...-"),
    "table 3: the gain falls": (of_shares({"nn-h": (30.0, 27.0, 25.0)}), "+..."),
    "table 3: the gain becomes a loss": (of_shares({"nn-h": (30.0, 20.0, 15.0)}), "-..."),
    "table 3: a smaller loss is not a gain": (of_shares({"nn-h": (19.0, 15.0, 10.0)}), "-..."),
    "table 3: another order": (
        of_shares({name: [REVERSED.get(name, 15.0)] * 3 for name in PAPERS_METHODS}),
        "----",
    ),
    "table 6: as with Fisher vectors": (of_features(table6.FISHER, FISHER), "+++"),
    "table 6: the other way round": (
        of_features(table6.FISHER, {n: 0.9 - a for n, a in FISHER.items()}),
        "---",
    ),
    "table 6: a network has a claim of its own": (
        of_features(table6.NETWORK, {"fine-only": 0.5, "nn-h": 0.6}),
        "+",
    ),
    "table 6: a network without a gain": (
        of_features(table6.NETWORK, {"fine-only": 0.5, "nn-h": 0.5}),
        "-",
    ),
    "guesses: as printed": (
        of_guesses((0.14, 0.15, 0.17, 0.18, 0.2), (0.1, 0.2, 0.3, 0.2, 0.1)),
        "++++",
    ),
    "guesses: the other way round": (
        of_guesses((0.18, 0.17, 0.15, 0.14, 0.2), (0.1, 0.3, 0.2, 0.2, 0.1)),
        "----",
    ),
    "sizes: as printed": (
        of_sizes(plain=0.4, regularised=0.5, hierarchical=0.5, **{"nn-h": 0.6, "fine-only": 0.4}),
        "+++",
    ),
    "sizes: no gain": (
        of_sizes(plain=0.4, regularised=0.4, hierarchical=0.4, **{"nn-h": 0.4, "fine-only": 0.4}),
        "---",
    ),
    "fig2: as in the paper": (of_sweeps(AS_IN_FIGURE_2), "+++++"),
    "fig2: the other way round": (of_sweeps(OPPOSITE_OF_FIGURE_2), "-----"),
    "fig2: what noise hides is not no difference": (
        of_sweeps(
            AS_IN_FIGURE_2,
            noise=WAVERING,
            noisy=lambda row: (row["parameter"], row["value"]) in HIDDEN,
        ),
        "++?+?",
    ),
    "fig3: as printed": (
        of_weights((0.4, 0.5, 0.4, 0.3, 0.2), (0.4, 0.5, 0.6, 0.5, 0.4), 0.7),
        "++++",
    ),
    "fig3: the other way round": (
        of_weights((0.4, 0.5, 0.6, 0.7, 0.8), (0.7, 0.5, 0.3, 0.3, 0.3), 0.2),
        "----",
    ),
    "fig4: ten roots are within a point": (of_scales(NEAR, COSTS), "++"),
    "fig4: ten roots are not within a point": (of_scales((0.7, 0.5, 0.6, 0.65), COSTS), "--"),
    "fig4: noise hides it": (
        of_scales(NEAR, COSTS, noise=WAVERING, noisy=lambda row: row["scale"] == 10.0),
        "+?",
    ),
    "fig4: subsets of all classes": (
        of_scales((0.4, 0.5, 0.6, 0.6), (10.0, 40.0, 80.0, 80.0)),
        "+",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(case):
    experiment = find(f"cvpr2015-{case.partition(':')[0].replace(' ', '')}")
    check_verdicts(experiment, *CASES[case])


def test_rows_that_explain_a_verdict_do_not_decide_it():
    rows = of_metric(**{"class means": 0.2})
    more = [
        {**row, "check": table1.LOW, "method": f"{row['method']}, {table1.LOW}", "accuracy": 0.1}
        for row in rows
    ]
    one, other = (find("cvpr2015-table1").judge(Table(each)) for each in (rows, [*rows, *more]))
    assert [f.decision for f in one] == [f.decision for f in other]


def test_a_metric_that_does_harm_is_explained_by_one_of_low_rank():
    rows = of_metric(**{"class means": 0.2, "plain": -0.05})
    low = [
        {**row, "check": table1.LOW, "method": f"{row['method']}, {table1.LOW}", "accuracy": 0.7}
        for row in rows
        if row["metric"] == "all"
    ]
    finding = find("cvpr2015-table1").judge(Table([*rows, *low]))[-1]
    assert finding.agrees is False
    assert "NCMF -5.0" in finding.reason
    assert "NCMF +20.0" in finding.reason


def test_further_seeds_of_some_methods_leave_averages_over_methods_alone():
    rows = of_shares({"nn-h": (30.0, 27.0, 25.0)})
    more = [
        {**row, "seed": 7, "further": True, "accuracy": 0.01, "relative": 0.1}
        for row in rows
        if row["method"] == "hierarchical" and row["seed"] == 0
    ]
    one, other = (find("cvpr2015-table3").judge(Table(each)) for each in (rows, [*rows, *more]))
    assert one[2].contrast == other[2].contrast
