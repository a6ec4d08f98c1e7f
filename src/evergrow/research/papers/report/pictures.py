"""How the report's strategies are drawn: curves over classes, and bars at the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evergrow.research.experiments.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PINK
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.report.growing import RETRAINED, STRATEGIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LOOKS", "PANELS", "draw_bars", "draw_curve", "draw_over_classes"]

LOOKS = {
    RETRAINED: (BLACK, "X"),
    "ULS": (ORANGE, "v"),
    "IGT": (BLUE, "o"),
    "RTST": (GREEN, "s"),
    "RTSTQ": (PINK, "^"),
}

# Column, what the axis says, and by how much numbers are multiplied.
PANELS = (
    ("relative", "accuracy, % of retraining", 100.0),
    ("test_seconds", "test time, ms", 1000.0),
    ("update_seconds", "training time of a step, s", 1.0),
)


def draw_curve(axes: Axes, table: Table, column: str, factor: float, **look: Any) -> None:
    """Mean over seeds, and a band of one standard deviation to both sides."""
    curve = table.curve("n_classes", column)
    if not len(curve.x):
        return
    mean, deviation = factor * curve.mean, factor * curve.deviation
    axes.plot(curve.x, mean, **look)
    if deviation.any():
        low, high = mean - deviation, mean + deviation
        axes.fill_between(curve.x, low, high, color=look["color"], alpha=0.15, linewidth=0)


def draw_over_classes(figure: Figure, table: Table) -> None:
    """Accuracy, test time and training time of every strategy over the number of classes."""
    panels = figure.subplots(1, len(PANELS))
    for axes, (column, label, factor) in zip(panels, PANELS, strict=True):
        for name, (colour, marker) in LOOKS.items():
            if column == "relative" and name == RETRAINED:
                axes.axhline(100, color=colour, linestyle="--", linewidth=1)
                continue
            look = {"color": colour, "marker": marker, "label": name}
            draw_curve(axes, table.where(strategy=name), column, factor, **look)
        axes.set_xlabel("classes")
        axes.set_ylabel(label)
        sizes = sorted(table.values("n_classes"))
        axes.set_xticks(sizes[:: 1 + len(sizes) // 6])
        axes.set_ylim(bottom=0)
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(LOOKS))


def draw_bars(
    figure: Figure, table: Table, log: tuple[str, ...], published: tuple[Row, ...] = ()
) -> None:
    """Accuracy and times of both kinds of forest at the last number of classes.

    Columns in ``log`` are drawn on a logarithmic axis: SVMs take a hundred times as long.
    """
    last = table.where(n_classes=max(table.values("n_classes")))
    names = (RETRAINED, *STRATEGIES)
    places = np.arange(len(names))
    panels = figure.subplots(1, len(PANELS))
    columns = (("accuracy", "accuracy, %", 100.0), *PANELS[1:])
    for axes, (column, label, factor) in zip(panels, columns, strict=True):
        for shift, kind, colour in ((-0.2, "NCM", BLUE), (0.2, "SVM", ORANGE)):
            each = [last.where(forest=kind, strategy=name) for name in names]
            axes.bar(
                places + shift,
                [factor * rows.mean(column) for rows in each],
                0.38,
                yerr=[factor * rows.deviation(column) for rows in each],
                error_kw={"elinewidth": 1, "ecolor": GREY},
                color=colour,
                label=f"{kind} forest",
            )
        _draw_printed(axes, published, column, factor)
        if column in log:
            axes.set_yscale("log")
        axes.set_xticks(places, names, rotation=30)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)


def _draw_printed(axes: Axes, published: tuple[Row, ...], column: str, factor: float) -> None:
    shifts = {"NCM": -0.2, "SVM": 0.2}
    names = (RETRAINED, *STRATEGIES)
    found = [row for row in published if row.get(column) is not None]
    if found:
        axes.plot(
            [names.index(row["strategy"]) + shifts[row["forest"]] for row in found],
            [factor * row[column] for row in found],
            "D",
            markersize=6,
            markerfacecolor="none",
            markeredgecolor=BLACK,
            label="paper",
        )
