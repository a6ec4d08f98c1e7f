"""The plots of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evergrow.research.comparison.result import Standing
from evergrow.research.comparison.svg import (
    Axis,
    Frame,
    circle,
    line,
    mark,
    path,
    spread,
    svg,
    text,
)
from evergrow.research.comparison.wording import duration, percent, size

__all__ = ["FAMILY_STYLES", "accuracy_chart", "cost_chart", "memory_chart"]

_WIDTH = 800.0
# Colour and shape of each family: who does not see the one sees the other.
FAMILY_STYLES = {
    "forests": ("f0", "circle"),
    "means and least squares": ("f1", "square"),
    "scikit-learn": ("f2", "triangle"),
    "river": ("f3", "diamond"),
}


def accuracy_chart(standings: Sequence[Standing], numbers: Sequence[int]) -> str:
    """Class mean over the number of classes known; lines bear the learners' numbers and names."""
    numbered = [
        (number, each) for number, each in zip(numbers, standings, strict=True) if each.curve
    ]
    shown = [each for _, each in numbered]
    height = max(380.0, 100.0 + 15.5 * len(shown))
    right = _WIDTH - 310
    x = Axis.over((n for each in shown for n, _ in each.curve), 56, right)
    y = Axis.over([0.0, *(a for each in shown for _, a in each.curve)], height - 56, 34)
    frame = Frame(
        x,
        y,
        "classes known",
        "class mean over them",
        [f"{tick:g}" for tick in x.ticks],
        [f"{100 * tick:.0f} %" for tick in y.ticks],
    )
    parts = frame.draw()
    ends = [(x.place(each.curve[-1][0]), y.place(each.curve[-1][1])) for each in shown]
    labels = spread([place for _, place in ends], 15.5, 30, height - 40)
    for (number, each), (end_x, end_y), label_y in zip(numbered, ends, labels, strict=True):
        kind, shape = FAMILY_STYLES[each.contender.family]
        places = [(x.place(n), y.place(a)) for n, a in each.curve]
        parts.append(path(places, f"curve {kind}"))
        parts += [
            mark(shape, *place, 3.2, f"dot {kind}", f"{each.contender.title}: {percent(a)} at {n}")
            for place, (n, a) in zip(places, each.curve, strict=True)
        ]
        parts.append(path([(end_x + 5, end_y), (right + 14, label_y)], "leader"))
        said = f"{percent(each.curve[-1][1])} \N{MIDDLE DOT} {number} {each.contender.title}"
        parts.append(text(right + 18, label_y + 4, said, f"label {kind}"))
    return svg(_WIDTH, height, "Class mean over the number of classes known", parts)


def cost_chart(standings: Sequence[Standing], numbers: Sequence[int]) -> str:
    """Class mean over seconds per update; learners go by their numbers in the table."""
    height = 420.0
    shown = [
        (number, each)
        for number, each in zip(numbers, standings, strict=True)
        if each.finished and each.seconds > 0
    ]
    x = Axis.over((each.seconds for _, each in shown), 56, _WIDTH - 24, log=True)
    y = Axis.over((each.class_mean for _, each in shown), height - 56, 34)
    frame = Frame(
        x,
        y,
        "seconds per update (of those trained anew: per training)",
        "class mean in the end",
        [duration(tick) for tick in x.ticks],
        [f"{100 * tick:.0f} %" for tick in y.ticks],
    )
    parts = frame.draw()
    for (number, each), (at_x, at_y) in zip(shown, _apart(shown, x, y), strict=True):
        kind, shape = FAMILY_STYLES[each.contender.family]
        hollow = "" if each.contender.way == "grows" else " hollow"
        title = f"{each.contender.title}: {percent(each.class_mean)}, {duration(each.seconds)}"
        true_x, true_y = x.place(each.seconds), y.place(each.class_mean)
        if math.hypot(at_x - true_x, at_y - true_y) > 1:
            parts.append(line(true_x, true_y, at_x, at_y, "leader"))
            parts.append(circle(true_x, true_y, 2, f"dot {kind}"))
        parts.append(mark(shape, at_x, at_y, 11, f"point {kind}{hollow}", title))
        parts.append(text(at_x, at_y + 4.5, str(number), f"number{hollow}", anchor="middle"))
    return svg(_WIDTH, height, "Class mean over seconds per update", parts)


def _apart(shown: Sequence[tuple[int, Standing]], x: Axis, y: Axis) -> list[tuple[float, float]]:
    """Places of marks, each moved up or down until it covers no other."""
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
    """What must be kept to learn on, as bars on a scale of powers of ten."""
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
        kind, _ = FAMILY_STYLES[each.contender.family]
        end = x.place(each.n_bytes)
        parts.append(text(left - 8, top + 13, each.contender.title, "tick", anchor="end"))
        parts.append(
            f'<rect class="bar {kind}" x="{left:.1f}" y="{top}" '
            f'width="{max(end - left, 1):.1f}" height="16" rx="2"/>'
        )
        parts.append(text(end + 6, top + 13, size(each.n_bytes), "tick"))
    parts.append(
        text(
            (left + _WIDTH - 80) / 2, height - 6, "bytes kept to learn on", "name", anchor="middle"
        )
    )
    return svg(_WIDTH, height, "Bytes kept to learn on", parts)
