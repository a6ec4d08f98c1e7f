"""Sec. 5.2.1: four ways to guess missing fine labels, and the scale of stacked probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation, learners
from evergrow.research.papers.cvpr2015.data import (
    make_experiment,
    notes,
    samples,
    settings,
    shown_name,
    sources,
)
from evergrow.research.papers.cvpr2015.levels import Draw, TwoLevels
from evergrow.research.papers.cvpr2015.levels import draw as draw_labels

# In the order of the paper's text; the last is ours.
GUESSES = {
    "forest": "forest",
    "nn-unconstrained": "any\nneighbour",
    "nn-discard": "neighbour,\ndiscarded",
    "nn": "neighbour\nwithin",
    "ridge": "ridge\n(ours)",
}
SCALES = (1.0, 10.0, 100.0, 1000.0)
BEST_SCALE = 10.0

PUBLISHED: tuple[ex.Row, ...] = (
    {"part": "guess", "guess": "forest", "accuracy": 0.1402},
    {"part": "guess", "guess": "nn-unconstrained", "accuracy": 0.1423},
    {"part": "guess", "guess": "nn-discard", "accuracy": 0.1703},
    {"part": "guess", "guess": "nn", "accuracy": 0.1752},
)
OURS: ex.Row = {"part": "guess", "guess": "ridge", "accuracy": None}
PARTS = ("guess", "scale")


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    if run["part"] == "scale":
        forests = [("stacked", {"scale": scale}, {"stack_scale": scale}) for scale in SCALES]
        return evaluation.compare(context, run, [*forests, ("fine-only", {"scale": 0.0}, {})])
    data = samples(context, run)
    train = draw_labels(data, run["seed"], 0.5, 0.5)
    rows: list[ex.Row] = []
    for name in GUESSES:
        guesser = _guesser(name, run, context.n_jobs)
        told, about = _with_guesses(train, data, guesser, run["seed"], context.n_jobs)
        options: dict[str, Any] = {"n_trees": run["trees"], "n_jobs": context.n_jobs}
        values = evaluation.evaluate("full", told, data, seed=run["seed"], **options)
        shown = shown_name(context, run["data"])
        rows.append({**run, "data": shown, "guess": name, **about, **values})
    return rows


def _guesser(name: str, run: ex.Run, n_jobs: int) -> Any:
    from evergrow.estimators import ForestGuesser

    if name != "forest":
        return name
    # The paper's forest, not the one that the guesser has by default.
    return ForestGuesser(learners.LEARNERS["full"].make(run["trees"], run["seed"], n_jobs))


def _with_guesses(
    train: Draw, data: TwoLevels, guesser: Any, seed: int, n_jobs: int
) -> tuple[Draw, dict[str, float]]:
    """The samples with a fine label, known or guessed, and how many guesses are right.

    Some guesses contradict the coarse class, so a forest of fine classes alone learns them.
    """
    from evergrow.estimators import guess_fine

    n_fine = len(data.parents)
    found = guess_fine(
        train.X,
        train.coarse - n_fine,
        np.where(train.known, train.fine, -1),
        data.parents - n_fine,
        guesser=guesser,
        check=False,
        n_jobs=n_jobs,
        random_state=seed,
    )
    guessed = found.fine >= 0
    asked = ~train.known
    told = Draw(train.X[guessed], train.coarse[guessed], found.fine[guessed], guessed[guessed])
    return told, {
        "guessed": float(guessed[asked].mean()),
        "right": float((found.fine == train.fine)[asked & guessed].mean()),
    }


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    grid = figure.subplots(1, 2 * len(names), squeeze=False)[0]
    for place, name in enumerate(names):
        mine = table.where(data=name)
        bars, curve = grid[2 * place], grid[2 * place + 1]
        _draw_guesses(bars, mine.where(part="guess"))
        bars.set_title(f"guesses: {name}")
        _draw_scales(curve, mine.where(part="scale"))
        curve.set_title(f"stacking: {name}")
    grid[0].set_ylabel("accuracy, %")
    ex.add_legend(figure, grid[0], columns=2)


def _draw_guesses(panel: ex.Axes, table: ex.Table) -> None:
    x = np.arange(len(GUESSES))
    y, spread = (
        [100 * found("accuracy", guess=name) for name in GUESSES]
        for found in (table.mean, table.deviation)
    )
    panel.errorbar(x, y, spread, ls="", marker=ex.MARKERS[0], color=ex.COLOURS[0], label="here")
    paper = [100 * row["accuracy"] for row in PUBLISHED]
    panel.plot(x[: len(paper)], paper, ls="", marker="o", fillstyle="none", color=ex.GREY)
    panel.errorbar([], [], label="paper", ls="", marker="o", fillstyle="none", color=ex.GREY)
    panel.set_xticks(x, [*GUESSES.values()], fontsize=6)


def _draw_scales(panel: ex.Axes, table: ex.Table) -> None:
    mine = ex.Table(row for row in table if row["scale"] > 0)
    curve = mine.curve("scale", "accuracy")
    panel.errorbar(
        curve.x,
        100 * curve.mean,
        100 * curve.deviation,
        marker=ex.MARKERS[1],
        color=ex.COLOURS[1],
    )
    panel.axhline(100 * table.mean("accuracy", scale=0.0), color=ex.GREY, lw=0.8, zorder=0)
    panel.set_xscale("log")
    panel.set_xlabel("factor of the probabilities")


def _said(table: ex.Table, name: str) -> str:
    mine = table.where(part="guess")
    right, guessed = (f"{mine.mean(column, guess=name):.0%}" for column in ("right", "guessed"))
    known = "" if guessed == "100%" else f", {guessed} of samples guessed"
    return f"{ex.format_percent(mine, 'accuracy', guess=name)} ({right} of guesses right{known})"


def _better(one: str, other: str) -> Any:
    def look(table: ex.Table) -> ex.Seen:
        found = ex.compare_means(
            table.where(part="guess"), "accuracy", {"guess": one}, {"guess": other}
        )
        return f"{_said(table, one)} against {_said(table, other)}", found.verdict

    return look


def _best_of_four(table: ex.Table) -> ex.Seen:
    text, verdict = _better("nn", "nn-discard")(table)
    return f"{text}; ridge, ours, {_said(table, 'ridge')}", verdict


def _best_scale(table: ex.Table) -> ex.Seen:
    mine = table.where(part="scale")
    others = [scale for scale in SCALES if scale != BEST_SCALE]
    text = ", ".join(
        f"{ex.format_percent(mine, 'accuracy', scale=scale)} with {scale:g}" for scale in SCALES
    )
    verdict = ex.is_best(mine, "accuracy", {"scale": BEST_SCALE}, [{"scale": s} for s in others])
    return text, verdict


def _why_guesses(one: str, other: str) -> Any:
    def reason(table: ex.Table) -> str:
        mine = table.where(part="guess")
        shares = [f"{mine.mean('right', guess=name):.0%}" for name in (one, other)]
        counts = [f"{mine.mean('guessed', guess=name):.0%}" for name in (one, other)]
        return (
            f"The accuracy follows the guesses: {shares[0]} of those of the first way are right "
            f"and {shares[1]} of the second, with guesses for {counts[0]} and {counts[1]} of the "
            "samples."
        )

    return reason


def _why_scale(table: ex.Table) -> str:
    mine = table.where(part="scale")
    best = max(SCALES, key=lambda scale: mine.mean("accuracy", scale=scale))
    gains = claims.format_differences(
        ex.Table({**row, "all": 0} for row in mine), {"scale": best}, {"scale": 0.0}, "all", [0]
    )
    return (
        "Features are divided by their deviation, probabilities are not: the factor is relative to "
        f"the scale of the features. Here {best:g} is the best, {gains} points above no stacking."
    )


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "A forest that learns guesses of the nearest neighbour, whatever its coarse class, is "
        "better than one that learns guesses of a forest.",
        _better("nn-unconstrained", "forest"),
        printed="14.23 against 14.02 %",
        reason=claims.named(_why_guesses("nn-unconstrained", "forest")),
    ),
    ex.Claim(
        "Discarding guesses that contradict the coarse class is better than keeping them.",
        _better("nn-discard", "nn-unconstrained"),
        printed="17.03 against 14.23 %",
        reason=claims.named(_why_guesses("nn-discard", "nn-unconstrained")),
    ),
    ex.Claim(
        "Searching for the neighbour within the coarse class is the best of the paper's four ways.",
        _best_of_four,
        printed="17.52 against 17.03 %",
        reason=claims.named(_why_guesses("nn", "nn-discard")),
    ),
    ex.Claim(
        "A factor of 10 for the stacked probabilities is the best of 1, 10, 100 and 1000.",
        _best_scale,
        reason=claims.named(_why_scale),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-guesses",
    title="Ways to guess fine labels, and the scale of stacking (CVPR 2015, sec. 5.2.1)",
    shows="Which guesses of missing fine labels make the best forest? Four ways of the paper, and "
    "ridge regression, which is ours. Then stacking, with several factors of its probabilities.",
    sources=sources("features", "words"),
    measure=measure,
    draw=draw,
    runs=lambda context: settings(context, context.seeds(12, quick=3), part=PARTS),
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    keys=("data", "part", "guess", "scale", "seed"),
    exact=("accuracy", "right", "guessed", "coarse_accuracy", "comparisons"),
    published=(*PUBLISHED, OURS),
    size=(12.0, 3.4),
    notes=(
        *notes("features", "words"),
        "Half of the samples have fine labels. The others get guessed ones, and a forest is then "
        'trained on all samples that have a label. "Right" is the share of right guesses among the '
        "samples that got one. The paper compares on its validation samples, and we on the test "
        "samples. In the plots of stacking, the line shows the forest without stacking.",
    ),
)
