"""Table 3: every method with fine labels of 10, 20 and 50 % of the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.experiments.contrasts import by_data, combined, contrast
from evergrow.experiments.cvpr2015.comparing import compare, methods, printed, relative_to
from evergrow.experiments.cvpr2015.contenders import METHODS, PAPERS_METHODS
from evergrow.experiments.cvpr2015.dots import draw_methods
from evergrow.experiments.cvpr2015.orders import above_baseline, best_is, with_hierarchy
from evergrow.experiments.cvpr2015.sources import (
    CHANCE_NOTE,
    DATA_NOTE,
    SIZE_NOTE,
    settings,
    sources,
)
from evergrow.experiments.experiment import Experiment, Finding, Run
from evergrow.experiments.lab import Lab
from evergrow.experiments.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

SHARES = (0.1, 0.2, 0.5)

PRINTED = {
    "fine-only": (12.04, 14.35, 16.96),
    "stacked": (12.92, 15.07, 17.56),
    "joint": (12.59, 14.89, 17.14),
    "nn": (13.99, 15.48, 17.93),
    "hierarchical": (14.16, 16.15, 18.35),
    "nn-h": (14.71, 16.37, 18.46),
}
PUBLISHED = relative_to(
    printed(PRINTED, [{"fine": share} for share in SHARES]), {"method": "fine-only"}, ["fine"]
)


def _runs(lab: Lab) -> list[Run]:
    return [*settings(lab, fine=SHARES)]


def _measure(lab: Lab, run: Run) -> list[Row]:
    entries = methods((*METHODS, "full"))
    rows = compare(lab, run, entries, fine=run["fine"])
    return [*relative_to(rows, {"method": "fine-only"}, ["fine"])]


def _draw(figure: Figure, table: Table) -> None:
    draw_methods(
        figure,
        table,
        {"paper": Table(PUBLISHED)},
        group="fine",
        groups={share: f"{share:.0%} fine labels" for share in SHARES},
        ylabel="accuracy / fine only",
    )


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data(
            "Coarse labels always help, and most where fine ones are few: NN-H gains 22 % over the "
            "baseline with a tenth of them and 9 % with half.",
            table,
            _gains,
        ),
        *by_data(
            "NN-H is the best of the paper's methods at every share.",
            table,
            lambda mine: best_is("nn-h", mine, "fine"),
        ),
        *by_data(
            "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
            "those that do not (stacked, J).",
            table,
            lambda mine: with_hierarchy(mine, "fine"),
        ),
        *by_data(
            "Every method is above the baseline at every share.",
            table,
            lambda mine: above_baseline(mine, "fine", PAPERS_METHODS[1:]),
        ),
    ]


def _gains(table: Table) -> tuple[str, bool | None]:
    few, many = SHARES[0], SHARES[-1]
    gains = [100 * (table.mean("relative", method="nn-h", fine=s) - 1) for s in (few, many)]
    more = contrast(table.where(method="nn-h"), "relative", {"fine": few}, {"fine": many})
    # A loss that is smaller with few fine labels is no gain.
    above = [
        contrast(table.where(fine=s), "accuracy", {"method": "nn-h"}, {"method": "fine-only"})
        for s in (few, many)
    ]
    verdict = combined(each.verdict for each in (more, *above))
    return f"{gains[0]:+.0f} % and {gains[1]:+.0f} %", verdict


EXPERIMENT = Experiment(
    name="cvpr2015-table3",
    title="Few fine labels (CVPR 2015, table 3)",
    shows="Every method with fine labels of 10, 20 and 50 % of the samples, half of all coarse.",
    sources=sources("features", "words", "birds"),
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "fine", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    timed=("seconds",),
    published=tuple(PUBLISHED),
    size=(12.0, 3.8),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        'Ridge-H, which guesses fine labels by ridge regression, is ours; "all fine" is a '
        "forest that is told the fine label of every sample.",
    ),
)
