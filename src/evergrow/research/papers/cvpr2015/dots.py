"""Pictures of this paper: methods side by side with the paper's, and lines over a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.drawing import COLOURS, GREY, MARKERS
from evergrow.research.experiments.table import Table
from evergrow.research.papers.cvpr2015.contenders import LABELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_methods", "legend_above", "panels"]

# How far apart groups of one method stand, and the paper's dots from ours.
_STEP, _ASIDE = 0.24, 0.1
# How each table of the paper's is told from ours, whose marks are filled.
_THEIRS: tuple[dict[str, Any], ...] = ({"fillstyle": "none"}, {"marker": "x"})


def panels(figure: Figure, table: Table) -> dict[str, Axes]:
    """One panel for each data set, side by side."""
    names = table.values("data")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for name, panel in zip(names, axes, strict=True):
        panel.set_title(name)
    return dict(zip(names, axes, strict=True))


def legend_above(figure: Figure, panel: Axes, n_columns: int) -> None:
    """One legend for all panels, above them, where it covers nothing."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=n_columns)


def draw_methods(
    figure: Figure,
    table: Table,
    published: Mapping[str, Table],
    *,
    group: str,
    groups: Mapping[Any, str],
    ylabel: str,
    column: str = "relative",
) -> None:
    """Methods along the axis; groups by colour; ours filled, the paper's hollow beside.

    ``published`` has the paper's rows by what the legend calls them; a second kind of them are
    crosses.
    """
    places = panels(figure, table)
    step = _ASIDE * 2 / (1 + len(published))
    theirs = dict(zip(published, _THEIRS, strict=False))
    for name, panel in places.items():
        mine = table.where(data=name)
        methods = mine.values("method")
        for number, (value, label) in enumerate(groups.items()):
            first = _STEP * (number - (len(groups) - 1) / 2) - step * len(published) / 2
            look: dict[str, Any] = {"color": COLOURS[number], "ls": "", "marker": MARKERS[number]}
            x, y, spread = _points(mine.where(**{group: value}), methods, column)
            at = [place + first for place in x]
            panel.errorbar(at, y, spread, label=label, **look)
            for behind, (kind, rows) in enumerate(published.items(), 1):
                x, y, _ = _points(rows.where(**{group: value}), methods, column)
                at = [place + first + behind * step for place in x]
                panel.plot(at, y, **(look | theirs[kind]))
        # Error bars stand last in a legend; these without any stand behind those with.
        for kind, own in theirs.items():
            grey: dict[str, Any] = {"marker": "o", "ls": "", "color": GREY} | own
            panel.errorbar([], [], label=kind, **grey)
        panel.axhline(1.0, color=GREY, lw=0.8, zorder=0)
        panel.set_xticks(range(len(methods)), [LABELS[each] for each in methods], fontsize=7)
        panel.set_xlim(-0.5, len(methods) - 0.5)
        panel.grid(visible=False, axis="x")
        for place in range(1, len(methods)):
            panel.axvline(place - 0.5, color=GREY, lw=0.4, alpha=0.4)
    leftmost = next(iter(places.values()))
    leftmost.set_ylabel(ylabel)
    legend_above(figure, leftmost, len(groups) + len(published))


def _points(
    table: Table, methods: Sequence[str], column: str
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
