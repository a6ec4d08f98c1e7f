"""Table 3: every method with fine labels of 10, 20 and 50 % of the samples."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners
from evergrow.research.papers.cvpr2015.data import make_experiment, notes, sources, usual_seeds
from evergrow.research.papers.cvpr2015.share_sweep import (
    FINE_MEANS,
    SHARES,
    ShareSweep,
    why_not_best,
)

SWEEP = ShareSweep(
    column="fine",
    said="fine labels",
    names=(*learners.METHODS, "full"),
    percentages={
        "fine-only": (12.04, 14.35, 16.96),
        "stacked": (12.92, 15.07, 17.56),
        "joint": (12.59, 14.89, 17.14),
        "nn": (13.99, 15.48, 17.93),
        "hierarchical": (14.16, 16.15, 18.35),
        "nn-h": (14.71, 16.37, 18.46),
    },
    further={
        "words": ("fine-only", "nn", "hierarchical", "nn-h"),
        "birds": ("fine-only", "joint"),
        "features": ("fine-only", "stacked"),
    },
    n_seeds=20,
)


def _gains(table: ex.Table) -> ex.Seen:
    few, many = SHARES[0], SHARES[-1]
    gains = [100 * (table.mean("relative", method="nn-h", fine=s) - 1) for s in (few, many)]
    more = ex.compare_means(table.where(method="nn-h"), "relative", {"fine": few}, {"fine": many})
    # A loss that is smaller with few fine labels is not a gain.
    above = [
        ex.compare_means(
            table.where(fine=s), "accuracy", {"method": "nn-h"}, {"method": "fine-only"}
        )
        for s in (few, many)
    ]
    verdict = ex.combine_verdicts(each.verdict for each in (more, *above))
    return f"{gains[0]:+.0f} % and {gains[1]:+.0f} %", verdict


def _why_no_gain(table: ex.Table) -> str:
    gains = {
        name: claims.format_differences(
            table, {"method": name}, {"method": "fine-only"}, "fine", SHARES
        )
        for name in ("nn-h", "ridge-h")
    }
    return (
        f"It depends on the guesses: NN-H gains {gains['nn-h']} points, ridge-H with better "
        f"guesses {gains['ridge-h']}."
    )


def _why_not_hierarchy(table: ex.Table) -> str:
    gains = "; ".join(
        f"{claims.label(name)} "
        + claims.format_differences(
            usual_seeds(table), {"method": name}, {"method": "fine-only"}, "fine", SHARES
        )
        for name in learners.PAPERS_METHODS[1:]
    )
    return f"Compared with the baseline the methods have, at the three shares: {gains} points."


def _why_below(table: ex.Table) -> str:
    j, fine = (
        claims.format_differences(table, {"method": name}, {"method": "fine-only"}, "fine", SHARES)
        for name in ("joint", evaluation.checked("joint", FINE_MEANS))
    )
    return (
        "It depends on the means of coarse classes, which J's nodes compare with too. At the three "
        f"shares J has {j} points compared with the baseline, and {fine} where nodes compare with "
        "means of fine classes only."
    )


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "Coarse labels always help, and most where fine ones are few: NN-H gains more over the "
        "baseline with a tenth of them than with half.",
        evaluation.on_main_rows(_gains),
        printed="22 % with a tenth, 9 % with half",
        reason=claims.named(_why_no_gain),
    ),
    ex.Claim(
        "NN-H is the best of the paper's methods at every share.",
        evaluation.on_main_rows(lambda mine: claims.judge_best("nn-h", mine, "fine")),
        printed="14.71, 16.37, 18.46 % against 14.16, 16.15, 18.35 of H",
        reason=claims.named(why_not_best("fine")),
    ),
    ex.Claim(
        "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
        "those that do not (stacked, J).",
        evaluation.on_main_rows(lambda mine: claims.judge_hierarchy(mine, "fine")),
        printed="13.99 to 14.71 % against 12.59 and 12.92 with a tenth",
        reason=claims.named(_why_not_hierarchy),
    ),
    ex.Claim(
        "Every method is above the baseline at every share.",
        evaluation.on_main_rows(
            lambda mine: claims.judge_gain(mine, "fine", learners.PAPERS_METHODS[1:])
        ),
        printed="the least gain is J's, 17.14 against 16.96 %",
        reason=claims.named(_why_below),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-table3",
    title="Few fine labels (CVPR 2015, table 3)",
    shows="Every method with fine labels of 10, 20 and 50 % of the samples, half of all coarse.",
    sources=sources("features", "words", "birds"),
    runs=SWEEP.runs,
    measure=SWEEP.measure,
    draw=SWEEP.draw,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "fine", "check", "further", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    published=SWEEP.published,
    size=(12.0, 3.8),
    notes=(
        *notes("features", "words", "birds"),
        'Ridge-H, which guesses fine labels by ridge regression, is ours; "all fine" is a '
        "forest that gets the fine label of every sample.",
    ),
)
