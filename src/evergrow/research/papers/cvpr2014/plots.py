"""How curves over classes look in the figures of this paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.research.experiments import Curve, Table
from evergrow.research.experiments.plots import BLACK, BLUE, GREEN, ORANGE, RED, Axes, Figure

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
    "retrained": Style("retrained", BLACK, "o", "--"),
    "rtst": Style("RTST", RED, "s"),
    "rust": Style("RUST", BLUE, "^"),
    "igt": Style("IGT", GREEN, "D"),
    "uls": Style("ULS", ORANGE, "v"),
}


def panels(figure: Figure, n_rows: int, n_columns: int, *, height: float = 2.5) -> list[list[Axes]]:
    """A grid of axes; the height of the figure follows the number of rows."""
    figure.set_size_inches(figure.get_figwidth(), height * n_rows + 0.5)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    return [list(row) for row in grid]


def plot_columns(
    row: Sequence[Axes], table: Table, x: str, columns: Sequence[str], style: Style
) -> None:
    """Draw one column over ``x`` in each panel of a row, shares in percent."""
    for axes, column in zip(row, columns, strict=True):
        scale = 100.0 if column in _SHARES else 1.0
        plot_curve(axes, table.curve(x, column), style, scale=scale)


def plot_curve(axes: Axes, curve: Curve, style: Style, *, scale: float = 1.0) -> None:
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


def plot_published(axes: Axes, x: float, y: float, style: Style) -> None:
    """Draw a number that the paper prints: the same marker, hollow and larger."""
    look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
    label = f"{style.label}, paper"
    axes.plot(x, y, markerfacecolor="none", markersize=9, linestyle="none", label=label, **look)
