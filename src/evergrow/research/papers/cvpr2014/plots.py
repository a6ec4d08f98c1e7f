"""How curves over classes look in the figures of this paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.research import experiments as ex

DATA_NAMES = {"features": "features", "words": "visual words"}
RELATIVE, DISTANCES = "accuracy, % of retrained", "distances per tree\nand test image"
# Columns that are drawn in percent.
_SHARES = ("accuracy", "relative")


@dataclass(frozen=True)
class Style:
    """Label, colour and marker of a curve."""

    label: str
    colour: str
    marker: str
    dashes: str = "-"


STYLES = {
    "retrained": Style("retrained", ex.BLACK, "o", "--"),
    "rtst": Style("RTST", ex.RED, "s"),
    "rust": Style("RUST", ex.BLUE, "^"),
    "igt": Style("IGT", ex.GREEN, "D"),
    "uls": Style("ULS", ex.ORANGE, "v"),
}


def panels(
    figure: ex.Figure, n_rows: int, n_columns: int, *, height: float = 2.5
) -> list[list[ex.Axes]]:
    """A grid of axes; the height of the figure follows the number of rows."""
    figure.set_size_inches(figure.get_figwidth(), height * n_rows + 0.5)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    return [list(row) for row in grid]


def draw_rows(
    figure: ex.Figure,
    table: ex.Table,
    *,
    draw_row: Callable[[list[ex.Axes], ex.Table, str], None],
    n_columns: int,
    xlabel: str = "classes",
) -> None:
    """One row of panels per data set, which ``draw_row`` fills, and one legend."""
    datas = table.values("data")
    grid = panels(figure, len(datas), n_columns)
    for row, data in zip(grid, datas, strict=True):
        draw_row(row, table.where(data=data), DATA_NAMES[data])
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    ex.add_legend(figure, grid[0][0])


def plot_columns(
    row: Sequence[ex.Axes], table: ex.Table, x: str, columns: Sequence[str], style: Style
) -> None:
    """Draw one column over ``x`` in each panel of a row, shares in percent."""
    for axes, column in zip(row, columns, strict=True):
        scale = 100.0 if column in _SHARES else 1.0
        plot_curve(axes, table.curve(x, column), style, scale=scale)


def plot_curve(axes: ex.Axes, curve: ex.Curve, style: Style, *, scale: float = 1.0) -> None:
    """Draw means with their standard deviations."""
    axes.errorbar(
        curve.x,
        scale * curve.mean,
        # A single seed has no deviation.
        yerr=scale * curve.deviation if np.any(curve.deviation > 0) else None,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dashes,
        label=style.label,
        capsize=2,
        elinewidth=1,
    )


def plot_published(axes: ex.Axes, x: float, y: float, style: Style) -> None:
    """Draw a number that the paper prints: the same marker, hollow and larger."""
    look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
    label = f"{style.label}, paper"
    axes.plot(x, y, markerfacecolor="none", markersize=9, linestyle="none", label=label, **look)
