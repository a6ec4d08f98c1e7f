"""How pictures look."""

from __future__ import annotations

from typing import Any

__all__ = ["BLACK", "BLUE", "GREEN", "ORANGE", "PINK", "RED", "STYLE"]

# Colours that people with any colour vision tell apart (Okabe and Ito).
BLACK, ORANGE, BLUE, GREEN, RED, PINK = (
    "#000000",
    "#e69f00",
    "#0072b2",
    "#009e73",
    "#d55e00",
    "#cc79a7",
)

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
