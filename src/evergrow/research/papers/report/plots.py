"""How strategies are drawn: curves over the number of classes, and bars at the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.report.protocol import RETRAINED, STRATEGIES, measured_as_usual

LOOKS = {
    RETRAINED: (ex.BLACK, "X"),
    "ULS": (ex.ORANGE, "v"),
    "IGT": (ex.BLUE, "o"),
    "RTST": (ex.GREEN, "s"),
    "RTSTQ": (ex.PINK, "^"),
}

# Column, label of the axis, and the factor for the numbers.
PANELS = (
    ("relative", "accuracy, % of retraining", 100.0),
    ("test_seconds", "test time, ms", 1000.0),
    ("update_seconds", "training time of a step, s", 1.0),
)


def draw_curve(axes: ex.Axes, table: ex.Table, column: str, factor: float, **look: Any) -> None:
    """Draw the mean and standard deviation over seeds, if the column was measured."""
    curve = table.curve("n_classes", column)
    if len(curve.x):
        ex.plot_band(axes, curve, scale=factor, alpha=0.15, **look)


def draw_over_classes(figure: ex.Figure, table: ex.Table) -> None:
    """Accuracy, test time and training time of every strategy over the number of classes."""
    table = measured_as_usual(table)
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
    ex.add_legend(figure, panels[-1], columns=len(LOOKS))


def draw_bars(
    figure: ex.Figure, table: ex.Table, log: tuple[str, ...], published: tuple[ex.Row, ...] = ()
) -> None:
    """Accuracy and times of both kinds of forest at the last number of classes.

    Columns in ``log`` have a logarithmic axis: SVMs take a hundred times as long.
    """
    table = measured_as_usual(table)
    last = table.where(n_classes=max(table.values("n_classes")))
    names = (RETRAINED, *STRATEGIES)
    places = np.arange(len(names))
    panels = figure.subplots(1, len(PANELS))
    columns = (("accuracy", "accuracy, %", 100.0), *PANELS[1:])
    for axes, (column, label, factor) in zip(panels, columns, strict=True):
        for shift, kind, colour in ((-0.2, "NCM", ex.BLUE), (0.2, "SVM", ex.ORANGE)):
            each = [last.where(forest=kind, strategy=name) for name in names]
            axes.bar(
                places + shift,
                [factor * rows.mean(column) for rows in each],
                0.38,
                yerr=[factor * rows.deviation(column) for rows in each],
                error_kw={"elinewidth": 1, "ecolor": ex.GREY},
                color=colour,
                label=f"{kind} forest",
            )
        _draw_published(axes, published, column, factor)
        if column in log:
            axes.set_yscale("log")
        axes.set_xticks(places, names, rotation=30)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
    ex.add_legend(figure, panels[0], columns=3)


def _draw_published(
    axes: ex.Axes, published: tuple[ex.Row, ...], column: str, factor: float
) -> None:
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
            markeredgecolor=ex.BLACK,
            label="paper",
        )
