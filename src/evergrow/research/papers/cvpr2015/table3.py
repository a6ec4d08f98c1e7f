"""Table 3: every method with fine labels of 10, 20 and 50 % of the samples."""

from __future__ import annotations

from evergrow.research.experiments.contrasts import by_data, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding
from evergrow.research.experiments.table import Table
from evergrow.research.papers.cvpr2015.contenders import METHODS, PAPERS_METHODS
from evergrow.research.papers.cvpr2015.orders import above_baseline, best_is, with_hierarchy
from evergrow.research.papers.cvpr2015.shares import SHARES, ShareSweep
from evergrow.research.papers.cvpr2015.sources import CHANCE_NOTE, DATA_NOTE, SIZE_NOTE, sources

__all__ = ["EXPERIMENT"]

SWEEP = ShareSweep(
    column="fine",
    said="fine labels",
    names=(*METHODS, "full"),
    percentages={
        "fine-only": (12.04, 14.35, 16.96),
        "stacked": (12.92, 15.07, 17.56),
        "joint": (12.59, 14.89, 17.14),
        "nn": (13.99, 15.48, 17.93),
        "hierarchical": (14.16, 16.15, 18.35),
        "nn-h": (14.71, 16.37, 18.46),
    },
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
    runs=SWEEP.runs,
    measure=SWEEP.measure,
    draw=SWEEP.draw,
    judge=_judge,
    keys=("data", "fine", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    timed=("seconds",),
    published=SWEEP.published,
    size=(12.0, 3.8),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        'Ridge-H, which guesses fine labels by ridge regression, is ours; "all fine" is a '
        "forest that is told the fine label of every sample.",
    ),
)
