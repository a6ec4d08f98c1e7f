"""Fig. 3: the number of class means that a node compares a sample with."""

from __future__ import annotations

from evergrow.research.experiments import ExperimentContext, Finding, Row, Run, Table
from evergrow.research.experiments.plots import BLUE, GREEN, RED, Figure, add_legend
from evergrow.research.experiments.verdicts import (
    compare_seeds,
    compare_values,
    format_mean,
    is_increasing,
)
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "subset", "seed", "n_classes")
EVERY = 20
FIRST = 10
END, QUICK_END = 100, 50
# Parameters of the forest, from the fewest class means to the most.
SUBSETS = {"logarithm": "log2", "square root": "sqrt", "a fifth": 0.2}
STYLES = {
    "logarithm": plots.Style("logarithm of the classes", GREEN, "D"),
    "square root": plots.Style("square root", BLUE, "^"),
    "a fifth": plots.Style("0.2 of the classes", RED, "s"),
}


def _runs(context: ExperimentContext) -> list[Run]:
    """One run per data set, seed and size of the subset."""
    found: list[Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        at = protocol.points(min(FIRST, end), end, EVERY)
        found += [
            {**protocol.baseline_run(name, seed, at), "subset": subset}
            for seed in context.seeds()
            for subset in SUBSETS
        ]
    return found


def _measure(context: ExperimentContext, run: Run) -> list[Row]:
    """Train a forest from scratch at every number of classes."""
    learner = protocol.retrained(context, run["seed"], n_centroids=SUBSETS[run["subset"]])
    measured = protocol.follow_run(context, run, learner)
    rows = protocol.rows_of(run, KEYS, measured)
    # The time of training from scratch is that of the last step.
    return [{**row, "seconds": m.last_seconds} for row, m in zip(rows, measured, strict=True)]


def _draw(figure: Figure, table: Table) -> None:
    """Accuracy and test time over the classes, one row per data set."""
    datas = table.values("data")
    grid = plots.panels(figure, len(datas), 2)
    for row, data in zip(grid, datas, strict=True):
        accuracy, comparisons = row
        for subset, style in STYLES.items():
            chosen = table.where(data=data, subset=subset)
            plots.plot_columns(row, chosen, "n_classes", ("accuracy", "comparisons"), style)
        accuracy.set(title=f"a) {protocol.DATA_NAMES[data]}", ylabel="accuracy, %")
        comparisons.set(title=f"b) {protocol.DATA_NAMES[data]}", ylabel=plots.DISTANCES)
        comparisons.set_ylim(0, None)
    for axes in grid[-1]:
        axes.set_xlabel("classes")
    add_legend(figure, grid[0][0])


def _judge(table: Table) -> list[Finding]:
    """More means are more accurate and slower; the square root is a good trade-off."""
    found: list[Finding] = []
    for data, end, last in protocol.last_rows(table):
        where = f"On {data}, {end} classes"
        found += [_accuracy(last, where), _test_time(last, where), _trade_off(last, where)]
    return found


def _accuracy(last: Table, where: str) -> Finding:
    shown = ", ".join(f"{s} {format_mean(last, 'accuracy', subset=s)}" for s in SUBSETS)
    return Finding(
        "In the paper a share of all classes is more accurate than their square root, and that "
        "more than their logarithm.",
        f"{where}: {shown} %.",
        is_increasing(last, "accuracy", "subset", [*SUBSETS]),
    )


def _test_time(last: Table, where: str) -> Finding:
    needed = {s: last.mean("comparisons", subset=s) for s in SUBSETS}
    shown = ", ".join(f"{s} {n:.0f}" for s, n in needed.items())
    return Finding(
        "In the paper that share takes much longer at test time; half as long again counts as "
        "much.",
        f"{where} the distances per tree and image are: {shown}.",
        needed["a fifth"] >= 1.5 * needed["square root"],
    )


def _trade_off(last: Table, where: str) -> Finding:
    claim = (
        "The paper takes the square root as a good trade-off; a larger share of the gain from the "
        "logarithm to a fifth than of the further distances counts as that."
    )
    few, middle, many = SUBSETS
    needed = {s: last.mean("comparisons", subset=s) for s in SUBSETS}
    whole = compare_values(last, "accuracy", "subset", few, many)
    if whole.verdict is not True or not needed[few] < needed[middle] < needed[many]:
        here = (
            f"{where} a fifth is {100 * whole.mean:+.1f} points from the logarithm, and the "
            f"distances are {', '.join(f'{n:.0f}' for n in needed.values())}: nothing to trade."
        )
        return Finding(claim, here, None)
    paid = (needed[middle] - needed[few]) / (needed[many] - needed[few])
    part = compare_values(last, "accuracy", "subset", few, middle)
    by_seed = (last.where(seed=seed) for seed in last.values("seed"))
    beyond = compare_seeds(
        [
            compare_values(one, "accuracy", "subset", few, middle).mean
            - paid * compare_values(one, "accuracy", "subset", few, many).mean
            for one in by_seed
        ]
    )
    return Finding(
        claim,
        f"{where} it gains {100 * part.mean / whole.mean:.0f} % of what a fifth gains "
        f"over the logarithm, for {100 * paid:.0f} % of the further distances.",
        beyond.verdict,
    )


EXPERIMENT = protocol.make_experiment(
    name="cvpr2014-fig3",
    title="Fig. 3 of Ristin et al. 2014: classes per node",
    shows="Accuracy and test time of forests by the number of class means in a node.",
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=KEYS,
    exact=("accuracy", "comparisons"),
    size=(7.5, 3.0),
    notes=(*protocol.NOTES, "The logarithm is to base two; the paper does not say which it took."),
)
