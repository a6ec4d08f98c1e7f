"""Fig. 3: the weight of the coarse classes' gain in the choice of a split."""

from __future__ import annotations

from functools import partial
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import evaluation, plots
from evergrow.research.papers.cvpr2015.data import NOTES, make_experiment, settings, sources

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
    ("joint", "fine", "J", ex.RED, "s", 0.93),
    ("hierarchical", "fine", "H", ex.BLUE, "o", 1.0),
    ("hierarchical", "both", "H, means of both levels", ex.GREEN, "^", 1.08),
)


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
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


def draw(figure: ex.Figure, table: ex.Table) -> None:
    ours = ex.Table(evaluation.relative_to(table, BASELINE, ["data", "seed"]))
    theirs = ex.Table(evaluation.relative_to(PUBLISHED, BASELINE, []))
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
    ex.add_legend(figure, first, columns=len(LINES))


def _at_best(table: ex.Table, method: str) -> float:
    mine = table.where(method=method, means="fine")
    return float(max(mine.values("weight"), key=lambda w: mine.mean("accuracy", weight=w)))


def _best_weight(table: ex.Table, method: str) -> ex.Seen:
    mine, wanted = table.where(method=method, means="fine"), BEST[method]
    others = [weight for weight in mine.values("weight") if weight != wanted]
    next_best = max(others, key=lambda weight: mine.mean("accuracy", weight=weight))
    there, beside = (
        ex.format_percent(mine, "accuracy", weight=weight) for weight in (wanted, next_best)
    )
    verdict = ex.is_best(mine, "accuracy", {"weight": wanted}, [{"weight": w} for w in others])
    return (
        f"{there} with {wanted:g}, and {beside} with {next_best:g}, the best of the others",
        verdict,
    )


def _above(table: ex.Table) -> ex.Seen:
    h, j = (
        {"method": method, "means": "fine", "weight": _at_best(table, method)}
        for method in ("hierarchical", "joint")
    )
    ours, theirs = (ex.format_percent(table, "accuracy", **side) for side in (h, j))
    return f"{ours} beside {theirs}", ex.compare_means(table, "accuracy", h, j).verdict


def _both_levels(table: ex.Table) -> ex.Seen:
    both = BASELINE | {"means": "both"}
    ours, others = (ex.format_percent(table, "accuracy", **side) for side in (both, BASELINE))
    return f"{ours} beside {others}", ex.compare_means(table, "accuracy", both, BASELINE).verdict


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim("J is best with a weight of 0.1.", lambda t: _best_weight(t, "joint")),
    ex.Claim("H is best with a weight of 1.", lambda t: _best_weight(t, "hierarchical")),
    ex.Claim("H at its best is above J at its best.", _above),
    ex.Claim(
        "Means of coarse classes beside those of fine ones help H (18.10 beside 17.00 %).",
        _both_levels,
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-fig3",
    title="The weight of the coarse classes (CVPR 2015, fig. 3)",
    shows="Accuracy of J and H over the weight of the coarse classes' gain in choosing splits.",
    sources=sources("features", "words"),
    measure=measure,
    draw=draw,
    runs=partial(settings, fine=[0.5]),
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "method", "means", "weight", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    published=PUBLISHED,
    size=(9.0, 3.8),
    notes=(
        *NOTES,
        "As in the paper nodes compare with means of fine classes only, but for the point with "
        "means of both levels; half of the samples have fine labels. The best weight is that of "
        "the same test samples, where the paper has others for choosing.",
    ),
)
