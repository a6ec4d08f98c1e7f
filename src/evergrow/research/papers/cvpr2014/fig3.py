"""Fig. 3: the number of class means that a node compares a sample with."""

from __future__ import annotations

import math
from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "subset", "seed", "n_classes")
EVERY = 20
FIRST = 10
END, QUICK_END = 100, 50
# Ratio of test times that counts as much longer.
MUCH = 1.5
# Parameters of the forest, from the fewest class means to the most.
SUBSETS = {"logarithm": "log2", "square root": "sqrt", "a fifth": 0.2}
STYLES = {
    "logarithm": plots.Style("logarithm of the classes", ex.GREEN, "D"),
    "square root": plots.Style("square root", ex.BLUE, "^"),
    "a fifth": plots.Style("0.2 of the classes", ex.RED, "s"),
}


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run per data set, seed and size of the subset."""
    found: list[ex.Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        at = protocol.points(min(FIRST, end), end, EVERY)
        found += [
            {**protocol.baseline_run(name, seed, at), "subset": subset}
            for seed in context.seeds()
            for subset in SUBSETS
        ]
    return found


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    """Train a forest from scratch at every number of classes."""
    learner = protocol.retrained(context, run["seed"], n_centroids=SUBSETS[run["subset"]])
    measured = protocol.follow_run(context, run, learner)
    rows = protocol.rows_of(run, KEYS, measured)
    # The time of training from scratch is that of the last step.
    return [{**row, "seconds": m.last_seconds} for row, m in zip(rows, measured, strict=True)]


def _draw_row(row: list[ex.Axes], table: ex.Table, data: str) -> None:
    """Accuracy and test time over the classes."""
    accuracy, comparisons = row
    for subset, style in STYLES.items():
        chosen = table.where(subset=subset)
        plots.plot_columns(row, chosen, "n_classes", ("accuracy", "comparisons"), style)
    accuracy.set(title=f"a) {data}", ylabel="accuracy, %")
    comparisons.set(title=f"b) {data}", ylabel=plots.DISTANCES)
    comparisons.set_ylim(0, None)


def _accuracy(last: ex.Table, where: str) -> ex.Finding:
    shown = ", ".join(f"{s} {ex.format_mean(last, 'accuracy', subset=s)}" for s in SUBSETS)
    return ex.Finding(
        "In the paper, nodes with a fifth of all classes are more accurate than nodes with the "
        "square root of their number, and these more than nodes with the logarithm.",
        f"{where}: {shown} %.",
        ex.is_increasing(last, "accuracy", "subset", [*SUBSETS]),
    )


def _test_time(last: ex.Table, where: str) -> ex.Finding:
    needed = {s: last.mean("comparisons", subset=s) for s in SUBSETS}
    shown = ", ".join(f"{s} {n:.0f}" for s, n in needed.items())
    return ex.Finding(
        "In the paper, a fifth of the classes takes much longer at test time than the square "
        "root (at least 1.5 times).",
        f"{where} the distances per tree and image are: {shown}.",
        ex.compare_ratios(
            last, "comparisons", {"subset": "a fifth"}, {"subset": "square root"}
        ).above(math.log(MUCH)),
    )


def _trade_off(last: ex.Table, where: str) -> ex.Finding:
    claim = (
        "The paper calls the square root a good trade-off. From the logarithm to a fifth, it "
        "must bring a larger share of the gain in accuracy than of the additional distances."
    )
    few, middle, many = SUBSETS
    needed = {s: last.mean("comparisons", subset=s) for s in SUBSETS}
    whole = ex.compare_values(last, "accuracy", "subset", few, many)
    if not whole.verdict.agrees or not needed[few] < needed[middle] < needed[many]:
        here = (
            f"{where} a fifth is {100 * whole.mean:+.1f} points from the logarithm, and the "
            f"distances are {', '.join(f'{n:.0f}' for n in needed.values())}: nothing to trade."
        )
        return ex.Finding(claim, here, None)
    paid = (needed[middle] - needed[few]) / (needed[many] - needed[few])
    part = ex.compare_values(last, "accuracy", "subset", few, middle)

    def beyond(one: ex.Table) -> float:
        gains = [one.mean("accuracy", subset=s) - one.mean("accuracy", subset=few) for s in SUBSETS]
        costs = [
            one.mean("comparisons", subset=s) - one.mean("comparisons", subset=few) for s in SUBSETS
        ]
        return gains[1] - costs[1] / costs[2] * gains[2]

    return ex.Finding(
        claim,
        f"{where} it gains {100 * part.mean / whole.mean:.0f} % of what a fifth gains "
        f"over the logarithm, for {100 * paid:.0f} % of the further distances.",
        ex.compare_each_seed(
            last, beyond, name="gain beyond the share of the further distances"
        ).verdict,
    )


EXPERIMENT = protocol.make_experiment(
    name="cvpr2014-fig3",
    title="Fig. 3 of Ristin et al. 2014: classes per node",
    shows="Accuracy and test time of forests by the number of class means in a node.",
    runs=runs,
    measure=measure,
    draw=partial(plots.draw_rows, draw_row=_draw_row, n_columns=2),
    judge=partial(protocol.judge_last_rows, judges=(_accuracy, _test_time, _trade_off)),
    keys=KEYS,
    exact=("accuracy", "comparisons"),
    size=(7.5, 3.0),
    notes=(*protocol.NOTES, "The logarithm is to base two; the paper does not say which it took."),
)
