"""Fig. 4: how many samples a leaf has at least, for a forest trained at once and for RUST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import FEW_SEEDS_NOISE, combined
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import ANYTHING, gain, plus_minus
from evergrow.research.papers.cvpr2014.curves import STYLES, legend_above, panels, plot_curve
from evergrow.research.papers.cvpr2014.data import (
    DATA_NAMES,
    NOTES,
    SOURCES,
    data_names,
    initials,
    last_class,
)
from evergrow.research.papers.cvpr2014.growing import BASELINE, baseline_run, measure_strategy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("data", "strategy", "min_samples_leaf", "seed", "n_classes")
INITIAL = 3
END, QUICK_END = 50, 20
LEAVES = (2, 5, 10, 20, 50)
# Points of accuracy between the best and the worst that count as a limited influence.
LIMITED = 10


def runs(lab: Lab) -> list[Run]:
    """One run per data set, seed, strategy and smallest leaf."""
    found: list[Run] = []
    for name in data_names(lab, "features"):
        end = last_class(lab, name, lab.scaled(END, QUICK_END))
        (initial,) = initials(lab, name, [INITIAL], end)
        for seed in lab.seeds():
            for n_samples in LEAVES:
                baseline = baseline_run(name, seed, [end])
                setting = {
                    "min_samples_leaf": n_samples,
                    "parameters": {"min_samples_leaf": n_samples},
                }
                found.append({**baseline, **setting})
                found.append({**baseline, **setting, "strategy": "rust", "initial": initial})
    return found


def measure(lab: Lab, run: Run) -> list[Row]:
    """A forest trained at once on all classes, or grown to them from three."""
    return measure_strategy(lab, run, KEYS)


def draw(figure: Figure, table: Table) -> None:
    """Accuracy and test time over the smallest leaf."""
    ((accuracy, comparisons),) = panels(figure, 1, 2)
    for strategy in table.values("strategy"):
        chosen = table.where(strategy=strategy)
        curve = chosen.curve("min_samples_leaf", "accuracy")
        plot_curve(accuracy, curve, STYLES[strategy], scale=100)
        plot_curve(comparisons, chosen.curve("min_samples_leaf", "comparisons"), STYLES[strategy])
    accuracy.set(title="accuracy", ylabel="%")
    comparisons.set(title="test time", ylabel="distances per tree\nand test image")
    for axes in (accuracy, comparisons):
        axes.set(xlabel="samples in a leaf, at least", xscale="log")
        axes.set_xticks(LEAVES, [str(n) for n in LEAVES])
        axes.minorticks_off()
    legend_above(figure, accuracy)


def judge(table: Table) -> list[Finding]:
    """Small leaves are more accurate and slower; for RUST they matter little."""
    found: list[Finding] = []
    for data in table.values("data"):
        chosen = table.where(data=data)
        where = f"On {DATA_NAMES[data]}, {max(chosen.values('n_classes'))} classes"
        found += [_small_leaves(chosen.where(strategy=BASELINE), where)]
        found += [_limited(chosen.where(strategy="rust"), where)]
    return found


def _shown(table: Table, column: str, scale: float) -> str:
    return ", ".join(
        f"{plus_minus(table, column, scale=scale, min_samples_leaf=n)} with {n}" for n in LEAVES
    )


def _small_leaves(table: Table, where: str) -> Finding:
    smallest, largest = LEAVES[0], LEAVES[-1]
    noises = {"accuracy": FEW_SEEDS_NOISE, "comparisons": ANYTHING}
    verdicts = [
        gain(table, column, "min_samples_leaf", largest, smallest, few_seeds_noise=noise).verdict
        for column, noise in noises.items()
    ]
    return Finding(
        "In the paper smaller leaves make forests more accurate and slower to test.",
        f"{where} the forest trained at once has {_shown(table, 'accuracy', 100)} samples (%), and "
        f"{_shown(table, 'comparisons', 1)} distances.",
        combined(verdicts),
    )


def _limited(table: Table, where: str) -> Finding:
    means = {n: table.mean("accuracy", min_samples_leaf=n) for n in LEAVES}
    worst, best = (find(means, key=lambda n: means[n]) for find in (min, max))
    spread = gain(table, "accuracy", "min_samples_leaf", worst, best)
    return Finding(
        f"In the paper the influence on RUST is limited as well; {LIMITED} points from best to "
        "worst count as that.",
        f"{where}, {INITIAL} initial, RUST has {_shown(table, 'accuracy', 100)} samples (%).",
        spread.below(LIMITED / 100),
    )


EXPERIMENT = Experiment(
    name="cvpr2014-fig4",
    title="Fig. 4 of Ristin et al. 2014: samples in a leaf",
    shows="Accuracy and test time by the least samples of a leaf, trained at once and with RUST.",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=("accuracy", "newest", "comparisons", "n_distances"),
    timed=("seconds",),
    size=(7.5, 3.0),
    notes=(*NOTES, "On features only: RUST on visual words takes nearly four times as long."),
)
