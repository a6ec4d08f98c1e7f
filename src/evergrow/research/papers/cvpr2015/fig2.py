"""Fig. 2: what the number of subsets, of assignments and the cost of comparisons do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import by_data, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.comparing import compare
from evergrow.research.papers.cvpr2015.sources import (
    CHANCE_NOTE,
    DATA_NOTE,
    SIZE_NOTE,
    settings,
    sources,
)
from evergrow.research.papers.cvpr2015.trading import draw_trade, traded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

# Each leaves the others as they are below.
SWEEPS: dict[str, tuple[float, ...]] = {
    "n_subsets": (10, 100, 500, 1000),
    "n_assignments": (10, 50, 100),
    "cost_weight": (0.1, 0.01, 0.005, 0.001, 0.0),
}
OTHERWISE: dict[str, Any] = {"n_subsets": 100, "n_assignments": 50, "cost_weight": 0.01}
# What counts as no difference: half a point is what the paper's curve of assignments spans.
HARDLY = 0.005
TITLES = {
    "n_subsets": "subsets per node",
    "n_assignments": "assignments per subset",
    "cost_weight": "cost of a comparison",
}


def _runs(lab: Lab) -> list[Run]:
    return [*settings(lab, parameter=SWEEPS)]


def _measure(lab: Lab, run: Run) -> list[Row]:
    name = run["parameter"]
    forests = [
        ("regularised", {"value": value}, OTHERWISE | {name: value}) for value in SWEEPS[name]
    ]
    return [*compare(lab, run, forests, fine=1.0, coarse=0.0)]


def _draw(figure: Figure, table: Table) -> None:
    names = table.values("data")
    grid = figure.subplots(len(names), len(SWEEPS), squeeze=False)
    for row, data in zip(grid, names, strict=True):
        for panel, (parameter, title) in zip(row, TITLES.items(), strict=True):
            draw_trade(panel, table.where(data=data, parameter=parameter), "value", colour=0)
            panel.set_title(f"{title}: {data}")
        row[0].set_ylabel("accuracy, %")
    for panel in grid[-1]:
        panel.set_xlabel("comparisons per tree and sample")


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data("More subsets raise the accuracy.", table, _subsets_raise),
        *by_data("More subsets save comparisons.", table, _subsets_save),
        *by_data(
            "The number of assignments hardly matters (at most half a point between 10 and 100).",
            table,
            _assignments,
        ),
        *by_data(
            "A high cost saves comparisons and loses accuracy.",
            table,
            _high_cost,
        ),
        *by_data(
            "A cost of 0.001 saves comparisons and loses no accuracy (at most half a point).",
            table,
            _small_cost,
        ),
    ]


def _subsets_raise(table: Table) -> tuple[str, bool | None]:
    mine = table.where(parameter="n_subsets")
    found = contrast(mine, "accuracy", {"value": 1000}, {"value": 10})
    return traded(mine, "value", (10, 1000)), found.verdict


def _subsets_save(table: Table) -> tuple[str, bool | None]:
    mine = table.where(parameter="n_subsets")
    few, many = (mine.mean("comparisons", value=value) for value in (10, 1000))
    return f"{many:.0f} comparisons with 1000 and {few:.0f} with 10", many < few


def _assignments(table: Table) -> tuple[str, bool | None]:
    mine = table.where(parameter="n_assignments")
    found = contrast(mine, "accuracy", {"value": 100}, {"value": 10})
    return traded(mine, "value", (10, 100)), found.within(HARDLY)


def _high_cost(table: Table) -> tuple[str, bool | None]:
    mine = table.where(parameter="cost_weight")
    lost = contrast(mine, "accuracy", {"value": 0.0}, {"value": 0.1})
    saved = mine.mean("comparisons", value=0.1) < mine.mean("comparisons", value=0.0)
    return traded(mine, "value", (0.1, 0.0)), combined((lost.verdict, saved))


def _small_cost(table: Table) -> tuple[str, bool | None]:
    mine = table.where(parameter="cost_weight")
    lost = contrast(mine, "accuracy", {"value": 0.0}, {"value": 0.001})
    saved = mine.mean("comparisons", value=0.001) < mine.mean("comparisons", value=0.0)
    return traded(mine, "value", (0.001, 0.0)), combined((lost.below(HARDLY), saved))


EXPERIMENT = Experiment(
    name="cvpr2015-fig2",
    title="Parameters of the regularised forest (CVPR 2015, fig. 2)",
    shows="Accuracy over comparisons as subsets, assignments and the cost of comparisons change.",
    sources=sources("features", "words"),
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "parameter", "value", "seed"),
    exact=("accuracy", "comparisons"),
    timed=("seconds",),
    size=(10.0, 5.6),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        "While one parameter changes the others are 100 subsets (1000 in the paper), 50 "
        "assignments and a cost of 0.01. All samples have fine labels. The paper prints no "
        "numbers for its curves.",
    ),
)
