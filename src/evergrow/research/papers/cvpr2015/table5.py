"""Table 5: the coarse class of test samples, beside a forest that learnt coarse classes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import by_data, contrast, shown
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.comparing import compare, methods, printed, relative_to
from evergrow.research.papers.cvpr2015.contenders import METHODS
from evergrow.research.papers.cvpr2015.dots import draw_methods
from evergrow.research.papers.cvpr2015.orders import with_hierarchy
from evergrow.research.papers.cvpr2015.sources import (
    CHANCE_NOTE,
    DATA_NOTE,
    SIZE_NOTE,
    settings,
    sources,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

PRINTED = {
    "coarse": (24.54,),
    "stacked": (22.35,),
    "joint": (21.99,),
    "nn": (24.19,),
    "hierarchical": (23.95,),
    "nn-h": (25.15,),
}
COLUMN = "coarse_accuracy"
BASELINE = {"method": "coarse"}
PUBLISHED = relative_to(printed(PRINTED, [{"fine": 0.5}], COLUMN), BASELINE, ["fine"], COLUMN)


def _runs(lab: Lab) -> list[Run]:
    return [*settings(lab, fine=[0.5])]


def _measure(lab: Lab, run: Run) -> list[Row]:
    entries = methods(("coarse", *METHODS, "full"))
    return [*relative_to(compare(lab, run, entries), BASELINE, ["fine"], COLUMN)]


def _draw(figure: Figure, table: Table) -> None:
    draw_methods(
        figure,
        table,
        {"paper": Table(PUBLISHED)},
        group="fine",
        groups={0.5: "here"},
        ylabel="coarse accuracy / coarse forest",
    )


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data(
            "NN-H, which knows the fine class of half of the samples, names coarse classes better "
            "than a forest that learnt all samples' coarse classes alone (2 % better).",
            table,
            _above,
        ),
        *by_data(
            "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
            "those that do not (stacked, J).",
            table,
            lambda mine: with_hierarchy(mine, "fine", column=COLUMN),
        ),
    ]


def _above(table: Table) -> tuple[str, bool | None]:
    found = contrast(table, COLUMN, {"method": "nn-h"}, BASELINE)
    ours, theirs = (shown(table, COLUMN, method=name) for name in ("nn-h", "coarse"))
    return f"{ours} beside {theirs}", found.verdict


EXPERIMENT = Experiment(
    name="cvpr2015-table5",
    title="Accuracy on coarse classes (CVPR 2015, table 5)",
    shows="The coarse class as every method names it, beside a forest of coarse classes alone.",
    sources=sources("features", "words", "birds"),
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "fine", "method", "seed"),
    exact=(COLUMN, "relative", "accuracy", "comparisons"),
    timed=("seconds",),
    published=tuple(PUBLISHED),
    size=(12.0, 3.6),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        "The paper asks about 150 test samples of each coarse class; here accuracy is the mean "
        "over coarse classes of all test samples.",
        "Beside the paper's methods stand ridge-H, which is ours, forests that saw the fine half "
        "only, and forests that were told all fine labels.",
    ),
)
