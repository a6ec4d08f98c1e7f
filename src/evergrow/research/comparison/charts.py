"""The plots of a comparison, as SVG."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from evergrow.research.comparison.formats import duration, percent, size
from evergrow.research.comparison.result import Standing
from evergrow.research.comparison.svg import (
    Axis,
    draw_frame,
    group,
    line,
    mark,
    path,
    place_labels,
    spread,
    svg,
    text,
)

_WIDTH = 800.0
# The shape of marks is that of the family. Lines are told apart by colour and dashes.
FAMILY_SHAPES = {
    "forests": "circle",
    "means and least squares": "square",
    "scikit-learn": "triangle",
    "river": "diamond",
    "peers": "hexagon",
}
_N_COLOURS, _N_DASHES = 8, 4
# Of a letter, at the size of labels.
_LETTER_WIDTH, _LABEL_HEIGHT = 6.4, 14.0


def assign_styles(numbers: Iterable[int], important: Collection[int] = ()) -> dict[int, str]:
    """Return the classes of colour and dashes of the learner with each number in the table.

    The important ones come first, so that they have different colours.
    """
    order = sorted(numbers, key=lambda number: number not in important)
    return {
        number: f"c{place % _N_COLOURS} d{place // _N_COLOURS % _N_DASHES}"
        for place, number in enumerate(order)
    }


def accuracy_chart(
    standings: Sequence[Standing], numbers: Sequence[int], important: Collection[int] = ()
) -> str:
    """Plot the mean class accuracy by number of known classes.

    Lines have numbers and names; those of the ``important`` numbers are thicker.
    """
    numbered = [
        (number, each) for number, each in zip(numbers, standings, strict=True) if each.curve
    ]
    shown = [each for _, each in numbered]
    height = max(380.0, 100.0 + 15.5 * len(shown))
    right = _WIDTH - 360
    styles = assign_styles(numbers, important)
    x = Axis.over((n for each in shown for n, _ in each.curve), 56, right)
    y = Axis.over((a for each in shown for _, a in each.curve), height - 56, 34)
    parts = draw_frame(x, y, "known classes", "mean class accuracy", "{:g}".format)
    ends = [(x.place(each.curve[-1][0]), y.place(each.curve[-1][1])) for each in shown]
    labels = spread([place for _, place in ends], 15.5, 30, height - 40)
    drawn = []
    for (number, each), (end_x, end_y), label_y in zip(numbered, ends, labels, strict=True):
        shape = FAMILY_SHAPES[each.learner.family]
        places = [(x.place(n), y.place(a)) for n, a in each.curve]
        leader = path([(end_x + 5, end_y), (right + 14, label_y)], "leader")
        label = f"{percent(each.curve[-1][1])} \N{MIDDLE DOT} {number} {each.learner.title}"
        label += "" if each.finished else " (stopped)"
        inside = [
            path(places, "curve"),
            *(
                mark(shape, *place, 3.2, "dot", f"{each.learner.title}: {percent(a)} at {n}")
                for place, (n, a) in zip(places, each.curve, strict=True)
            ),
            leader,
            text(right + 18, label_y + 4, label, "label"),
        ]
        weight = " important" if number in important else ""
        drawn.append((number in important, group(inside, f"line {styles[number]}{weight}")))
    # Important lines are drawn last, over the others.
    parts += [picture for _, picture in sorted(drawn, key=lambda each: each[0])]
    return svg(_WIDTH, height, "Mean class accuracy by number of known classes", parts)


def cost_chart(
    standings: Sequence[Standing], numbers: Sequence[int], important: Collection[int] = ()
) -> str:
    """Plot the mean class accuracy at the end by seconds per update.

    Marks are at the measured values. Labels are moved so that they do not overlap.
    """
    height = 560.0
    styles = assign_styles(numbers, important)
    shown = [
        (number, each)
        for number, each in zip(numbers, standings, strict=True)
        if each.finished and each.seconds > 0
    ]
    x = Axis.over((each.seconds for _, each in shown), 56, _WIDTH - 24, log=True)
    y = Axis.over((each.class_mean for _, each in shown), height - 56, 34)
    name = "mean class accuracy at the end"
    parts = draw_frame(x, y, "seconds per update (or per retraining)", name, duration)
    points = [(x.place(each.seconds), y.place(each.class_mean)) for _, each in shown]
    texts = [f"{number} {each.learner.title}" for number, each in shown]
    boxes = place_labels(
        points,
        [(_LETTER_WIDTH * len(label), _LABEL_HEIGHT) for label in texts],
        (x.start, y.end, x.end, y.start),
    )
    for (number, each), point, label, box in zip(shown, points, texts, boxes, strict=True):
        shape = FAMILY_SHAPES[each.learner.family]
        hollow = "" if each.learner.way == "grows" else " hollow"
        title = f"{each.learner.title}: {percent(each.class_mean)}, {duration(each.seconds)}"
        inside = [mark(shape, *point, 5, f"point{hollow}", title)]
        end = box.nearest(point)
        if math.dist(end, point) > _LABEL_HEIGHT:
            inside.append(line(*point, *end, "leader"))
        inside.append(text(box.left, box.top + 11, label, "label"))
        weight = " important" if number in important else ""
        parts.append(group(inside, f"{styles[number]}{weight}"))
    return svg(_WIDTH, height, "Mean class accuracy by seconds per update", parts)


def memory_chart(
    standings: Sequence[Standing], numbers: Sequence[int], important: Collection[int] = ()
) -> str:
    """Plot what must be stored to continue learning, as bars on a logarithmic scale."""
    styles = assign_styles(numbers, important)
    numbered = zip(numbers, standings, strict=True)
    finished = [(number, each) for number, each in numbered if each.finished]
    shown = sorted(finished, key=lambda pair: pair[1].n_bytes)
    height = 70.0 + 22 * len(shown)
    left = 250.0
    x = Axis.over((each.n_bytes for _, each in shown), left, _WIDTH - 80, log=True)
    parts = []
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(line(at, height - 42, at, 14, "grid"))
        parts.append(text(at, height - 24, size(tick), "tick", anchor="middle"))
    for place, (number, each) in enumerate(shown):
        top = 16 + 22 * place
        end = x.place(each.n_bytes)
        parts.append(text(left - 8, top + 13, each.learner.title, "tick", anchor="end"))
        parts.append(
            f'<rect class="bar {styles[number]}" x="{left:.1f}" y="{top}" '
            f'width="{max(end - left, 1):.1f}" height="16" rx="2"/>'
        )
        parts.append(text(end + 6, top + 13, size(each.n_bytes), "tick"))
    parts.append(
        text((left + _WIDTH - 80) / 2, height - 6, "bytes to store", "name", anchor="middle")
    )
    return svg(_WIDTH, height, "Bytes to store", parts)
