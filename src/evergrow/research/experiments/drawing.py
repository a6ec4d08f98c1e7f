"""How pictures look: colours, styles, and files that are the same for the same picture."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evergrow.foundation.atomic import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "MARKERS",
    "ORANGE",
    "PINK",
    "RED",
    "SKY",
    "STYLE",
    "YELLOW",
    "check_drawing",
    "drawn",
]

# Colours that people with any colour vision tell apart (Okabe and Ito).
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
# Shapes tell curves apart where colours do not, as in print.
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
    # The same picture gives the same file.
    "svg.hashsalt": "evergrow",
    # Text as text: smaller files, and words that can be found and read aloud.
    "svg.fonttype": "none",
}


def check_drawing() -> None:
    """Say before any work that pictures cannot be drawn, if so."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(
            'pictures need matplotlib: pip install "evergrow[plot]"', name="matplotlib"
        )


@contextmanager
def drawn(path: str | os.PathLike[str], width: float, height: float) -> Iterator[Figure]:
    """Give an empty figure in our style and write it as SVG when the block is done.

    No window is opened and no global state of matplotlib is left changed. Width and height are
    in inches.
    """
    check_drawing()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        with written_whole(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})
