"""Fig. 3 of Camoriano 2017: every class in turn is the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import Contrast, combined, contrast_of
from evergrow.research.experiments.drawing import BLUE, RED
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.icra2017 import imbalance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

COUNTS = (1, 5, 10, 50, 100, 500)
LOOKS = {"naive": (RED, "s"), "recoded": (BLUE, "o")}
COLUMNS = {"new_class": "new class", "others": "other classes", "total": "all classes"}
# What counts as much better on the new class, and as comparable on the others.
MUCH, COMPARABLE = 0.05, 0.02


def _runs(lab: Lab) -> list[dict[str, Any]]:
    runs = []
    for name in lab.names:
        n_classes = min(imbalance.block_of(lab, name).n_classes, len(lab.dataset(name).classes))
        # Every class, or a few of them in a quick run.
        step = 1 if not lab.quick else max(1, n_classes // 5)
        runs += [
            {"data": name, "place": place, "seed": seed}
            for seed in lab.seeds(full=1)
            for place in range(0, n_classes, step)
        ]
    return runs


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    data, block = lab.dataset(run["data"]), imbalance.block_of(lab, run["data"])
    label = imbalance.new_class(data, block, run["place"])
    trial = imbalance.trial_of(data, block, label, run["seed"])
    rows: list[Row] = []
    for count, model in imbalance.learning(trial, COUNTS, run["seed"]):
        for method, recoding in (("naive", 0.0), ("recoded", block.recoding)):
            model.set_params(recoding=recoding)
            where = {"data": data.name, "new": str(label), "n_new": count, "method": method}
            rows.append({**where, "seed": run["seed"], **imbalance.accuracies(model, trial)})
    return rows


def _draw(figure: Figure, table: Table) -> None:
    names = table.values("data")
    rows = figure.subplots(len(COLUMNS), len(names), squeeze=False, sharex="col")
    for name, panels in zip(names, rows.T, strict=True):
        for axes, column in zip(panels, COLUMNS, strict=True):
            for method, (colour, marker) in LOOKS.items():
                curve = table.where(data=name, method=method).curve("n_new", column)
                mean, deviation = 100 * curve.mean, 100 * curve.deviation
                axes.plot(curve.x, mean, color=colour, marker=marker, label=method)
                low, high = mean - deviation, mean + deviation
                axes.fill_between(curve.x, low, high, color=colour, alpha=0.12, linewidth=0)
            counts = sorted(table.where(data=name).values("n_new"))
            axes.set_xscale("log")
            axes.set_xticks(counts, [str(n) for n in counts])
            axes.minorticks_off()
        panels[0].set_title(name)
        panels[-1].set_xlabel("examples of the new class")
    for axes, what in zip(rows[:, 0], COLUMNS.values(), strict=True):
        axes.set_ylabel(f"{what},\naccuracy %")
    handles, labels = rows[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)


def _judge(table: Table) -> list[Finding]:
    findings = []
    for name in table.values("data"):
        few = Table(row for row in table.where(data=name) if row["n_new"] <= 10)
        gains = {column: _gain(few, column) for column in COLUMNS}
        new, others, total = (100 * gains[column].difference for column in COLUMNS)
        findings.append(
            Finding(
                f"{name}: the paper finds recoding much better on the new class, comparable on the "
                "others and better over all; more than "
                f"{100 * MUCH:.0f} points count as much, a loss of {100 * COMPARABLE:.0f} as "
                "comparable.",
                f"Here, up to 10 examples, it changes the new class by {new:+.1f} "
                f"points, the others by {others:+.1f} and all by {total:+.1f}.",
                combined(
                    [
                        gains["new_class"].above(MUCH),
                        gains["others"].above(-COMPARABLE),
                        gains["total"].verdict,
                    ]
                ),
            )
        )
    return findings


def _gain(few: Table, column: str) -> Contrast:
    """What recoding changes, each class in turn being the new one."""
    return contrast_of(
        [
            few.mean(column, method="recoded", new=label)
            - few.mean(column, method="naive", new=label)
            for label in few.values("new")
        ]
    )


EXPERIMENT = Experiment(
    name="icra2017-fig3",
    title="Camoriano 2017, fig. 3: every class in turn is the new one",
    shows="accuracy on the new class, the others and all, naive and recoded, mean over classes",
    sources=imbalance.SOURCES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "new", "n_new", "method", "seed"),
    exact=("new_class", "others", "total"),
    size=(9.0, 6.2),
    notes=(
        *imbalance.STAND_INS,
        imbalance.PENALTY_NOTE,
        "Bands are one standard deviation over the classes. In quick runs about five classes of "
        "each data set are the new one in turn.",
    ),
)
