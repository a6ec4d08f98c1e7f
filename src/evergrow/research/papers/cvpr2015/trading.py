"""Accuracy over comparisons, as a parameter of the forest changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import shown
from evergrow.research.experiments.drawing import COLOURS, MARKERS
from evergrow.research.experiments.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_trade", "traded"]


def draw_trade(panel: Axes, table: Table, parameter: str, *, colour: int) -> None:
    """A line through the values of a parameter, each written at its place."""
    accuracy, cost = (table.curve(parameter, name) for name in ("accuracy", "comparisons"))
    y = 100 * accuracy.mean
    panel.errorbar(
        cost.mean,
        y,
        100 * accuracy.deviation,
        cost.deviation,
        marker=MARKERS[colour],
        color=COLOURS[colour],
        elinewidth=0.8,
    )
    for number, value in enumerate(accuracy.x.tolist()):
        # In turns above and below, as neighbours may lie close.
        aside = (4, 4) if number % 2 == 0 else (4, -9)
        place = (cost.mean[number], y[number])
        panel.annotate(f"{value:g}", place, aside, textcoords="offset points", size=7)
    panel.margins(0.12, 0.15)


def traded(table: Table, parameter: str, values: Sequence[float]) -> str:
    """Accuracy and comparisons at some values, as part of a sentence."""
    return ", ".join(
        f"{shown(table, 'accuracy', **{parameter: value})} for "
        f"{table.mean('comparisons', **{parameter: value}):.0f} comparisons at {value:g}"
        for value in values
    )
