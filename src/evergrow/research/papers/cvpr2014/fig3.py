"""Fig. 3: how many classes' means a node compares with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import contrast_of
from evergrow.research.experiments.drawing import BLUE, GREEN, RED
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import gain, increasing, plus_minus
from evergrow.research.papers.cvpr2014.curves import Style, legend_above, panels, plot_curve
from evergrow.research.papers.cvpr2014.data import (
    DATA_NAMES,
    NOTES,
    SOURCES,
    data_names,
    last_class,
)
from evergrow.research.papers.cvpr2014.growing import baseline_run, follow_run, points, retrained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("data", "subset", "seed", "n_classes")
EVERY = 20
FIRST = 10
END, QUICK_END = 100, 50
# From the fewest means to the most, as parameters of the forest.
SUBSETS = {"logarithm": "log2", "square root": "sqrt", "a fifth": 0.2}
STYLES = {
    "logarithm": Style("logarithm of the classes", GREEN, "D"),
    "square root": Style("square root", BLUE, "^"),
    "a fifth": Style("0.2 of the classes", RED, "s"),
}


def runs(lab: Lab) -> list[Run]:
    """One run per data set, seed and size of the subset."""
    found: list[Run] = []
    for name in data_names(lab, *SOURCES):
        end = last_class(lab, name, lab.scaled(END, QUICK_END))
        found += [
            {**baseline_run(name, seed, points(min(FIRST, end), end, EVERY)), "subset": subset}
            for seed in lab.seeds()
            for subset in SUBSETS
        ]
    return found


def measure(lab: Lab, run: Run) -> list[Row]:
    """Train a forest from scratch at every number of classes."""
    learner = retrained(lab, run["seed"], n_centroids=SUBSETS[run["subset"]])
    told = {key: run[key] for key in KEYS if key in run}
    return [
        {
            **told,
            "n_classes": m.n_classes,
            "accuracy": m.accuracy,
            "comparisons": m.comparisons,
            "seconds": m.last_seconds,
        }
        for m in follow_run(lab, run, learner)
    ]


def draw(figure: Figure, table: Table) -> None:
    """Accuracy and test time over the classes, one row per data set."""
    datas = table.values("data")
    grid = panels(figure, len(datas), 2)
    for (accuracy, comparisons), data in zip(grid, datas, strict=True):
        for subset, style in STYLES.items():
            chosen = table.where(data=data, subset=subset)
            plot_curve(accuracy, chosen.curve("n_classes", "accuracy"), style, scale=100)
            plot_curve(comparisons, chosen.curve("n_classes", "comparisons"), style)
        accuracy.set(title=f"a) {DATA_NAMES[data]}", ylabel="accuracy, %")
        comparisons.set(title=f"b) {DATA_NAMES[data]}", ylabel="distances per tree\nand test image")
        comparisons.set_ylim(0, None)
    for axes in grid[-1]:
        axes.set_xlabel("classes")
    legend_above(figure, grid[0][0])


def judge(table: Table) -> list[Finding]:
    """More means are more accurate and slower; the square root lies well between."""
    found: list[Finding] = []
    for data in table.values("data"):
        chosen = table.where(data=data)
        end = max(chosen.values("n_classes"))
        last = chosen.where(n_classes=end)
        where = f"On {DATA_NAMES[data]}, {end} classes"
        found += [_accuracy(last, where), _test_time(last, where), _trade_off(last, where)]
    return found


def _accuracy(last: Table, where: str) -> Finding:
    shown = ", ".join(f"{s} {plus_minus(last, 'accuracy', subset=s)}" for s in SUBSETS)
    return Finding(
        "In the paper a share of all classes is more accurate than their square root, and that "
        "more than their logarithm.",
        f"{where}: {shown} %.",
        increasing(last, "accuracy", "subset", [*SUBSETS]),
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
    whole = gain(last, "accuracy", "subset", few, many)
    if whole.verdict is not True or not needed[few] < needed[middle] < needed[many]:
        here = (
            f"{where} a fifth is {100 * whole.difference:+.1f} points from the logarithm, and the "
            f"distances are {', '.join(f'{n:.0f}' for n in needed.values())}: nothing to trade."
        )
        return Finding(claim, here, None)
    paid = (needed[middle] - needed[few]) / (needed[many] - needed[few])
    part = gain(last, "accuracy", "subset", few, middle)
    by_seed = (last.where(seed=seed) for seed in last.values("seed"))
    beyond = contrast_of(
        [
            gain(one, "accuracy", "subset", few, middle).difference
            - paid * gain(one, "accuracy", "subset", few, many).difference
            for one in by_seed
        ]
    )
    return Finding(
        claim,
        f"{where} it gains {100 * part.difference / whole.difference:.0f} % of what a fifth gains "
        f"over the logarithm, for {100 * paid:.0f} % of the further distances.",
        beyond.verdict,
    )


EXPERIMENT = Experiment(
    name="cvpr2014-fig3",
    title="Fig. 3 of Ristin et al. 2014: classes per node",
    shows="Accuracy and test time of forests by the number of class means in a node.",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=("accuracy", "comparisons"),
    timed=("seconds",),
    size=(7.5, 3.0),
    notes=(*NOTES, "The logarithm is to base two; the paper does not say which it took."),
)
