"""Table 2: half of the samples with fine labels; no metric, and one learnt on either part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners, plots
from evergrow.research.papers.cvpr2015.data import (
    FURTHER,
    further_seeds,
    make_experiment,
    notes,
    settings,
    sources,
    usual_seeds,
)

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


# What the claims depend on: the number of dimensions of the metric.
LOW = "low rank"
LOW_METHODS = ("class means", "fine-only", "nn", "hierarchical", "nn-h", "full")
FEW_METHODS = ("fine-only", "nn", "hierarchical", "nn-h", "full")


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    learnt = [metric for metric in METRICS if metric != "none"]
    return [
        *settings(context, metric=METRICS),
        *further_seeds(context, 15, ["features"], metric=METRICS),
        *settings(context, context.seeds(quick=1), metric=learnt, check=[LOW]),
    ]


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    if evaluation.CHECK in run:
        entries: list[evaluation.Entry] = [
            (name, {"method": evaluation.checked(name, LOW)}, {}) for name in LOW_METHODS
        ]
        return evaluation.compare(
            context, run, entries, metric=run["metric"], rank=evaluation.LOW_RANK
        )
    names = FEW_METHODS if FURTHER in run else (*OTHERS, *learners.METHODS, "full")
    return evaluation.compare(context, run, evaluation.methods(names), metric=run["metric"])


def _metrics(table: ex.Table) -> ex.Seen:
    mine = table.where(method="fine-only")
    none, coarse, fine = (ex.format_percent(mine, "accuracy", metric=name) for name in METRICS)
    text = f"{none} without, {coarse} of the coarse part, {fine} of the fine part"
    return text, ex.is_increasing(mine, "accuracy", "metric", [*METRICS])


def _nearly(table: ex.Table) -> ex.Seen:
    mine = table.where(metric="fine")
    found = ex.compare_ratios(mine, "accuracy", {"method": "nn-h"}, {"method": "full"})
    share = mine.mean("accuracy", method="nn-h") / mine.mean("accuracy", method="full")
    usual = usual_seeds(mine)
    ours = usual.mean("accuracy", method="ridge-h") / usual.mean("accuracy", method="full")
    return f"NN-H has {share:.1%} of it (ridge-H, ours, {ours:.1%})", found.above(math.log(NEARLY))


def _by_rank(table: ex.Table, one: str, other: str, metrics: Sequence[str]) -> str:
    """Differences between two methods by the metric, of full and of low rank, in points."""
    parts = []
    for metric in metrics:
        mine = table.where(metric=metric)
        full, low = (
            ex.compare_means(
                mine, "accuracy", {"method": one + said}, {"method": other + said}
            ).mean
            for said in ("", f", {LOW}")
        )
        shown = f"{100 * full:+.1f}"
        if metric != "none":
            shown += f" (of low rank {100 * low:+.1f})"
        parts.append(f"{shown} with {METRICS[metric]}")
    return ", ".join(parts)


_RANKS = (
    f"It depends on the number of dimensions of the metric: as many as the features, 512 at most, "
    f"or {evaluation.LOW_RANK} (low rank)."
)
_LEARNT = ("coarse", "fine")


def _why_metrics(table: ex.Table) -> str:
    base = {"method": "fine-only", "metric": "none"}
    parts = [
        f"{METRICS[metric]} {100 * found[0]:+.1f} points, of low rank {100 * found[1]:+.1f}"
        for metric in _LEARNT
        for found in [
            [
                ex.compare_means(
                    table, "accuracy", {"method": f"fine-only{said}", "metric": metric}, base
                ).mean
                for said in ("", f", {LOW}")
            ]
        ]
    ]
    return f"{_RANKS} The baseline gains by the {' and by the '.join(parts)}."


def _why_gains(table: ex.Table) -> str:
    return (
        f"{_RANKS} Compared with the baseline NN has "
        f"{_by_rank(table, 'nn', 'fine-only', [*METRICS])}; NN-H has "
        f"{_by_rank(table, 'nn-h', 'fine-only', [*METRICS])}."
    )


def _why_best(table: ex.Table) -> str:
    better = "; ".join(
        f"{claims.format_gain(table, 'ridge-h', 'hierarchical', metric=metric)} with {said}"
        for metric, said in METRICS.items()
    )
    return (
        f"{_RANKS} Compared with NCM NN-H has "
        f"{_by_rank(table, 'nn-h', 'class means', _LEARNT)}. It depends on the guesses too: "
        "ridge-H, whose guesses are right more often ([guesses](cvpr2015-guesses.md)), has "
        f"{better} compared with H."
    )


def _why_not_nearly(table: ex.Table) -> str:
    mine = usual_seeds(table).where(metric="fine")

    def share(name: str, said: str = "") -> str:
        part, whole = (mine.mean("accuracy", method=each + said) for each in (name, "full"))
        return f"{part / whole:.1%}"

    none = usual_seeds(table).where(metric="none")
    plain = none.mean("accuracy", method="nn-h") / none.mean("accuracy", method="full")
    return (
        f"It depends on the guesses and on the metric that they are made through: NN-H has "
        f"{plain:.1%} without a metric, {share('nn-h')} with the metric of the fine part, and "
        f"{share('nn-h', f', {LOW}')} with one of {evaluation.LOW_RANK} dimensions; ridge-H "
        f"{share('ridge-h')}."
    )


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "A metric learnt on the coarse part helps the baseline a little, one learnt on the "
        "fine part more.",
        evaluation.on_main_rows(_metrics),
        printed="16.96, 17.43, 18.54 %",
        reason=claims.named(_why_metrics),
    ),
    ex.Claim(
        "NN, H and NN-H are above the baseline, whatever the metric.",
        evaluation.on_main_rows(
            lambda mine: claims.judge_gain(mine, "metric", ("nn", "hierarchical", "nn-h"))
        ),
        printed="19.29, 19.20, 19.55 % against 18.54 with the metric of the fine part",
        reason=claims.named(_why_gains),
    ),
    ex.Claim(
        "NN-H is the best with every metric.",
        evaluation.on_main_rows(
            lambda mine: claims.judge_best(
                "nn-h", mine, "metric", among=(*OTHERS, *learners.PAPERS_METHODS)
            )
        ),
        printed="18.46, 18.48, 19.55 % against 18.35, 18.26, 19.29 of the next",
        reason=claims.named(_why_best),
    ),
    ex.Claim(
        "With the metric of the fine part NN-H almost reaches a forest that gets every fine "
        "label (our reading: at least 98 %, of one that sees through the same metric).",
        evaluation.on_main_rows(_nearly),
        printed="19.55 against 19.79 %, 99 %",
        reason=claims.named(_why_not_nearly),
    ),
)


def draw(figure: ex.Figure, table: ex.Table) -> None:
    plots.draw_metrics(
        figure,
        usual_seeds(evaluation.main_rows(table)),
        published=PUBLISHED,
        baseline="fine-only",
        metrics=METRICS,
        ylabel="accuracy / fine only without metric",
    )


EXPERIMENT = make_experiment(
    name="cvpr2015-table2",
    title="Metrics learnt on coarse and on fine labels (CVPR 2015, table 2)",
    shows="Every method without a metric, and with a metric learnt on the coarse part (the samples "
    "with coarse labels only) or on the fine part (the samples with fine labels).",
    sources=sources("features", "words"),
    measure=measure,
    runs=runs,
    draw=draw,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "metric", "check", "further", "method", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    published=tuple(PUBLISHED),
    size=(12.0, 4.0),
    notes=(
        *notes("features", "words"),
        "NCM, 5-NN and the SVM see the samples with fine labels only, as in the paper. The SVM is "
        "one against the rest by ten epochs of stochastic steps; its penalty of 0.001 and k = 5 "
        "were not tuned, where the paper tuned both. Metrics are learnt in 15 epochs at most. "
        'Ridge-H is our addition. "All fine" is a forest that gets the fine label of every sample.',
        "The paper's 99 % compare 19.55 with 19.79 %. There the forest that gets every fine "
        "label also has a metric learnt on all of them (table 1). Here both use the metric of "
        "the fine part, so they differ only in their labels. The two shares answer different "
        "questions.",
    ),
)
