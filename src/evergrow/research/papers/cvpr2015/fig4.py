"""Fig. 4: larger subsets of class means at the nodes, on features transformed by a metric."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, plots
from evergrow.research.papers.cvpr2015.data import NOTES, make_experiment, settings, sources

SCALES = (1.0, 5.0, 10.0, 20.0)
# One percentage point of accuracy.
ALMOST = 0.01


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    forests = [("fine-only", {"scale": scale}, {"subset_scale": scale}) for scale in SCALES]
    return evaluation.compare(context, run, forests, metric=run["metric"])


def draw(figure: ex.Figure, table: ex.Table) -> None:
    for number, (name, panel) in enumerate(plots.panels(figure, table).items()):
        plots.draw_trade_off(panel, table.where(data=name), "scale", colour=number)
        panel.set_xlabel("comparisons per tree and sample")
        panel.set_ylabel("accuracy, %")


def _larger(table: ex.Table) -> ex.Seen:
    found = ex.compare_means(table, "accuracy", {"scale": 20.0}, {"scale": 1.0})
    return claims.format_trade_off(table, "scale", (1.0, 20.0)), found.verdict


def _enough(table: ex.Table) -> ex.Seen:
    more = ex.compare_means(table, "accuracy", {"scale": 20.0}, {"scale": 10.0})
    few, many = (table.mean("comparisons", scale=scale) for scale in (10.0, 20.0))
    text = claims.format_trade_off(table, "scale", (10.0, 20.0))
    if few == many:
        return f"{text}: so large a subset is all classes already", None
    return text, ex.combine_verdicts((more.below(ALMOST), few < many))


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim("Larger subsets raise the accuracy and cost comparisons: from c = 1 to 20.", _larger),
    ex.Claim(
        "With c = 10 the accuracy is almost that of c = 20 (a point below at most), for fewer "
        "comparisons.",
        _enough,
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-fig4",
    title="Larger subsets of class means (CVPR 2015, fig. 4)",
    shows="Accuracy over comparisons with subsets of up to 1, 5, 10, 20 roots of the classes.",
    sources=sources("birds", "features"),
    measure=measure,
    draw=draw,
    runs=partial(settings, metric=["fine"]),
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "scale", "seed"),
    exact=("accuracy", "comparisons"),
    size=(8.0, 3.4),
    notes=(
        *NOTES,
        "The paper has Fisher vectors; here are features of a network. As there, forests see the "
        "half of the samples with fine labels through a metric learnt on it, in 15 epochs "
        "at most. Numbers at the points are c, the bound on a subset's size in roots of the "
        "number of classes; the paper prints no numbers for its curve.",
    ),
)
