"""Fig. 3: the weight of the coarse classes' gain in the choice of a split."""

from __future__ import annotations

from functools import partial
from typing import Any

from evergrow.research.experiments import Experiment, ExperimentContext, Finding, Row, Run, Table
from evergrow.research.experiments.plots import BLUE, GREEN, RED, Figure, add_legend
from evergrow.research.experiments.verdicts import compare_means, findings_by_data, format_percent
from evergrow.research.papers.cvpr2015 import evaluation, plots
from evergrow.research.papers.cvpr2015.data import NOTES, settings, sources

WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
BEST = {"joint": 0.1, "hierarchical": 1.0}

PUBLISHED = (
    {"method": "joint", "means": "fine", "weight": 0.1, "accuracy": 0.1686},
    {"method": "hierarchical", "means": "fine", "weight": 1.0, "accuracy": 0.1700},
    {"method": "hierarchical", "means": "both", "weight": 1.0, "accuracy": 0.1810},
)
BASELINE = {"method": "hierarchical", "means": "fine", "weight": 1.0}
# What is drawn: method, class means of the nodes, label, colour, marker, shift along the x axis.
LINES = (
    ("joint", "fine", "J", RED, "s", 0.93),
    ("hierarchical", "fine", "H", BLUE, "o", 1.0),
    ("hierarchical", "both", "H, means of both levels", GREEN, "^", 1.08),
)


def _measure(context: ExperimentContext, run: Run) -> list[Row]:
    wanted = [(method, "fine", weight) for method in BEST for weight in WEIGHTS]
    wanted.append(("hierarchical", "both", BEST["hierarchical"]))
    forests = [
        (
            method,
            {"method": method, "means": means, "weight": weight},
            {"class_means": means, "coarse_weight": weight},
        )
        for method, means, weight in wanted
    ]
    return evaluation.compare(context, run, forests)


def _draw(figure: Figure, table: Table) -> None:
    ours = Table(evaluation.relative_to(table, BASELINE, ["data", "seed"]))
    theirs = Table(evaluation.relative_to(PUBLISHED, BASELINE, []))
    places = plots.panels(figure, table)
    for name, panel in places.items():
        for method, means, label, colour, marker, aside in LINES:
            curve = ours.curve("weight", "relative", data=name, method=method, means=means)
            look: dict[str, Any] = {"color": colour, "marker": marker}
            # Shifted, so that no marker hides another.
            panel.errorbar(aside * curve.x, curve.mean, curve.deviation, label=label, **look)
            paper = theirs.curve("weight", "relative", method=method, means=means)
            hollow = look | {"ls": "", "fillstyle": "none", "label": f"{label}, paper"}
            panel.errorbar(1.3 * aside * paper.x, paper.mean, **hollow)
        panel.set_xscale("log")
        panel.set_xlabel("weight of the coarse term")
    first = next(iter(places.values()))
    first.set_ylabel("accuracy / H at weight 1")
    add_legend(figure, first, columns=len(LINES))


def _judge(table: Table) -> list[Finding]:
    return findings_by_data(
        table,
        ("J is best with a weight of 0.1.", lambda t: _best_weight(t, "joint")),
        ("H is best with a weight of 1.", lambda t: _best_weight(t, "hierarchical")),
        ("H at its best is above J at its best.", _above),
        (
            "Means of coarse classes beside those of fine ones help H (18.10 beside 17.00 %).",
            _both_levels,
        ),
    )


def _at_best(table: Table, method: str) -> float:
    mine = table.where(method=method, means="fine")
    return float(max(mine.values("weight"), key=lambda w: mine.mean("accuracy", weight=w)))


def _best_weight(table: Table, method: str) -> tuple[str, bool | None]:
    mine = table.where(method=method, means="fine")
    here, wanted = _at_best(table, method), BEST[method]
    best, there = (format_percent(mine, "accuracy", weight=weight) for weight in (here, wanted))
    if here == wanted:
        return f"it is best there too, with {best}", True
    # A better weight counts only if it cannot be due to noise.
    found = compare_means(mine, "accuracy", {"weight": here}, {"weight": wanted})
    return f"{best} with {here:g} and {there} with {wanted:g}", False if found.verdict else None


def _above(table: Table) -> tuple[str, bool | None]:
    h, j = (
        {"method": method, "means": "fine", "weight": _at_best(table, method)}
        for method in ("hierarchical", "joint")
    )
    text = (
        f"{format_percent(table, 'accuracy', **h)} beside {format_percent(table, 'accuracy', **j)}"
    )
    return text, compare_means(table, "accuracy", h, j).verdict


def _both_levels(table: Table) -> tuple[str, bool | None]:
    both = BASELINE | {"means": "both"}
    ours, others = (format_percent(table, "accuracy", **side) for side in (both, BASELINE))
    return f"{ours} beside {others}", compare_means(table, "accuracy", both, BASELINE).verdict


EXPERIMENT = Experiment(
    name="cvpr2015-fig3",
    title="The weight of the coarse classes (CVPR 2015, fig. 3)",
    shows="Accuracy of J and H over the weight of the coarse classes' gain in choosing splits.",
    sources=sources("features", "words"),
    runs=partial(settings, fine=[0.5]),
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "method", "means", "weight", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    timed=("seconds",),
    published=PUBLISHED,
    size=(9.0, 3.8),
    notes=(
        *NOTES,
        "As in the paper nodes compare with means of fine classes only, but for the point with "
        "means of both levels; half of the samples have fine labels. The best weight is that of "
        "the same test samples, where the paper has others for choosing.",
    ),
)
