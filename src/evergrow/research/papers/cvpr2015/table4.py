"""Table 4: half of the samples with fine labels, and 10, 20 or 50 % with coarse ones only."""

from __future__ import annotations

from evergrow.research.experiments.contrasts import by_data, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding
from evergrow.research.experiments.table import Table
from evergrow.research.papers.cvpr2015.contenders import METHODS, PAPERS_METHODS
from evergrow.research.papers.cvpr2015.orders import best_is, in_words
from evergrow.research.papers.cvpr2015.shares import SHARES, ShareSweep
from evergrow.research.papers.cvpr2015.sources import CHANCE_NOTE, DATA_NOTE, SIZE_NOTE, sources

__all__ = ["EXPERIMENT"]

SWEEP = ShareSweep(
    column="coarse",
    said="coarse only",
    names=METHODS,
    percentages={
        "fine-only": (16.96, 16.96, 16.96),
        "stacked": (17.18, 17.21, 17.56),
        "joint": (16.89, 16.80, 17.14),
        "nn": (17.27, 17.51, 17.93),
        "hierarchical": (17.59, 17.90, 18.35),
        "nn-h": (17.87, 18.13, 18.46),
    },
)


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data(
            "All methods gain from more samples with coarse labels: from 10 to 50 % J gains 0.3 "
            "points, H 0.8.",
            table,
            _gains,
        ),
        *by_data(
            "NN-H improves the baseline most, however many samples are coarse.",
            table,
            lambda mine: best_is("nn-h", mine, "coarse"),
        ),
    ]


def _gains(table: Table) -> tuple[str, bool | None]:
    few, many = {"coarse": SHARES[0]}, {"coarse": SHARES[-1]}
    # The baseline sees none of them.
    found = {
        name: contrast(table.where(method=name), "accuracy", many, few)
        for name in PAPERS_METHODS[1:]
    }
    text = ", ".join(
        f"{in_words(name)} {100 * each.difference:+.1f}" for name, each in found.items()
    )
    return f"{text} points", combined(each.verdict for each in found.values())


EXPERIMENT = Experiment(
    name="cvpr2015-table4",
    title="Few coarse labels (CVPR 2015, table 4)",
    shows="Every method with fine labels of half of the samples and coarse ones of 10, 20, 50 %.",
    sources=sources("features", "words"),
    runs=SWEEP.runs,
    measure=SWEEP.measure,
    draw=SWEEP.draw,
    judge=_judge,
    keys=("data", "coarse", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    timed=("seconds",),
    published=SWEEP.published,
    size=(9.0, 3.8),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        "Ridge-H, which guesses fine labels by ridge regression, is ours.",
    ),
)
