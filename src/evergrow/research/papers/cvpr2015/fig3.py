"""Fig. 3: the weight of the coarse classes' gain in the choice of a split."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, plots
from evergrow.research.papers.cvpr2015.data import (
    FURTHER,
    further_seeds,
    make_experiment,
    notes,
    settings,
    sources,
    usual_seeds,
)

WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
BEST = {"joint": 0.1, "hierarchical": 1.0}

_PRINTED = (
    ("joint", "fine", 0.1, 16.86),
    ("hierarchical", "fine", 1.0, 17.0),
    ("hierarchical", "both", 1.0, 18.1),
)
PUBLISHED = tuple(
    {
        "fine": 0.5,
        "method": method,
        "means": means,
        "weight": weight,
        "accuracy": round(printed / 100, 6),
    }
    for method, means, weight, printed in _PRINTED
)
BASELINE = {"method": "hierarchical", "means": "fine", "weight": 1.0}
# What is drawn: method, class means of the nodes, label, colour, marker, shift along the x axis.
LINES = (
    ("joint", "fine", "J", ex.RED, "s", 0.93),
    ("hierarchical", "fine", "H", ex.BLUE, "o", 1.0),
    ("hierarchical", "both", "H, means of both levels", ex.GREEN, "^", 1.08),
)


# The weights that are near the best, and the share of fine labels at which they may matter more.
SMALL_WEIGHTS = WEIGHTS[:3]
FEW_LABELS = 0.1


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return [
        *settings(context, fine=[0.5]),
        *further_seeds(context, 15, context.names, fine=[0.5]),
        *settings(context, fine=[FEW_LABELS], check=["labels"]),
    ]


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    weights = WEIGHTS if run.keys().isdisjoint((FURTHER, evaluation.CHECK)) else SMALL_WEIGHTS
    wanted = [(method, "fine", weight) for method in BEST for weight in weights]
    wanted.append(("hierarchical", "both", BEST["hierarchical"]))
    forests = [
        (
            method,
            {"method": method, "means": means, "weight": weight},
            {"class_means": means, "coarse_weight": weight},
        )
        for method, means, weight in wanted
    ]
    return evaluation.compare(context, run, forests, fine=run["fine"])


def draw(figure: ex.Figure, table: ex.Table) -> None:
    table = evaluation.main_rows(table)
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
    # Weights are chosen by the seeds that have all of them.
    table = usual_seeds(table)
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
    return f"{ours} against {theirs}", ex.compare_means(table, "accuracy", h, j).verdict


def _both_levels(table: ex.Table) -> ex.Seen:
    both = BASELINE | {"means": "both"}
    ours, others = (ex.format_percent(table, "accuracy", **side) for side in (both, BASELINE))
    return f"{ours} against {others}", ex.compare_means(table, "accuracy", both, BASELINE).verdict


def _why_weight(method: str) -> Callable[[ex.Table], str]:
    def reason(table: ex.Table) -> str:
        spreads = {}
        for said, rows in (
            ("half", evaluation.main_rows(table)),
            ("a tenth", evaluation.check_rows(table, "labels")),
        ):
            mine = ex.Table(
                row
                for row in rows.where(method=method, means="fine")
                if row["weight"] in SMALL_WEIGHTS
            )
            if len(mine):
                spreads[said] = ex.compare_extremes(mine, "accuracy", "weight")
        found = "; ".join(
            f"{each.interval} with fine labels of {said} of the samples"
            for said, each in spreads.items()
        )
        return (
            "The weight matters little: between the best and the worst of 0.01, 0.1 and 1 are "
            f"{found}."
        )

    return reason


def _why_not_above(table: ex.Table) -> str:
    few = evaluation.check_rows(table, "labels")
    h, j = ({"method": m, "means": "fine", "weight": BEST[m]} for m in ("hierarchical", "joint"))
    both = BASELINE | {"means": "both"}
    main = evaluation.main_rows(table)
    return (
        "It depends on the share of fine labels: with a tenth H is "
        f"{ex.compare_means(few, 'accuracy', h, j).interval} above J, with half "
        f"{ex.compare_means(main, 'accuracy', h, j).interval}. Means of coarse classes add "
        f"{ex.compare_means(main, 'accuracy', both, h).interval} to H."
    )


def _why_not_both(table: ex.Table) -> str:
    few, both = evaluation.check_rows(table, "labels"), BASELINE | {"means": "both"}
    return (
        "With fine labels of a tenth of the samples the means of coarse classes add "
        f"{ex.compare_means(few, 'accuracy', both, BASELINE).interval}."
    )


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "J is best with a weight of 0.1.",
        evaluation.on_main_rows(lambda t: _best_weight(t, "joint")),
        printed="16.86 % at 0.1",
        reason=claims.named(_why_weight("joint")),
    ),
    ex.Claim(
        "H is best with a weight of 1.",
        evaluation.on_main_rows(lambda t: _best_weight(t, "hierarchical")),
        printed="17.00 % at 1",
        reason=claims.named(_why_weight("hierarchical")),
    ),
    ex.Claim(
        "H at its best is above J at its best.",
        evaluation.on_main_rows(_above),
        printed="17.00 against 16.86 %",
        reason=claims.named(_why_not_above),
    ),
    ex.Claim(
        "Means of coarse classes in addition to those of fine ones help H.",
        evaluation.on_main_rows(_both_levels),
        printed="18.10 against 17.00 %",
        reason=claims.named(_why_not_both),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-fig3",
    title="The weight of the coarse classes (CVPR 2015, fig. 3)",
    shows="Accuracy of J and H over the weight of the coarse classes' gain in choosing splits.",
    sources=sources("features", "words"),
    measure=measure,
    draw=draw,
    runs=runs,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "fine", "check", "further", "method", "means", "weight", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    published=PUBLISHED,
    size=(9.0, 3.8),
    notes=(
        *notes("features", "words"),
        "As in the paper nodes compare with means of fine classes only, but for the point with "
        "means of both levels; half of the samples have fine labels. The best weight is that of "
        "the same test samples, where the paper has others for choosing.",
    ),
)
