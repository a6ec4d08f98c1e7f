"""Table 4: half of the samples with fine labels, and 10, 20 or 50 % with coarse ones only."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners
from evergrow.research.papers.cvpr2015.data import make_experiment, notes, sources
from evergrow.research.papers.cvpr2015.share_sweep import (
    FINE_MEANS,
    SHARES,
    ShareSweep,
    why_not_best,
)

SWEEP = ShareSweep(
    column="coarse",
    said="coarse only",
    names=learners.METHODS,
    percentages={
        "fine-only": (16.96, 16.96, 16.96),
        "stacked": (17.18, 17.21, 17.56),
        "joint": (16.89, 16.80, 17.14),
        "nn": (17.27, 17.51, 17.93),
        "hierarchical": (17.59, 17.90, 18.35),
        "nn-h": (17.87, 18.13, 18.46),
    },
    further={"words": ("joint", "hierarchical", "nn-h"), "features": ("nn",)},
    n_seeds=15,
)


def _gains(table: ex.Table) -> ex.Seen:
    few, many = {"coarse": SHARES[0]}, {"coarse": SHARES[-1]}
    # The baseline does not use coarse labels.
    found = {
        name: ex.compare_means(table.where(method=name), "accuracy", many, few)
        for name in learners.PAPERS_METHODS[1:]
    }
    text = ", ".join(f"{claims.label(name)} {100 * each.mean:+.1f}" for name, each in found.items())
    return f"{text} points", ex.combine_verdicts(each.verdict for each in found.values())


def _why_no_gains(table: ex.Table) -> str:
    few, many = {"coarse": SHARES[0]}, {"coarse": SHARES[-1]}
    parts = ", ".join(
        f"{said} {ex.compare_means(table.where(method=name), 'accuracy', many, few).interval}"
        for said, name in (
            ("J", "joint"),
            ("J with means of fine classes only", evaluation.checked("joint", FINE_MEANS)),
            ("NN", "nn"),
            ("ridge-H", "ridge-h"),
        )
    )
    return (
        "It depends on how the coarse labels are used: from 10 to 50 % the gains are, with means "
        f"of coarse classes or without and with guesses of other kinds: {parts}."
    )


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "All methods gain from more samples with coarse labels, from 10 to 50 %.",
        evaluation.on_main_rows(_gains),
        printed="from 0.25 points (J) to 0.76 (H)",
        reason=claims.named(_why_no_gains),
    ),
    ex.Claim(
        "NN-H improves the baseline most, however many samples are coarse.",
        evaluation.on_main_rows(lambda mine: claims.judge_best("nn-h", mine, "coarse")),
        printed="17.87, 18.13, 18.46 % against 17.59, 17.90, 18.35 of H",
        reason=claims.named(why_not_best("coarse")),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-table4",
    title="Few coarse labels (CVPR 2015, table 4)",
    shows="Every method with fine labels of half of the samples and coarse ones of 10, 20, 50 %.",
    sources=sources("features", "words"),
    runs=SWEEP.runs,
    measure=SWEEP.measure,
    draw=SWEEP.draw,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "coarse", "check", "further", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    published=SWEEP.published,
    size=(9.0, 3.8),
    notes=(
        *notes("features", "words"),
        "Ridge-H, which guesses fine labels by ridge regression, is our addition.",
    ),
)
