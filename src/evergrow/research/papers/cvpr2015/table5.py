"""Table 5: coarse classes of test samples, and a forest trained on coarse classes alone."""

from __future__ import annotations

from functools import partial

from evergrow.research.experiments import Experiment, ExperimentContext, Finding, Row, Run, Table
from evergrow.research.experiments.plots import Figure
from evergrow.research.experiments.verdicts import compare_means, findings_by_data, format_percent
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners, plots
from evergrow.research.papers.cvpr2015.data import NOTES, settings, sources

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
PUBLISHED = evaluation.relative_to(
    evaluation.published_rows(PRINTED, [{"fine": 0.5}], COLUMN), BASELINE, ["fine"], COLUMN
)


def _measure(context: ExperimentContext, run: Run) -> list[Row]:
    entries = evaluation.methods(("coarse", *learners.METHODS, "full"))
    return evaluation.relative_to(
        evaluation.compare(context, run, entries), BASELINE, ["fine"], COLUMN
    )


def _draw(figure: Figure, table: Table) -> None:
    plots.draw_methods(
        figure,
        table,
        {"paper": Table(PUBLISHED)},
        group="fine",
        groups={0.5: "here"},
        ylabel="coarse accuracy / coarse forest",
    )


def _judge(table: Table) -> list[Finding]:
    return findings_by_data(
        table,
        (
            "NN-H, which knows the fine class of half of the samples, names coarse classes better "
            "than a forest that learnt all samples' coarse classes alone (2 % better).",
            _above,
        ),
        (
            "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
            "those that do not (stacked, J).",
            lambda mine: claims.judge_hierarchy(mine, "fine", column=COLUMN),
        ),
    )


def _above(table: Table) -> tuple[str, bool | None]:
    found = compare_means(table, COLUMN, {"method": "nn-h"}, BASELINE)
    ours, theirs = (format_percent(table, COLUMN, method=name) for name in ("nn-h", "coarse"))
    return f"{ours} beside {theirs}", found.verdict


EXPERIMENT = Experiment(
    name="cvpr2015-table5",
    title="Accuracy on coarse classes (CVPR 2015, table 5)",
    shows="The coarse class as every method names it, beside a forest of coarse classes alone.",
    sources=sources("features", "words", "birds"),
    runs=partial(settings, fine=[0.5]),
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "fine", "method", "seed"),
    exact=(COLUMN, "relative", "accuracy", "comparisons"),
    timed=("seconds",),
    published=tuple(PUBLISHED),
    size=(12.0, 3.6),
    notes=(
        *NOTES,
        "The paper asks about 150 test samples of each coarse class; here accuracy is the mean "
        "over coarse classes of all test samples.",
        "Beside the paper's methods stand ridge-H, which is ours, forests that saw the fine half "
        "only, and forests that were told all fine labels.",
    ),
)
