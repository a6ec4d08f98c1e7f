"""Table 3: every method with fine labels of 10, 20 and 50 % of the samples."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, learners
from evergrow.research.papers.cvpr2015.data import NOTES, make_experiment, sources
from evergrow.research.papers.cvpr2015.share_sweep import SHARES, ShareSweep

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


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "Coarse labels always help, and most where fine ones are few: NN-H gains 22 % over the "
        "baseline with a tenth of them and 9 % with half.",
        _gains,
    ),
    ex.Claim(
        "NN-H is the best of the paper's methods at every share.",
        lambda mine: claims.judge_best("nn-h", mine, "fine"),
    ),
    ex.Claim(
        "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
        "those that do not (stacked, J).",
        lambda mine: claims.judge_hierarchy(mine, "fine"),
    ),
    ex.Claim(
        "Every method is above the baseline at every share.",
        lambda mine: claims.judge_gain(mine, "fine", learners.PAPERS_METHODS[1:]),
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
    keys=("data", "fine", "method", "seed"),
    exact=("accuracy", "relative", "coarse_accuracy", "comparisons"),
    published=SWEEP.published,
    size=(12.0, 3.8),
    notes=(
        *NOTES,
        'Ridge-H, which guesses fine labels by ridge regression, is ours; "all fine" is a '
        "forest that is told the fine label of every sample.",
    ),
)
