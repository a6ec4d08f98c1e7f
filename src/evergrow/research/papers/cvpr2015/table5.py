"""Table 5: coarse classes of test samples, and a forest trained on coarse classes alone."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners, plots
from evergrow.research.papers.cvpr2015.data import make_experiment, notes, settings, sources

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


# What the claim depends on: samples of each class.
FEWER, ALL = 50, 500
_SAMPLES = ("coarse", "nn-h", "full")


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    checks = settings(context, context.seeds(quick=1), fine=[0.5], check=[FEWER, ALL])
    # All samples of birds are used already, and built-in data are small.
    ours = [run for run in checks if run["n_train"] is not None]
    return [
        *settings(context, fine=[0.5]),
        *({**run, "n_train": run[evaluation.CHECK]} for run in ours),
    ]


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    if evaluation.CHECK in run:
        said = f"{run[evaluation.CHECK]} samples"
        checked: list[evaluation.Entry] = [
            (name, {"method": evaluation.checked(name, said)}, {}) for name in _SAMPLES
        ]
        return evaluation.compare(context, run, checked)
    entries = evaluation.methods(("coarse", *learners.METHODS, "full"))
    return evaluation.relative_to(
        evaluation.compare(context, run, entries), BASELINE, ["fine"], COLUMN
    )


def draw(figure: ex.Figure, table: ex.Table) -> None:
    plots.draw_methods(
        figure,
        evaluation.main_rows(table),
        {"paper": ex.Table(PUBLISHED)},
        group="fine",
        groups={0.5: "here"},
        ylabel="coarse accuracy / coarse forest",
    )


def _above(table: ex.Table) -> ex.Seen:
    found = ex.compare_means(table, COLUMN, {"method": "nn-h"}, BASELINE)
    ours, theirs = (ex.format_percent(table, COLUMN, method=name) for name in ("nn-h", "coarse"))
    return f"{ours} against {theirs}", found.verdict


def _why_not_above(table: ex.Table) -> str:
    def against(name: str, said: str = "") -> str:
        found = ex.compare_means(
            table, COLUMN, {"method": name + said}, {"method": f"coarse{said}"}
        )
        return found.interval

    parts = [
        f"{against('nn-h', f', {n} samples')} with {n} samples of each class"
        for n in (FEWER, ALL)
        if len(evaluation.check_rows(table, n))
    ]
    samples = f" Compared with the coarse forest NN-H has {'; '.join(parts)}." if parts else ""
    return (
        "It depends on how much fine labels say about coarse classes: compared with the coarse "
        f"forest one that gets every fine label has {against('full')}, ridge-H "
        f"{against('ridge-h')}.{samples}"
    )


def _why_not_hierarchy(table: ex.Table) -> str:
    gains = ", ".join(
        f"{claims.label(name)} {100 * found.mean:+.1f}"
        for name in learners.PAPERS_METHODS[1:]
        for found in [ex.compare_means(table, COLUMN, {"method": name}, BASELINE)]
    )
    return f"Compared with the coarse forest the methods have {gains} points."


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "NN-H, which knows the fine class of half of the samples, names coarse classes better "
        "than a forest that learnt all samples' coarse classes alone.",
        lambda mine: _above(evaluation.main_rows(mine)),
        printed="25.15 against 24.54 %",
        reason=claims.named(_why_not_above),
    ),
    ex.Claim(
        "Methods that use which fine classes belong to a coarse one (NN, H, NN-H) are above "
        "those that do not (stacked, J).",
        lambda mine: claims.judge_hierarchy(evaluation.main_rows(mine), "fine", column=COLUMN),
        printed="23.95 to 25.15 % against 21.99 and 22.35",
        reason=claims.named(_why_not_hierarchy),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-table5",
    title="Accuracy on coarse classes (CVPR 2015, table 5)",
    shows="Accuracy on coarse classes: every method, and a forest of coarse labels only.",
    sources=sources("features", "words", "birds"),
    measure=measure,
    draw=draw,
    runs=runs,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "fine", "check", "method", "seed"),
    exact=(COLUMN, "relative", "accuracy", "comparisons"),
    published=tuple(PUBLISHED),
    size=(12.0, 3.6),
    notes=(
        *notes("features", "words", "birds", more_seeds=False),
        "The paper asks about 150 test samples of each coarse class; here accuracy is the mean "
        "over coarse classes of all test samples.",
        "We also measure ridge-H, which is ours, forests that learnt only the samples with fine "
        "labels, and forests that got all fine labels.",
    ),
)
