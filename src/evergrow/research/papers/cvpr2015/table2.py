"""Table 2: half of the samples with fine labels; no metric, and one learnt on either part."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners, plots
from evergrow.research.papers.cvpr2015.data import NOTES, make_experiment, settings, sources

METRICS = {"none": "no metric", "coarse": "metric of coarse part", "fine": "metric of fine part"}
OTHERS = ("class means", "5 neighbours", "svm")

PRINTED = {
    "class means": (7.14, 14.49, 16.30),
    "5 neighbours": (9.45, 12.33, 12.58),
    "svm": (17.22, 16.24, 16.41),
    "fine-only": (16.96, 17.43, 18.54),
    "stacked": (17.56, 17.80, 18.83),
    "joint": (17.14, 17.44, 18.39),
    "nn": (17.93, 18.26, 19.29),
    "hierarchical": (18.35, 17.93, 19.20),
    "nn-h": (18.46, 18.48, 19.55),
}
PUBLISHED = evaluation.published_rows(PRINTED, [{"metric": metric} for metric in METRICS])
# The paper calls 19.55 of 19.79 almost the same; at least 98 % count as that.
NEARLY = 0.98


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    entries = evaluation.methods((*OTHERS, *learners.METHODS, "full"))
    return evaluation.compare(context, run, entries, metric=run["metric"])


def _metrics(table: ex.Table) -> ex.Seen:
    mine = table.where(method="fine-only")
    none, coarse, fine = (ex.format_percent(mine, "accuracy", metric=name) for name in METRICS)
    text = f"{none} without, {coarse} of the coarse part, {fine} of the fine part"
    return text, ex.is_increasing(mine, "accuracy", "metric", [*METRICS])


def _nearly(table: ex.Table) -> ex.Seen:
    mine = table.where(metric="fine")
    beyond = ex.compare_each_seed(
        mine,
        lambda one: (
            one.mean("accuracy", method="nn-h") - NEARLY * one.mean("accuracy", method="full")
        ),
    )
    share = mine.mean("accuracy", method="nn-h") / mine.mean("accuracy", method="full")
    ours = mine.mean("accuracy", method="ridge-h") / mine.mean("accuracy", method="full")
    return f"NN-H has {share:.1%} of it (ridge-H, ours, {ours:.1%})", beyond.verdict


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "A metric learnt on the coarse part helps the baseline a little, one learnt on the "
        "fine part more.",
        _metrics,
    ),
    ex.Claim(
        "NN, H and NN-H are above the baseline, whatever the metric.",
        lambda mine: claims.judge_gain(mine, "metric", ("nn", "hierarchical", "nn-h")),
    ),
    ex.Claim(
        "NN-H is the best with every metric.",
        lambda mine: claims.judge_best(
            "nn-h", mine, "metric", among=(*OTHERS, *learners.PAPERS_METHODS)
        ),
    ),
    ex.Claim(
        "With the metric of the fine part NN-H almost reaches a forest that is told every "
        "fine label (99 %; here at least 98 %, of one that sees through the same metric).",
        _nearly,
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-table2",
    title="Metrics learnt on coarse and on fine labels (CVPR 2015, table 2)",
    shows="Every method without a metric and with one learnt on the coarse or the fine part.",
    sources=sources("features", "words"),
    measure=measure,
    runs=partial(settings, metric=METRICS),
    draw=partial(
        plots.draw_metrics,
        published=PUBLISHED,
        baseline="fine-only",
        metrics=METRICS,
        ylabel="accuracy / fine only without metric",
    ),
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "metric", "method", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    published=tuple(PUBLISHED),
    size=(12.0, 4.0),
    notes=(
        *NOTES,
        "NCM, 5-NN and the SVM see the samples with fine labels only, as in the paper. The SVM is "
        "one against the rest by ten epochs of stochastic steps; its penalty of 0.001 and k = 5 "
        "were not tuned, where the paper tuned both. Metrics are learnt in 15 epochs at most. "
        'Ridge-H is ours; "all fine" is a forest that is told the fine label of every sample.',
        "The paper's 99 % are 19.55 beside 19.79, where the forest that is told every fine label "
        "has a metric learnt on all of them too (table 1). Here both see through the metric of the "
        "fine part, so that they differ by labels alone and the share is that of another question.",
    ),
)
