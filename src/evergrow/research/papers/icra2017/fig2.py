"""Fig. 2 of Camoriano 2017: how much to recode, on the new class and on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evergrow.research.experiments.contrasts import combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.icra2017 import imbalance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
RECODINGS = tuple(round(0.1 * i, 1) for i in range(11))
DRAWN = RECODINGS[::2]
# Accuracy on the known classes that counts as kept.
KEPT = 0.005

SOURCES = {"cifar100": imbalance.SOURCES["cifar100"]}


def _runs(lab: Lab) -> list[dict[str, Any]]:
    return [{"data": lab.names[0], "seed": seed} for seed in lab.seeds(quick=2)]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    data, block = lab.dataset(run["data"]), imbalance.block_of(lab, run["data"])
    # Another new class in each repetition.
    label = imbalance.new_class(data, block, 3 * run["seed"])
    trial = imbalance.trial_of(data, block, label, run["seed"])
    rows: list[Row] = []
    for count, model in imbalance.learning(trial, COUNTS, run["seed"]):
        for recoding in RECODINGS:
            model.set_params(recoding=recoding)
            where = {"data": data.name, "recoding": recoding, "n_new": count}
            rows.append({**where, "seed": run["seed"], **imbalance.accuracies(model, trial)})
    return rows


def _draw(figure: Figure, table: Table) -> None:
    from matplotlib import colormaps

    panels = figure.subplots(1, 2)
    columns = {"new_class": "accuracy, new class, %", "others": "accuracy, known classes, %"}
    for axes, (column, label) in zip(panels, columns.items(), strict=True):
        for recoding in DRAWN:
            curve = table.where(recoding=recoding).curve("n_new", column)
            # The brightest colours of the scale are too pale for lines on white.
            colour = colormaps["viridis"](0.9 * recoding)
            mean, deviation = 100 * curve.mean, 100 * curve.deviation
            axes.plot(curve.x, mean, "o-", color=colour, label=f"{recoding:.1f}")
            low, high = mean - deviation, mean + deviation
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.08, linewidth=0)
        counts = sorted(table.values("n_new"))
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.minorticks_off()
        axes.set_xlabel("examples of the new class")
        axes.set_ylabel(label)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", title="recoding")


def _judge(table: Table) -> list[Finding]:
    few = Table(row for row in table if row["n_new"] <= 10)
    new, others = (
        np.array([few.mean(column, recoding=r) for r in RECODINGS])
        for column in ("new_class", "others")
    )
    kept = np.flatnonzero(others >= others[0] - KEPT)[-1]
    without, whole, best = ({"recoding": RECODINGS[place]} for place in (0, -1, kept))
    risen = contrast(few, "new_class", whole, without)
    fallen = contrast(few, "others", without, whole)
    helped = contrast(few, "new_class", best, without)
    return [
        Finding(
            "The paper finds that accuracy on the new class grows with recoding; a step of 0.1 "
            f"may lose {100 * KEPT:.1f} points.",
            f"Here, up to 10 examples, it goes from {100 * new[0]:.1f} % without to "
            f"{100 * new[-1]:.1f} % with full recoding, never down by more than "
            f"{100 * max(0.0, -np.diff(new).min()):.1f} points between steps of 0.1.",
            combined([risen.verdict, bool(np.diff(new).min() > -KEPT)]),
        ),
        Finding(
            "The paper finds that accuracy on the known classes falls with recoding.",
            f"Here from {100 * others[0]:.1f} % to {100 * others[-1]:.1f} %.",
            fallen.verdict,
        ),
        Finding(
            "The paper finds a recoding that keeps the known classes and helps the new one.",
            f"Here {RECODINGS[kept]:.1f} costs the known classes at most half a point and gives "
            f"{100 * new[kept]:.1f} % on the new one.",
            helped.verdict if kept > 0 else False,
        ),
    ]


EXPERIMENT = Experiment(
    name="icra2017-fig2",
    title="Camoriano 2017, fig. 2: how much to recode",
    shows="accuracy on the new class and on the known ones over its examples, by recoding",
    sources=SOURCES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "recoding", "n_new", "seed"),
    exact=("new_class", "others", "total"),
    size=(9.0, 3.4),
    notes=(
        "The paper shows iCubWorld28, which is not at hand: here 28 classes of CIFAR-100 as "
        "features of a network stand for its 28 objects, each repetition with another new class; "
        "without that file, and in quick runs, a generated mixture.",
        imbalance.PENALTY_NOTE,
    ),
)
