"""Figures by table: panels of curves or bars, with the numbers that the papers print.

A figure is a :class:`Panels` value. Each :class:`Panel` names the columns of its axes and the
column whose values are the curves; a :class:`Style` says how each curve looks. The few figures
that are no curves, such as maps and pictures, are functions of a matplotlib figure and the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evergrow.foundation.files import atomic_write
from evergrow_papers.claims import Words
from evergrow_papers.table import Row, Table

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from evergrow_papers.frame import Experiment

    Axes = matplotlib.axes.Axes
    Figure = matplotlib.figure.Figure
else:
    # Matplotlib is imported when a figure is drawn; at run time these names are annotations only.
    Axes = Figure = Any

# Colours that can be told apart with any colour vision (Okabe and Ito), without yellow, which is
# too pale for lines on white.
BLACK, ORANGE, BLUE, GREEN, RED, PINK, SKY, GREY = (
    "#000000",
    "#e69f00",
    "#0072b2",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#7f7f7f",
)
COLOURS = (BLUE, RED, GREEN, ORANGE, PINK, SKY, BLACK, GREY)
# Markers tell curves apart where colours do not, as in print.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

LOOK: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    # The same figure gives the same file.
    "svg.hashsalt": "evergrow",
    # Text as text: smaller files that can be searched and read aloud.
    "svg.fonttype": "none",
}

LegendPlace = Literal["upper center", "lower center", "right center"]


@dataclass(frozen=True)
class Style:
    """Label, colour, marker and dashes of a curve."""

    label: str
    colour: str
    marker: str = "o"
    dashes: str = "-"


def styles(labels: Mapping[Any, str], dashes: str = "-") -> dict[Any, Style]:
    """A style for each of these values, by the order of colours and markers.

    Colours repeat with other dashes.

    Examples
    --------
    >>> from evergrow_papers.figures import styles
    >>> styles({"igt": "IGT", "uls": "ULS"})["uls"].marker
    's'
    """
    n = len(COLOURS)
    return {
        value: Style(label, COLOURS[i % n], MARKERS[i % n], dashes if i < n else "--")
        for i, (value, label) in enumerate(labels.items())
    }


@dataclass(frozen=True)
class Panel:
    """One column over another, a curve for each value of a third column.

    Attributes
    ----------
    x, y : str
        Columns of the axes.
    series : str or tuple of str
        The column whose values are the curves; of several columns their tuples.
    styles : mapping of value to Style, or sequence
        How the curves look, and their order. Values alone are labelled by the words of the paper;
        where the values of ``x`` are names, no lines join them.
    where : mapping
        Selects the rows that are drawn.
    title, xlabel, ylabel : str
        Texts; the axes are labelled by the words of the paper unless they have labels here.
    ticks : sequence, str or None
        "measured" puts ticks at the measured values of ``x`` on a logarithmic axis, "each" at equal
        distances, where curves without dashes stand side by side; None leaves them to matplotlib.
    bars : bool
        Whether each value is a bar instead of a point of a curve.
    options : mapping
        Passed to ``Axes.set``, for example ``ylim`` or ``yscale``.
    level : value, default=None
        A value of ``series`` whose mean is a horizontal line instead of a curve.
    """

    x: str
    y: str
    series: str | tuple[str, ...]
    styles: Mapping[Any, Style] | Sequence[Any]
    where: Row = field(default_factory=dict)
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    ticks: Literal["measured", "each"] | None = None
    bars: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    level: Any = None

    def looks(self, table: Table, words: Words) -> Mapping[Any, Style]:
        """The styles of the curves."""
        if isinstance(self.styles, Mapping):
            return self.styles
        named = any(isinstance(x, str) for x in table.values(self.x))
        labels = {value: words.setting(_place(self, value)) for value in self.styles}
        return styles(labels, "none" if named else "-")


@dataclass(frozen=True)
class Panels:
    """A grid of panels, one row of them for each value of some columns, and one legend.

    Attributes
    ----------
    panels : sequence of Panel
        The panels of a row, from left to right.
    rows : tuple of str
        Columns whose values make the rows and their titles; without them there is one row.
    n_columns : int
        Panels in a line of the figure, if they are not to stand side by side.
    height : float
        Inches of each row.
    """

    panels: Sequence[Panel]
    rows: tuple[str, ...] = ()
    n_columns: int | None = None
    height: float = 2.5


Drawing = Panels | Callable[[Figure, Table], None]


def draw_figure(
    path: str | os.PathLike[str], experiment: Experiment, table: Table, words: Words
) -> None:
    """Draw a figure and write it as SVG; no window opens and no global state changes.

    The numbers that the paper prints are drawn into panels that have their columns.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(LOOK):
        figure = Figure(figsize=experiment.size)
        if isinstance(experiment.figure, Panels):
            draw_panels(figure, experiment.figure, table, words, Table(experiment.published))
        else:
            experiment.figure(figure, table)
        with atomic_write(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})


def draw_panels(
    figure: Figure, drawing: Panels, table: Table, words: Words, published: Table
) -> None:
    """Draw all panels of a figure, and one legend for them."""
    # No row for values that no panel draws.
    plain = {k: v for k, v in drawing.panels[0].where.items() if not callable(v)}
    drawn = table.where(**plain)
    places = [*dict.fromkeys(tuple(row.get(k) for k in drawing.rows) for row in drawn)]
    n_wide = drawing.n_columns or len(drawing.panels)
    n_lines = -(-len(drawing.panels) * len(places) // n_wide)
    figure.set_size_inches(max(9.0, 3.0 * n_wide), drawing.height * n_lines + 0.5)
    axes = figure.subplots(n_lines, n_wide, squeeze=False).ravel()
    for spare in axes[len(drawing.panels) * len(places) :]:
        spare.set_visible(False)
    for number, place in enumerate(places):
        where = dict(zip(drawing.rows, place, strict=True))
        mine = axes[number * len(drawing.panels) :][: len(drawing.panels)]
        for each, panel in zip(mine, drawing.panels, strict=True):
            draw_panel(each, panel, table.where(**where), words, published.where(**where))
        if place:
            mine[0].set_title(words.setting(where))
    add_legend(figure, *axes)


def draw_panel(
    axes: Axes, panel: Panel, table: Table, words: Words, published: Table | None = None
) -> None:
    """Draw the curves or bars of a panel, with standard deviations over the seeds."""
    chosen, scale = table.where(**panel.where), _scale(panel, words)
    looks = panel.looks(chosen, words)
    place, beside = _positions(panel, chosen, looks)
    xs = [*place]
    if panel.level is not None:
        style = looks[panel.level]
        mean = scale * chosen.mean(panel.y, **_place(panel, panel.level))
        axes.axhline(mean, color=style.colour, linestyle="--", label=style.label)
    for value, aside in beside.items():
        style = looks[value]
        rows = chosen.where(**_place(panel, value))
        at = [x for x in xs if len(rows.where(**{panel.x: x}).column(panel.y))]
        means = np.array([rows.mean(panel.y, **{panel.x: x}) for x in at]) * scale
        spread = np.array([rows.deviation(panel.y, **{panel.x: x}) for x in at]) * scale
        # A single seed has no deviation.
        error = spread if np.any(spread > 0) else None
        if panel.bars:
            look: Any = {"color": style.colour, "label": style.label, "error_kw": {"lw": 1}}
            axes.bar([place[x] + aside for x in at], means, 0.8 / len(beside), yerr=error, **look)
            continue
        axes.errorbar(
            [place[x] + aside for x in at],
            means,
            yerr=error,
            color=style.colour,
            marker=style.marker,
            linestyle=style.dashes,
            label=style.label,
            capsize=2,
            elinewidth=1,
        )
    if panel.bars or panel.ticks == "each":
        labels = [words.bare(panel.x, x) for x in xs]
        # Many long labels stand upright.
        upright = 90 if sum(map(len, labels)) > 120 else 0
        axes.set_xticks([*place.values()], labels, rotation=upright)
    elif panel.ticks == "measured" and xs:
        set_log_ticks(axes, xs)
    percent = panel.y in (*words.shares, *words.percentages)
    ylabel = panel.ylabel or words.quantity(panel.y) + (", %" if percent else "")
    xlabel = panel.xlabel or words.quantity(panel.x)
    axes.set(title=panel.title, xlabel=xlabel, ylabel=ylabel, **panel.options)
    if published is not None:
        _draw_published(axes, panel, published, words, chosen)


def _scale(panel: Panel, words: Words) -> float:
    return 100.0 if panel.y in words.shares else 1.0


def _positions(
    panel: Panel, chosen: Table, looks: Mapping[Any, Style]
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Where values of the x axis are, and how far aside of them those of each curve."""
    apart = panel.bars or panel.ticks == "each"
    xs = chosen.values(panel.x) if panel.ticks == "each" else sorted(chosen.values(panel.x))
    curves = [value for value in looks if value != panel.level]
    drawn = [value for value in curves if len(chosen.where(**_place(panel, value)))]
    aside = dict.fromkeys(drawn, 0.0)
    for number, value in enumerate(drawn):
        if apart and (panel.bars or looks[value].dashes == "none"):
            aside[value] = (number - (len(drawn) - 1) / 2) * 0.8 / len(drawn)
    return {x: n if apart else x for n, x in enumerate(xs)}, aside


def _draw_published(
    axes: Axes, panel: Panel, published: Table, words: Words, chosen: Table
) -> None:
    """Draw the numbers that a paper prints: the same markers, hollow and larger.

    The measured rows tell where values are that stand at equal distances.
    """
    looks = panel.looks(chosen, words)
    place, beside = _positions(panel, chosen, looks)
    label: str | None = "printed in the paper"
    for value, style in looks.items():
        found = published.where(**_place(panel, value))
        rows = Table(r for r in found if r.get(panel.y) is not None and panel.x in r)
        if panel.ticks == "each":
            rows = Table(row for row in rows if row[panel.x] in place)
        if len(rows) and not panel.bars:
            look: Any = {"color": style.colour, "marker": style.marker, "linestyle": "none"}
            at = [place.get(row[panel.x], row[panel.x]) + beside.get(value, 0.0) for row in rows]
            ys = _scale(panel, words) * rows.column(panel.y)
            axes.plot(at, ys, markerfacecolor="none", markersize=9, label=label, **look)
            label = None


def _place(panel: Panel, value: Any) -> dict[str, Any]:
    if isinstance(panel.series, str):
        return {panel.series: value}
    return dict(zip(panel.series, value, strict=True))


def add_legend(
    figure: Figure, *panels: Axes, place: LegendPlace | None = None, columns: int | None = None
) -> None:
    """One legend for all panels, outside of them, with every label once.

    By default it is above them if its labels fit into one line, and else on their right.
    """
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if place is None:
        fits = sum(len(label) + 6 for label in named) < 14 * figure.get_figwidth()
        place = "upper center" if fits else "right center"
        figure.set_figwidth(figure.get_figwidth() + (0 if fits else 2))
    n_columns = columns or (1 if place == "right center" else len(named))
    outside: Any = f"outside {place}"
    figure.legend(named.values(), named.keys(), loc=outside, ncols=n_columns)


def set_log_ticks(axes: Axes, values: Sequence[Any]) -> None:
    """Make the x axis logarithmic, with ticks at the measured values only."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
