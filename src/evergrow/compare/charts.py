"""The plots of a comparison: SVG by matplotlib, coloured by the style sheet of the page."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from evergrow.compare.results import Standing, duration, percent, size

# Colours after Okabe and Ito, for colour-blind readers. The page has a variable for each of them,
# which is lighter in dark mode.
_COLOURS = {
    "#0072b2": "--c0",
    "#c04f00": "--c1",
    "#00805d": "--c2",
    "#b0447f": "--c3",
    "#8a6d00": "--c4",
    "#9c1c28": "--c5",
    "#6a4fb3": "--c6",
    "#4d5560": "--c7",
}
N_COLOURS = len(_COLOURS)
_INK, _FAINT, _RULE, _PAGE = "#1c2024", "#5b6470", "#d9dee3", "#ffffff"
_VARIABLES = _COLOURS | {_INK: "--ink", _FAINT: "--faint", _RULE: "--rule", _PAGE: "--page"}
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)))
# The shape of marks is that of the family. Lines are told apart by colour and dashes.
_MARKERS = {
    "forests": ("o", "Evergrow: forests"),
    "means and least squares": ("s", "Evergrow: means and least squares"),
    "scikit-learn": ("^", "scikit-learn"),
    "river": ("D", "river"),
    "peers": ("h", "analytic heads of the field"),
}
_LOOK: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": _FAINT,
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.color": _RULE,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "evergrow",
    "text.color": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
}
# In inches: the width of figures, and the height of a line of text.
_WIDTH, _LINE = 9.6, 0.19

Numbered = Sequence[tuple[int, Standing]]


def places_of_styles(n_learners: int, important: Collection[int]) -> dict[int, int]:
    """Return the place in the cycle of colours of each number from 1, important ones first."""
    order = sorted(range(1, n_learners + 1), key=lambda number: number not in important)
    return {number: place for place, number in enumerate(order)}


def draw_charts(standings: Sequence[Standing], important: Collection[int]) -> tuple[str, str, str]:
    """Draw accuracy by classes, accuracy by seconds, and bytes; empty where nothing was measured.

    Learners have their numbers in the table; those of the ``important`` numbers stand out.
    """
    from matplotlib import rc_context

    numbered = [*enumerate(standings, 1)]
    finished = [pair for pair in numbered if pair[1].finished]
    styles = {
        number: {
            "color": [*_COLOURS][place % N_COLOURS],
            "linestyle": _DASHES[place // N_COLOURS % len(_DASHES)],
            "linewidth": 3.0 if number in important else 1.3,
            "alpha": 1.0 if number in important else 0.8,
            "zorder": 3 if number in important else 2,
        }
        for number, place in places_of_styles(len(standings), important).items()
    }
    with rc_context(_LOOK):
        return (
            _accuracies([pair for pair in numbered if pair[1].curve], styles),
            _costs([pair for pair in finished if pair[1].seconds > 0], styles, important),
            _memory(finished, styles),
        )


class _Chart:
    """A figure with one pair of axes; ``titles`` are shown where the mouse points."""

    def __init__(self, height: float) -> None:
        from matplotlib.figure import Figure

        self.height = height
        self._figure = Figure((_WIDTH, height), facecolor="none")
        self.axes = self._figure.add_subplot(facecolor="none")
        self.titles: dict[str, str] = {}

    def svg(self, title: str) -> str:
        """Return the element, with variables of the style sheet as colours."""
        written = io.StringIO()
        unwanted = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        self._figure.savefig(written, format="svg", metadata=unwanted)
        text = written.getvalue()
        text = text[text.index("<svg") :]
        for colour, variable in _VARIABLES.items():
            text = text.replace(colour, f"var({variable})")
        for group, words in self.titles.items():
            start = f'<g id="{group}">'
            text = text.replace(start, f"{start}<title>{escape(words)}</title>")
        return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _accuracies(numbered: Numbered, styles: Mapping[int, Mapping[str, Any]]) -> str:
    if not numbered:
        return ""
    chart = _Chart(max(4.8, 1.2 + _LINE * len(numbered)))
    axes = chart.axes
    for number, each in numbered:
        marker, _ = _MARKERS[each.learner.family]
        chart.titles[f"line{number}"] = each.learner.title
        axes.plot(
            *zip(*each.curve, strict=True),
            marker=marker,
            ms=4,
            gid=f"line{number}",
            **styles[number],
        )
    axes.set(xlabel="known classes", ylabel="mean class accuracy")
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    # Names stand at the right end of the lines, apart from each other.
    low, high = axes.get_ylim()
    gap = (high - low) / (chart.height / _LINE)
    places = spread_apart([each.curve[-1][1] for _, each in numbered], gap, high)
    for (number, each), place in zip(numbered, places, strict=True):
        n, accuracy = each.curve[-1]
        stopped = "" if each.finished else " (stopped)"
        axes.annotate(
            f"{percent(accuracy)} \N{MIDDLE DOT} {number} {each.learner.title}{stopped}",
            (n, accuracy),
            (1.03, place),
            textcoords=axes.get_yaxis_transform(),
            color=styles[number]["color"],
            weight="bold" if styles[number]["zorder"] > 2 else "normal",
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": styles[number]["color"]},
            annotation_clip=False,
        )
    return chart.svg("Mean class accuracy by number of known classes")


def _costs(
    numbered: Numbered, styles: Mapping[int, Mapping[str, Any]], important: Collection[int]
) -> str:
    if not numbered:
        return ""
    chart = _Chart(5.6)
    axes = chart.axes
    for number, each in numbered:
        colour = styles[number]["color"]
        costs = f"{percent(each.class_mean)}, {duration(each.seconds)}"
        chart.titles[f"mark{number}"] = f"{each.learner.title}: {costs}"
        axes.plot(
            each.seconds,
            each.class_mean,
            marker=_MARKERS[each.learner.family][0],
            ms=7,
            color=colour,
            mfc=colour if each.learner.way == "grows" else _PAGE,
            gid=f"mark{number}",
        )
        axes.annotate(
            f"{number} {each.learner.title}" if number in important else str(number),
            (each.seconds, each.class_mean),
            (5, 4),
            textcoords="offset points",
            color=colour,
            weight="bold" if number in important else "normal",
        )
    axes.set(xscale="log", xlabel="seconds per update (or per retraining)")
    axes.set_ylabel("mean class accuracy at the end")
    axes.xaxis.set_major_formatter(lambda value, _: duration(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    # The shapes of marks, for both plots of accuracies.
    families = dict.fromkeys(each.learner.family for _, each in numbered)
    for marker, name in (_MARKERS[family] for family in families):
        axes.plot([], [], marker, color=_FAINT, label=name)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=len(families))
    return chart.svg("Mean class accuracy by seconds per update")


def _memory(numbered: Numbered, styles: Mapping[int, Mapping[str, Any]]) -> str:
    if not numbered:
        return ""
    numbered = sorted(numbered, key=lambda pair: -pair[1].n_bytes)
    chart = _Chart(0.9 + 0.3 * len(numbered))
    axes = chart.axes
    bars = axes.barh(
        [f"{number} {each.learner.title}" for number, each in numbered],
        [each.n_bytes for _, each in numbered],
        color=[styles[number]["color"] for number, _ in numbered],
    )
    axes.bar_label(bars, [size(each.n_bytes) for _, each in numbered], padding=4)
    axes.set(xscale="log", xlabel="bytes to store")
    axes.xaxis.set_major_formatter(lambda value, _: size(value))
    axes.grid(visible=False, axis="y")
    return chart.svg("Bytes to store")


def spread_apart(places: Sequence[float], gap: float, high: float) -> list[float]:
    """Move places apart, so that labels do not overlap, and below ``high``.

    >>> spread_apart([10, 10, 30], 12, 40)
    [10.0, 22.0, 34.0]
    """
    order = np.argsort(places, kind="stable")
    found = np.asarray(places, float)[order]
    for i in range(1, len(found)):
        found[i] = max(found[i], found[i - 1] + gap)
    limit = high
    for i in reversed(range(len(found))):
        found[i] = limit = min(found[i], limit)
        limit -= gap
    apart = np.empty(len(found))
    apart[order] = found
    return apart.tolist()
