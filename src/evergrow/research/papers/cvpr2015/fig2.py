"""Fig. 2: the number of subsets, the number of assignments and the cost of comparisons."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, plots
from evergrow.research.papers.cvpr2015.data import (
    further_seeds,
    make_experiment,
    notes,
    settings,
    sources,
)

# While one parameter varies, the others have the values below.
SWEEPS: dict[str, tuple[float, ...]] = {
    "n_subsets": (10, 100, 500, 1000),
    "n_assignments": (10, 50, 100),
    "cost_weight": (0.1, 0.01, 0.005, 0.001, 0.0),
}
OTHERWISE: dict[str, Any] = {"n_subsets": 100, "n_assignments": 50, "cost_weight": 0.01}
# Half a percentage point counts as no difference: the range of the paper's curve of assignments.
HARDLY = 0.005
TITLES = {
    "n_subsets": "subsets per node",
    "n_assignments": "assignments per subset",
    "cost_weight": "cost of a comparison",
}


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    name = run["parameter"]
    forests = [
        ("regularised", {"value": value}, OTHERWISE | {name: value}) for value in SWEEPS[name]
    ]
    return evaluation.compare(context, run, forests, fine=1.0, coarse=0.0)


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    grid = figure.subplots(len(names), len(SWEEPS), squeeze=False)
    for row, data in zip(grid, names, strict=True):
        for panel, (parameter, title) in zip(row, TITLES.items(), strict=True):
            mine = table.where(data=data, parameter=parameter)
            plots.draw_trade_off(panel, mine, "value", colour=0)
            panel.set_title(f"{title}: {data}")
        row[0].set_ylabel("accuracy, %")
    for panel in grid[-1]:
        panel.set_xlabel("comparisons per tree and sample")


def _subsets_raise(table: ex.Table) -> ex.Seen:
    mine = table.where(parameter="n_subsets")
    found = ex.compare_means(mine, "accuracy", {"value": 1000}, {"value": 10})
    return claims.format_trade_off(mine, "value", (10, 1000)), found.verdict


def _subsets_save(table: ex.Table) -> ex.Seen:
    mine = table.where(parameter="n_subsets")
    few, many = (mine.mean("comparisons", value=value) for value in (10, 1000))
    found = ex.compare_ratios(mine, "comparisons", {"value": 10}, {"value": 1000})
    return f"{many:.0f} comparisons with 1000 and {few:.0f} with 10", found.verdict


def _assignments(table: ex.Table) -> ex.Seen:
    mine = table.where(parameter="n_assignments")
    found = ex.compare_means(mine, "accuracy", {"value": 100}, {"value": 10})
    return claims.format_trade_off(mine, "value", (10, 100)), found.within(HARDLY)


def _high_cost(table: ex.Table) -> ex.Seen:
    mine = table.where(parameter="cost_weight")
    lost = ex.compare_means(mine, "accuracy", {"value": 0.0}, {"value": 0.1})
    saved = ex.compare_ratios(mine, "comparisons", {"value": 0.0}, {"value": 0.1}).verdict
    text = claims.format_trade_off(mine, "value", (0.1, 0.0))
    return text, ex.combine_verdicts((lost.verdict, saved))


def _small_cost(table: ex.Table) -> ex.Seen:
    mine = table.where(parameter="cost_weight")
    lost = ex.compare_means(mine, "accuracy", {"value": 0.0}, {"value": 0.001})
    saved = ex.compare_ratios(mine, "comparisons", {"value": 0.0}, {"value": 0.001}).verdict
    text = claims.format_trade_off(mine, "value", (0.001, 0.0))
    return text, ex.combine_verdicts((lost.below(HARDLY), saved))


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    narrow = ("n_assignments", "cost_weight")
    return [
        *settings(context, parameter=SWEEPS),
        *further_seeds(context, 15, ["words"], parameter=narrow),
        *further_seeds(context, 15, ["features"], parameter=narrow[:1]),
    ]


def _why_assignments(table: ex.Table) -> str:
    mine = table.where(parameter="n_assignments")
    steps = " and ".join(
        f"from {few:g} to {many:g} {100 * found.mean:+.1f}"
        for few, many in pairwise(SWEEPS["n_assignments"])
        for found in [ex.compare_means(mine, "accuracy", {"value": many}, {"value": few})]
    )
    return f"The few assignments are what costs: the steps are {steps} points."


def _why_subsets(table: ex.Table) -> str:
    mine = table.where(parameter="n_subsets")
    return f"It depends on the number: {claims.format_trade_off(mine, 'value', _SUBSETS)}."


def _why_cost(table: ex.Table) -> str:
    mine = table.where(parameter="cost_weight")
    return f"It depends on the cost: {claims.format_trade_off(mine, 'value', _COSTS)}."


_SUBSETS, _COSTS = SWEEPS["n_subsets"], SWEEPS["cost_weight"]

CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim("More subsets raise the accuracy.", _subsets_raise, reason=claims.named(_why_subsets)),
    ex.Claim("More subsets save comparisons.", _subsets_save, reason=claims.named(_why_subsets)),
    ex.Claim(
        "The number of assignments hardly matters (at most half a point between 10 and 100).",
        _assignments,
        reason=claims.named(_why_assignments),
    ),
    ex.Claim(
        "A high cost saves comparisons and loses accuracy.",
        _high_cost,
        reason=claims.named(_why_cost),
    ),
    ex.Claim(
        "A cost of 0.001 saves comparisons and loses no accuracy (at most half a point).",
        _small_cost,
        reason=claims.named(_why_cost),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-fig2",
    title="Parameters of the regularised forest (CVPR 2015, fig. 2)",
    shows="Accuracy over comparisons as subsets, assignments and the cost of comparisons change.",
    sources=sources("features", "words"),
    measure=measure,
    draw=draw,
    runs=runs,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "parameter", "value", "seed"),
    exact=("accuracy", "comparisons"),
    size=(10.0, 5.6),
    notes=(
        *notes("features", "words", scored="RNCMF"),
        "While one parameter changes the others are 100 subsets (1000 in the paper), 50 "
        "assignments and a cost of 0.01. All samples have fine labels. The paper prints no "
        "numbers for its curves.",
    ),
)
