"""Table 5: coarse classes of test samples, and a forest trained on coarse classes alone."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners, plots
from evergrow.research.papers.cvpr2015.data import NOTES, make_experiment, settings, sources

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


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    entries = evaluation.methods(("coarse", *learners.METHODS, "full"))
    return evaluation.relative_to(
        evaluation.compare(context, run, entries), BASELINE, ["fine"], COLUMN
    )


def draw(figure: ex.Figure, table: ex.Table) -> None:
    plots.draw_methods(
        figure,
        table,
        {"paper": ex.Table(PUBLISHED)},
        group="fine",
        groups={0.5: "here"},
        ylabel="coarse accuracy / coarse forest",
    )


def _above(table: ex.Table) -> ex.Seen:
    found = ex.compare_means(table, COLUMN, {"method": "nn-h"}, BASELINE)
    ours, theirs = (ex.format_percent(table, COLUMN, method=name) for name in ("nn-h", "coarse"))
    return f"{ours} beside {theirs}", found.verdict


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "NN-H, which knows the fine class of half of the samples, names coarse classes better "
        "than a forest that learnt all samples' coarse classes alone (2 % better).",
        _above,
    ),
    ex.Claim(
        "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
        "those that do not (stacked, J).",
        lambda mine: claims.judge_hierarchy(mine, "fine", column=COLUMN),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-table5",
    title="Accuracy on coarse classes (CVPR 2015, table 5)",
    shows="The coarse class as every method names it, beside a forest of coarse classes alone.",
    sources=sources("features", "words", "birds"),
    measure=measure,
    draw=draw,
    runs=partial(settings, fine=[0.5]),
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "fine", "method", "seed"),
    exact=(COLUMN, "relative", "accuracy", "comparisons"),
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
