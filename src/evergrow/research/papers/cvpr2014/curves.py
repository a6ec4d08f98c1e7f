"""How curves over classes look in the pictures of this paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evergrow.research.experiments.drawing import BLACK, BLUE, GREEN, ORANGE, RED
from evergrow.research.experiments.table import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAPER", "STYLES", "Style", "legend_above", "panels", "plot_curve", "plot_paper"]

PAPER = "paper"


@dataclass(frozen=True)
class Style:
    """Name in legends, colour and shape of a curve."""

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
    """A grid of axes, the picture as high as its rows need."""
    figure.set_size_inches(figure.get_figwidth(), height * n_rows + 0.5)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    return [list(row) for row in grid]


def plot_curve(
    axes: Axes, curve: Curve, style: Style, *, scale: float = 1.0, places: Any = None
) -> None:
    """Draw means with their standard deviations, at given places where x is no number."""
    axes.errorbar(
        curve.x if places is None else places,
        scale * curve.mean,
        # A single seed has no deviation to draw.
        yerr=scale * curve.deviation if np.any(curve.deviation > 0) else None,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dashes,
        label=style.label,
        capsize=2,
        elinewidth=1,
    )


def plot_paper(axes: Axes, x: float, y: float, style: Style) -> None:
    """A number that the paper prints: the same shape, hollow and larger."""
    axes.plot(
        x,
        y,
        color=style.colour,
        marker=style.marker,
        markerfacecolor="none",
        markersize=9,
        linestyle="none",
        label=f"{style.label}, {PAPER}",
    )


def legend_above(figure: Figure, *panels_with_names: Axes, columns: int | None = None) -> None:
    """One legend for all panels, above them, every name once."""
    named: dict[str, Any] = {}
    for axes in panels_with_names:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(
        named.values(), named.keys(), loc="outside upper center", ncols=columns or len(named)
    )
