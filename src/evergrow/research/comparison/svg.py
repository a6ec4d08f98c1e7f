"""SVG elements for inline plots, coloured by the style sheet of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, log: bool = False) -> Axis:
        """Create an axis with round ends that contains the values."""
        found = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = (min(found), max(found)) if found else (1.0, 10.0)
        if log:
            return cls(
                10.0 ** math.floor(math.log10(low)),
                10.0 ** max(math.ceil(math.log10(high)), math.floor(math.log10(low)) + 1),
                start,
                end,
                True,
            )
        step = _step(high - low or 1.0)
        return cls(
            step * math.floor(low / step),
            max(step * math.ceil(high / step), low + step),
            start,
            end,
        )

    def place(self, value: float) -> float:
        """Return the coordinate of a value."""
        scale = math.log10 if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round numbers on the axis."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        step = _step(self.high - self.low)
        n = math.floor((self.high - self.low) / step + 1e-9)
        first_tick = step * math.ceil(self.low / step - 1e-9)
        return [first_tick + i * step for i in range(n + 1)]


def _step(width: float) -> float:
    """Return a round step width, for about five steps."""
    rough = width / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def draw_frame(
    x: Axis, y: Axis, x_name: str, y_name: str, x_format: Callable[[float], str]
) -> list[str]:
    """Draw two axes with grid, tick labels and names; ``y`` is a share, shown in percent."""
    left, right, bottom, top = x.start, x.end, y.start, y.end
    parts = []
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(line(at, bottom, at, top, "grid"))
        parts.append(text(at, bottom + 18, x_format(tick), "tick", anchor="middle"))
    for tick in y.ticks:
        at = y.place(tick)
        parts.append(line(left, at, right, at, "grid"))
        parts.append(text(left - 8, at + 4, f"{100 * tick:.0f}%", "tick", anchor="end"))
    parts.append(line(left, bottom, right, bottom, "axis"))
    parts.append(line(left, bottom, left, top, "axis"))
    parts.append(text((left + right) / 2, bottom + 38, x_name, "name", anchor="middle"))
    parts.append(text(left - 8, top - 12, y_name, "name", anchor="start"))
    return parts


def svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Join elements into a scalable image; screen readers read its title."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    coordinates = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{coordinates}"/>'


def text(x: float, y: float, words: str, kind: str, *, anchor: str = "start") -> str:
    """Return escaped text."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def group(parts: Iterable[str], kind: str) -> str:
    """Return elements that share their style."""
    return f'<g class="{kind}">{"".join(parts)}</g>'


def circle(x: float, y: float, radius: float, kind: str, title: str = "") -> str:
    """Return a circle."""
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{inside}</circle>'


# Corners relative to the centre, by shape; any other shape is a circle.
_CORNERS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle": ((0, -1.25), (1.2, 0.9), (-1.2, 0.9)),
    "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    "hexagon": ((-0.6, -1.1), (0.6, -1.1), (1.25, 0), (0.6, 1.1), (-0.6, 1.1), (-1.25, 0)),
}


def mark(shape: str, x: float, y: float, radius: float, kind: str, title: str = "") -> str:
    """Return a circle, square, triangle, diamond or hexagon."""
    if shape not in _CORNERS:
        return circle(x, y, radius, kind, title)
    corners = " ".join(f"{x + radius * dx:.1f},{y + radius * dy:.1f}" for dx, dy in _CORNERS[shape])
    return f'<polygon class="{kind}" points="{corners}"><title>{escape(title)}</title></polygon>'


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart, as little as possible, so that their labels do not overlap.

    >>> spread([10, 10, 30], 12, 0, 100)
    [4.0, 16.0, 30.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[tuple[list[int], float]] = []
    for i in order:
        group, middle = [i], float(places[i])
        while groups:
            before, middle_before = groups[-1]
            apart = gap * (len(before) + len(group)) / 2
            if middle - middle_before >= apart:
                break
            groups.pop()
            total = len(before) + len(group)
            middle = (middle_before * len(before) + middle * len(group)) / total
            group = before + group
        half = gap * (len(group) - 1) / 2
        middle = min(max(middle, low + half), max(high - half, low + half))
        groups.append((group, middle))
    found = [0.0] * len(places)
    for group, middle in groups:
        for place, i in enumerate(group):
            found[i] = middle + gap * (place - (len(group) - 1) / 2)
    return found


@dataclass(frozen=True)
class Box:
    """A rectangle, such as the place of a label."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Return the area that both have in common."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)

    def nearest(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the point of the rectangle that is nearest to another point."""
        x, y = point
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)

    def is_crossed(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Return whether the line between two points passes through the rectangle."""
        steps = (k / 16 for k in range(17))
        points = ((_between(start[0], end[0], s), _between(start[1], end[1], s)) for s in steps)
        return any(self.left < x < self.right and self.top < y < self.bottom for x, y in points)


def _between(a: float, b: float, share: float) -> float:
    return a + share * (b - a)


# Distances of labels from their marks, and directions, the preferred ones first.
_DISTANCES = (8, 16, 28, 42, 58, 76, 96, 120, 150, 185, 225)
_DIRECTIONS = tuple(math.pi / 8 * k for k in (0, 15, 1, 14, 2, 8, 7, 9, 13, 3, 10, 6, 12, 4, 11, 5))
_MARK_RADIUS = 7.0
_Line = tuple[tuple[float, float], tuple[float, float]]


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    area: tuple[float, float, float, float],
) -> list[Box]:
    """Place a label near each point: inside of the area, over no mark and no other label.

    The line from a point to its label should not cross other marks. If there is no free place, the
    one with the least overlap is taken.

    >>> first, second = place_labels([(50, 50), (52, 50)], [(30, 10)] * 2, (0, 0, 200, 100))
    >>> first.overlap(second)
    0.0
    """
    r = _MARK_RADIUS
    marks = [Box(x - r, y - r, x + r, y + r) for x, y in points]
    taken: list[Box] = []
    leaders: list[_Line] = []
    for point, own, size in zip(points, marks, sizes, strict=True):
        candidates = [box for box in _around(point, size) if _is_inside(box, area)]
        others = (*marks, *taken)
        cost = partial(_cost, point=point, own=own, others=others, leaders=leaders)
        best = min(candidates or [next(_around(point, size))], key=cost)
        taken.append(best)
        leaders.append((point, best.nearest(point)))
    return taken


def _cost(
    box: Box,
    *,
    point: tuple[float, float],
    own: Box,
    others: Sequence[Box],
    leaders: Sequence[_Line],
) -> float:
    """Rate a place of a label: what it covers, what its line crosses, and how far it is."""
    end = box.nearest(point)
    crossed = sum(other.is_crossed(point, end) for other in others if other is not own)
    crossed += sum(box.is_crossed(*leader) for leader in leaders)
    covered = sum(box.overlap(other) for other in others)
    return 10 * covered + 80 * crossed + math.dist(point, end)


def _around(point: tuple[float, float], size: tuple[float, float]) -> Iterator[Box]:
    """Yield boxes around a point, the nearest first."""
    (x, y), (width, height) = point, size
    for distance in _DISTANCES:
        for direction in _DIRECTIONS:
            at_x, at_y = x + distance * math.cos(direction), y + distance * math.sin(direction)
            # To the left of the point a label ends there, to the right it starts there.
            left = at_x - width * (1 - math.cos(direction)) / 2
            top = at_y - height * (1 - math.sin(direction)) / 2
            yield Box(left, top, left + width, top + height)


def _is_inside(box: Box, area: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = area
    return box.left >= left and box.top >= top and box.right <= right and box.bottom <= bottom
