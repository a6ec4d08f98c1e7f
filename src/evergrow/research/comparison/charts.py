"""The plots of a comparison, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evergrow.research.comparison.formats import duration, percent, size
from evergrow.research.comparison.result import Standing
from evergrow.research.comparison.svg import (
    Axis,
    circle,
    draw_frame,
    line,
    mark,
    path,
    spread,
    svg,
    text,
)

_WIDTH = 800.0
# Colour and shape of each family: the shape helps readers who cannot see the colour.
FAMILY_STYLES = {
    "forests": ("f0", "circle"),
    "means and least squares": ("f1", "square"),
    "scikit-learn": ("f2", "triangle"),
    "river": ("f3", "diamond"),
    "peers": ("f4", "hexagon"),
}


def accuracy_chart(standings: Sequence[Standing], numbers: Sequence[int]) -> str:
    """Plot the class mean by number of known classes; lines have numbers and names."""
    numbered = [
        (number, each) for number, each in zip(numbers, standings, strict=True) if each.curve
    ]
    shown = [each for _, each in numbered]
    height = max(380.0, 100.0 + 15.5 * len(shown))
    right = _WIDTH - 310
    x = Axis.over((n for each in shown for n, _ in each.curve), 56, right)
    y = Axis.over([0.0, *(a for each in shown for _, a in each.curve)], height - 56, 34)
    parts = draw_frame(x, y, "known classes", "class mean", "{:g}".format)
    ends = [(x.place(each.curve[-1][0]), y.place(each.curve[-1][1])) for each in shown]
    labels = spread([place for _, place in ends], 15.5, 30, height - 40)
    for (number, each), (end_x, end_y), label_y in zip(numbered, ends, labels, strict=True):
        kind, shape = FAMILY_STYLES[each.learner.family]
        places = [(x.place(n), y.place(a)) for n, a in each.curve]
        parts.append(path(places, f"curve {kind}"))
        parts += [
            mark(shape, *place, 3.2, f"dot {kind}", f"{each.learner.title}: {percent(a)} at {n}")
            for place, (n, a) in zip(places, each.curve, strict=True)
        ]
        parts.append(path([(end_x + 5, end_y), (right + 14, label_y)], "leader"))
        label = f"{percent(each.curve[-1][1])} \N{MIDDLE DOT} {number} {each.learner.title}"
        parts.append(text(right + 18, label_y + 4, label, f"label {kind}"))
    return svg(_WIDTH, height, "Class mean by number of known classes", parts)


def cost_chart(standings: Sequence[Standing], numbers: Sequence[int]) -> str:
    """Plot the class mean by seconds per update; learners have their numbers in the table."""
    height = 420.0
    shown = [
        (number, each)
        for number, each in zip(numbers, standings, strict=True)
        if each.finished and each.seconds > 0
    ]
    x = Axis.over((each.seconds for _, each in shown), 56, _WIDTH - 24, log=True)
    y = Axis.over((each.class_mean for _, each in shown), height - 56, 34)
    parts = draw_frame(x, y, "seconds per update (or per retraining)", "final class mean", duration)
    for (number, each), (at_x, at_y) in zip(shown, _apart(shown, x, y), strict=True):
        kind, shape = FAMILY_STYLES[each.learner.family]
        hollow = "" if each.learner.way == "grows" else " hollow"
        title = f"{each.learner.title}: {percent(each.class_mean)}, {duration(each.seconds)}"
        true_x, true_y = x.place(each.seconds), y.place(each.class_mean)
        if math.hypot(at_x - true_x, at_y - true_y) > 1:
            parts.append(line(true_x, true_y, at_x, at_y, "leader"))
            parts.append(circle(true_x, true_y, 2, f"dot {kind}"))
        parts.append(mark(shape, at_x, at_y, 11, f"point {kind}{hollow}", title))
        parts.append(text(at_x, at_y + 4.5, str(number), f"number{hollow}", anchor="middle"))
    return svg(_WIDTH, height, "Class mean by seconds per update", parts)


def _apart(shown: Sequence[tuple[int, Standing]], x: Axis, y: Axis) -> list[tuple[float, float]]:
    """Return the places of marks, moved up or down so that they do not overlap."""
    found: list[tuple[float, float]] = []
    for _, each in shown:
        at_x, at_y = x.place(each.seconds), y.place(each.class_mean)
        shifts = sorted(range(-200, 201, 4), key=abs)
        free = (
            (at_x, at_y + shift)
            for shift in shifts
            if all(math.hypot(at_x - px, at_y + shift - py) >= 25 for px, py in found)
        )
        found.append(next(free, (at_x, at_y)))
    return found


def memory_chart(standings: Sequence[Standing]) -> str:
    """Plot what must be stored to continue learning, as bars on a logarithmic scale."""
    shown = sorted((each for each in standings if each.finished), key=lambda each: each.n_bytes)
    height = 70.0 + 22 * len(shown)
    left = 250.0
    x = Axis.over((each.n_bytes for each in shown), left, _WIDTH - 80, log=True)
    parts = []
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(line(at, height - 42, at, 14, "grid"))
        parts.append(text(at, height - 24, size(tick), "tick", anchor="middle"))
    for place, each in enumerate(shown):
        top = 16 + 22 * place
        kind, _ = FAMILY_STYLES[each.learner.family]
        end = x.place(each.n_bytes)
        parts.append(text(left - 8, top + 13, each.learner.title, "tick", anchor="end"))
        parts.append(
            f'<rect class="bar {kind}" x="{left:.1f}" y="{top}" '
            f'width="{max(end - left, 1):.1f}" height="16" rx="2"/>'
        )
        parts.append(text(end + 6, top + 13, size(each.n_bytes), "tick"))
    parts.append(
        text((left + _WIDTH - 80) / 2, height - 6, "bytes to store", "name", anchor="middle")
    )
    return svg(_WIDTH, height, "Bytes to store", parts)
