"""How figures look: colours, styles, legends, and files that are the same for the same figure."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from evergrow.foundation.atomic import atomic_write
from evergrow.foundation.extras import install_command
from evergrow.research.experiments.table import Curve

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    Axes = matplotlib.axes.Axes
    Figure = matplotlib.figure.Figure
else:
    # Matplotlib is optional; at run time these names occur in annotations only.
    Axes = Figure = Any

LegendPosition = Literal["upper center", "lower center", "right center"]

# Colours that can be told apart with any colour vision (Okabe and Ito).
BLACK, ORANGE, BLUE, GREEN, RED, PINK, SKY, YELLOW = (
    "#000000",
    "#e69f00",
    "#0072b2",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
)
GREY = "#7f7f7f"

# Yellow is too pale for lines on white.
COLOURS = (BLUE, RED, GREEN, ORANGE, PINK, SKY, BLACK, GREY)
# Markers tell curves apart where colours do not, as in print.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STYLE: dict[Any, Any] = {
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


def check_matplotlib() -> None:
    """Raise an error, before any work, if figures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"figures need matplotlib: {install_command('plot')}", name="matplotlib")


@contextmanager
def saved_figure(path: str | os.PathLike[str], width: float, height: float) -> Iterator[Figure]:
    """Give an empty figure in our style and write it as SVG at the end of the block.

    No window is opened and no global state of matplotlib is changed. Width and height are in
    inches.
    """
    check_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        with atomic_write(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})


def add_legend(
    figure: Figure,
    *panels: Axes,
    place: LegendPosition = "upper center",
    columns: int | None = None,
) -> None:
    """One legend for all panels, outside of them, with every label once."""
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    n_columns = columns or (1 if place == "right center" else len(named))
    outside: Any = f"outside {place}"
    figure.legend(named.values(), named.keys(), loc=outside, ncols=n_columns)


def plot_band(axes: Axes, curve: Curve, *, scale: float, alpha: float, **style: Any) -> None:
    """Draw the means, and a band of one standard deviation to both sides."""
    mean, deviation = scale * curve.mean, scale * curve.deviation
    axes.plot(curve.x, mean, **style)
    if deviation.any():
        low, high = mean - deviation, mean + deviation
        axes.fill_between(curve.x, low, high, color=style["color"], alpha=alpha, linewidth=0)


def set_log_ticks(axes: Axes, values: Sequence[Any], labels: Sequence[str] | None = None) -> None:
    """Make the x axis logarithmic, with ticks at the measured values only."""
    axes.set_xscale("log")
    axes.set_xticks(values, labels or [str(value) for value in values])
    axes.minorticks_off()
