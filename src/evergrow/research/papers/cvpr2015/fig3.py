"""Fig. 3: the weight of the coarse classes' gain in the choice of a split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import by_data, contrast, shown
from evergrow.research.experiments.drawing import BLUE, GREEN, RED
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.comparing import compare, relative_to
from evergrow.research.papers.cvpr2015.dots import legend_above, panels
from evergrow.research.papers.cvpr2015.sources import (
    CHANCE_NOTE,
    DATA_NOTE,
    SIZE_NOTE,
    settings,
    sources,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
BEST = {"joint": 0.1, "hierarchical": 1.0}

PUBLISHED = (
    {"method": "joint", "means": "fine", "weight": 0.1, "accuracy": 0.1686},
    {"method": "hierarchical", "means": "fine", "weight": 1.0, "accuracy": 0.1700},
    {"method": "hierarchical", "means": "both", "weight": 1.0, "accuracy": 0.1810},
)
BASELINE = {"method": "hierarchical", "means": "fine", "weight": 1.0}
# What is drawn: method, whose means nodes compare with, name, colour, marker, how far aside.
LINES = (
    ("joint", "fine", "J", RED, "s", 0.93),
    ("hierarchical", "fine", "H", BLUE, "o", 1.0),
    ("hierarchical", "both", "H, means of both levels", GREEN, "^", 1.08),
)


def _runs(lab: Lab) -> list[Run]:
    return [*settings(lab, fine=[0.5])]


def _measure(lab: Lab, run: Run) -> list[Row]:
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
    return [*compare(lab, run, forests)]


def _draw(figure: Figure, table: Table) -> None:
    ours = Table(relative_to(table, BASELINE, ["data", "seed"]))
    theirs = Table(relative_to(PUBLISHED, BASELINE, []))
    places = panels(figure, table)
    for name, panel in places.items():
        for method, means, label, colour, marker, aside in LINES:
            curve = ours.curve("weight", "relative", data=name, method=method, means=means)
            look: dict[str, Any] = {"color": colour, "marker": marker}
            # Side by side, so that none hides another.
            panel.errorbar(aside * curve.x, curve.mean, curve.deviation, label=label, **look)
            paper = theirs.curve("weight", "relative", method=method, means=means)
            hollow = look | {"ls": "", "fillstyle": "none", "label": f"{label}, paper"}
            panel.errorbar(1.3 * aside * paper.x, paper.mean, **hollow)
        panel.set_xscale("log")
        panel.set_xlabel("weight of the coarse term")
    first = next(iter(places.values()))
    first.set_ylabel("accuracy / H at weight 1")
    legend_above(figure, first, len(LINES))


def _judge(table: Table) -> list[Finding]:
    return [
        *by_data("J is best with a weight of 0.1.", table, lambda t: _best_weight(t, "joint")),
        *by_data("H is best with a weight of 1.", table, lambda t: _best_weight(t, "hierarchical")),
        *by_data("H at its best is above J at its best.", table, _above),
        *by_data(
            "Means of coarse classes beside those of fine ones help H (18.10 beside 17.00 %).",
            table,
            _both_levels,
        ),
    ]


def _at_best(table: Table, method: str) -> float:
    mine = table.where(method=method, means="fine")
    return float(max(mine.values("weight"), key=lambda w: mine.mean("accuracy", weight=w)))


def _best_weight(table: Table, method: str) -> tuple[str, bool | None]:
    mine = table.where(method=method, means="fine")
    here, wanted = _at_best(table, method), BEST[method]
    best, there = (shown(mine, "accuracy", weight=weight) for weight in (here, wanted))
    if here == wanted:
        return f"it is best there too, with {best}", True
    # A better weight counts only if chance cannot have chosen it.
    found = contrast(mine, "accuracy", {"weight": here}, {"weight": wanted})
    return f"{best} with {here:g} and {there} with {wanted:g}", False if found.verdict else None


def _above(table: Table) -> tuple[str, bool | None]:
    h, j = (
        {"method": method, "means": "fine", "weight": _at_best(table, method)}
        for method in ("hierarchical", "joint")
    )
    text = f"{shown(table, 'accuracy', **h)} beside {shown(table, 'accuracy', **j)}"
    return text, contrast(table, "accuracy", h, j).verdict


def _both_levels(table: Table) -> tuple[str, bool | None]:
    both = BASELINE | {"means": "both"}
    text = f"{shown(table, 'accuracy', **both)} beside {shown(table, 'accuracy', **BASELINE)}"
    return text, contrast(table, "accuracy", both, BASELINE).verdict


EXPERIMENT = Experiment(
    name="cvpr2015-fig3",
    title="The weight of the coarse classes (CVPR 2015, fig. 3)",
    shows="Accuracy of J and H over the weight of the coarse classes' gain in choosing splits.",
    sources=sources("features", "words"),
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "method", "means", "weight", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    timed=("seconds",),
    published=PUBLISHED,
    size=(9.0, 3.8),
    notes=(
        DATA_NOTE,
        SIZE_NOTE,
        CHANCE_NOTE,
        "As in the paper nodes compare with means of fine classes only, but for the point with "
        "means of both levels; half of the samples have fine labels. The best weight is that of "
        "the same test samples, where the paper has others for choosing.",
    ),
)
