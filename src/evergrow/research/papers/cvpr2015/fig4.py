"""Fig. 4: larger subsets of class means at the nodes, on features seen through a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import by_data, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.comparing import compare
from evergrow.research.papers.cvpr2015.dots import panels
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

SCALES = (1.0, 5.0, 10.0, 20.0)
# A point of accuracy, as a share.
ALMOST = 0.01


def _runs(lab: Lab) -> list[Run]:
    return [*settings(lab, metric=["fine"])]


def _measure(lab: Lab, run: Run) -> list[Row]:
    forests = [("fine-only", {"scale": scale}, {"subset_scale": scale}) for scale in SCALES]
    return [*compare(lab, run, forests, metric=run["metric"])]


def _draw(figure: Figure, table: Table) -> None:
    for number, (name, panel) in enumerate(panels(figure, table).items()):
        draw_trade(panel, table.where(data=name), "scale", colour=number)
        panel.set_xlabel("comparisons per tree and sample")
        panel.set_ylabel("accuracy, %")


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data(
            "Larger subsets raise the accuracy and cost comparisons: from c = 1 to 20.",
            table,
            _larger,
        ),
        *by_data(
            "With c = 10 the accuracy is almost that of c = 20 (a point below at most), for fewer "
            "comparisons.",
            table,
            _enough,
        ),
    ]


def _larger(table: Table) -> tuple[str, bool | None]:
    found = contrast(table, "accuracy", {"scale": 20.0}, {"scale": 1.0})
    return traded(table, "scale", (1.0, 20.0)), found.verdict


def _enough(table: Table) -> tuple[str, bool | None]:
    more = contrast(table, "accuracy", {"scale": 20.0}, {"scale": 10.0})
    few, many = (table.mean("comparisons", scale=scale) for scale in (10.0, 20.0))
    text = traded(table, "scale", (10.0, 20.0))
    if few == many:
        return f"{text}: so large a subset is all classes already", None
    return text, combined((more.below(ALMOST), few < many))


EXPERIMENT = Experiment(
    name="cvpr2015-fig4",
    title="Larger subsets of class means (CVPR 2015, fig. 4)",
    shows="Accuracy over comparisons with subsets of up to 1, 5, 10, 20 roots of the classes.",
    sources=sources("birds", "features"),
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "scale", "seed"),
    exact=("accuracy", "comparisons"),
    timed=("seconds",),
    size=(8.0, 3.4),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        "The paper has Fisher vectors; here are features of a network. As there, forests see the "
        "half of the samples with fine labels through a metric learnt on it, in 15 epochs "
        "at most. Numbers at the points are c, the bound on a subset's size in roots of the "
        "number of classes; the paper prints no numbers for its curve.",
    ),
)
