"""Fig. 4: larger subsets of class means at the nodes, on features transformed by a metric."""

from __future__ import annotations

from functools import partial

from evergrow.research.experiments import Experiment, ExperimentContext, Finding, Row, Run, Table
from evergrow.research.experiments.plots import Figure
from evergrow.research.experiments.verdicts import combine_verdicts, compare_means, findings_by_data
from evergrow.research.papers.cvpr2015 import claims, evaluation, plots
from evergrow.research.papers.cvpr2015.data import NOTES, settings, sources

SCALES = (1.0, 5.0, 10.0, 20.0)
# One percentage point of accuracy.
ALMOST = 0.01


def _measure(context: ExperimentContext, run: Run) -> list[Row]:
    forests = [("fine-only", {"scale": scale}, {"subset_scale": scale}) for scale in SCALES]
    return evaluation.compare(context, run, forests, metric=run["metric"])


def _draw(figure: Figure, table: Table) -> None:
    for number, (name, panel) in enumerate(plots.panels(figure, table).items()):
        plots.draw_trade_off(panel, table.where(data=name), "scale", colour=number)
        panel.set_xlabel("comparisons per tree and sample")
        panel.set_ylabel("accuracy, %")


def _judge(table: Table) -> list[Finding]:
    return findings_by_data(
        table,
        ("Larger subsets raise the accuracy and cost comparisons: from c = 1 to 20.", _larger),
        (
            "With c = 10 the accuracy is almost that of c = 20 (a point below at most), for fewer "
            "comparisons.",
            _enough,
        ),
    )


def _larger(table: Table) -> tuple[str, bool | None]:
    found = compare_means(table, "accuracy", {"scale": 20.0}, {"scale": 1.0})
    return claims.format_trade_off(table, "scale", (1.0, 20.0)), found.verdict


def _enough(table: Table) -> tuple[str, bool | None]:
    more = compare_means(table, "accuracy", {"scale": 20.0}, {"scale": 10.0})
    few, many = (table.mean("comparisons", scale=scale) for scale in (10.0, 20.0))
    text = claims.format_trade_off(table, "scale", (10.0, 20.0))
    if few == many:
        return f"{text}: so large a subset is all classes already", None
    return text, combine_verdicts((more.below(ALMOST), few < many))


EXPERIMENT = Experiment(
    name="cvpr2015-fig4",
    title="Larger subsets of class means (CVPR 2015, fig. 4)",
    shows="Accuracy over comparisons with subsets of up to 1, 5, 10, 20 roots of the classes.",
    sources=sources("birds", "features"),
    runs=partial(settings, metric=["fine"]),
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "scale", "seed"),
    exact=("accuracy", "comparisons"),
    timed=("seconds",),
    size=(8.0, 3.4),
    notes=(
        *NOTES,
        "The paper has Fisher vectors; here are features of a network. As there, forests see the "
        "half of the samples with fine labels through a metric learnt on it, in 15 epochs "
        "at most. Numbers at the points are c, the bound on a subset's size in roots of the "
        "number of classes; the paper prints no numbers for its curve.",
    ),
)
