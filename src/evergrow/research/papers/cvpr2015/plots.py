"""Figures of this paper: methods next to the paper's, and trade-offs over a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import learners
from evergrow.research.papers.cvpr2015.evaluation import relative_to

# Distance between the groups of one method, and between the paper's markers and ours.
_STEP, _ASIDE = 0.24, 0.1
# Markers of each of the paper's tables; ours are filled.
_THEIRS: tuple[dict[str, Any], ...] = ({"fillstyle": "none"}, {"marker": "x"})


def panels(figure: ex.Figure, table: ex.Table) -> dict[str, ex.Axes]:
    """One panel for each data set, side by side."""
    names = table.values("data")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for name, panel in zip(names, axes, strict=True):
        panel.set_title(name)
    return dict(zip(names, axes, strict=True))


def draw_methods(
    figure: ex.Figure,
    table: ex.Table,
    published: Mapping[str, ex.Table],
    *,
    group: str,
    groups: Mapping[Any, str],
    ylabel: str,
    column: str = "relative",
) -> None:
    """Methods along the x axis, groups by colour; our markers are filled, the paper's hollow.

    ``published`` has the paper's rows by their label; markers of a second table are crosses.
    """
    places = panels(figure, table)
    step = _ASIDE * 2 / (1 + len(published))
    theirs = dict(zip(published, _THEIRS, strict=False))
    for name, panel in places.items():
        mine = table.where(data=name)
        methods = mine.values("method")
        for number, (value, label) in enumerate(groups.items()):
            first = _STEP * (number - (len(groups) - 1) / 2) - step * len(published) / 2
            look: dict[str, Any] = {
                "color": ex.COLOURS[number],
                "ls": "",
                "marker": ex.MARKERS[number],
            }
            x, y, spread = _points(mine.where(**{group: value}), methods, column)
            at = [place + first for place in x]
            panel.errorbar(at, y, spread, label=label, **look)
            for behind, (kind, rows) in enumerate(published.items(), 1):
                x, y, _ = _points(rows.where(**{group: value}), methods, column)
                at = [place + first + behind * step for place in x]
                panel.plot(at, y, **(look | theirs[kind]))
        # A legend lists error bars last, so that these entries follow ours.
        for kind, own in theirs.items():
            grey: dict[str, Any] = {"marker": "o", "ls": "", "color": ex.GREY} | own
            panel.errorbar([], [], label=kind, **grey)
        panel.axhline(1.0, color=ex.GREY, lw=0.8, zorder=0)
        panel.set_xticks(
            range(len(methods)), [learners.LABELS[each] for each in methods], fontsize=7
        )
        panel.set_xlim(-0.5, len(methods) - 0.5)
        panel.grid(visible=False, axis="x")
        for place in range(1, len(methods)):
            panel.axvline(place - 0.5, color=ex.GREY, lw=0.4, alpha=0.4)
    leftmost = next(iter(places.values()))
    leftmost.set_ylabel(ylabel)
    ex.add_legend(figure, leftmost, columns=len(groups) + len(published))


def _points(
    table: ex.Table, methods: Sequence[str], column: str
) -> tuple[list[int], list[float], list[float]]:
    there = [
        (place, method)
        for place, method in enumerate(methods)
        if len(table.where(method=method).column(column))
    ]
    return (
        [place for place, _ in there],
        [table.mean(column, method=method) for _, method in there],
        [table.deviation(column, method=method) for _, method in there],
    )


def draw_trade_off(panel: ex.Axes, table: ex.Table, parameter: str, *, colour: int) -> None:
    """Accuracy over comparisons: a line through the values of a parameter, which are written."""
    accuracy, cost = (table.curve(parameter, name) for name in ("accuracy", "comparisons"))
    y = 100 * accuracy.mean
    panel.errorbar(
        cost.mean,
        y,
        100 * accuracy.deviation,
        cost.deviation,
        marker=ex.MARKERS[colour],
        color=ex.COLOURS[colour],
        elinewidth=0.8,
    )
    for number, value in enumerate(accuracy.x.tolist()):
        # Alternately above and below, as neighbours may be close.
        aside = (4, 4) if number % 2 == 0 else (4, -9)
        place = (cost.mean[number], y[number])
        panel.annotate(f"{value:g}", place, aside, textcoords="offset points", size=7)
    panel.margins(0.12, 0.15)


def draw_metrics(
    figure: ex.Figure,
    table: ex.Table,
    *,
    published: Sequence[ex.Row],
    baseline: str,
    metrics: Mapping[str, str],
    ylabel: str,
) -> None:
    """Draw methods by metric, relative to a baseline without a metric."""
    without = {"method": baseline, "metric": "none"}
    ours, theirs = (
        relative_to(table, without, ["data", "seed"]),
        relative_to(published, without, []),
    )
    paper = {"paper": ex.Table(theirs)}
    draw_methods(figure, ex.Table(ours), paper, group="metric", groups=metrics, ylabel=ylabel)
