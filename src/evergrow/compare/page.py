"""The HTML page of a comparison: one file without external resources, with SVG by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from evergrow.compare.measurement import SHOWN_COLUMNS, Standing, duration, percent, size
from evergrow.compare.recommendation import group_by_choice
from evergrow.foundation.extras import install_command

if TYPE_CHECKING:
    from evergrow.compare.comparison import Comparison

_BLURRY = (
    "Half of the classes came whole; of every other class 30% of the examples came with later "
    "batches. Class sizes fall geometrically: the last keeps a tenth of its training examples."
)
# The heading of each plot, and what it shows.
_PLOTS = (
    (
        "Accuracy as classes arrive",
        "Thick lines are recommended learners. Point at a line to highlight it.",
    ),
    (
        "What accuracy costs",
        "Higher is more accurate, further left is faster. Marks are at the measured values, with "
        "the numbers of the table. Hollow marks do not learn new classes incrementally.",
    ),
    ("What must be stored", ""),
)
# Colours after Okabe and Ito, for colour-blind readers. The page has a variable for each of them,
# which is lighter in dark mode.
_COLOURS = (
    *("#0072b2", "#c04f00", "#00805d", "#b0447f"),
    *("#8a6d00", "#9c1c28", "#6a4fb3", "#4d5560"),
)
_INK, _FAINT, _RULE, _PAGE = "#1c2024", "#5b6470", "#d9dee3", "#ffffff"
_VARIABLES = {colour: f"c{place}" for place, colour in enumerate(_COLOURS)} | {
    _INK: "ink",
    _FAINT: "faint",
    _RULE: "rule",
    _PAGE: "page",
}
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
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
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

Styles = dict[int, dict[str, Any]]
Numbered = Sequence[tuple[int, Standing]]


def render_page(found: Comparison) -> str:
    """Return the page as HTML."""
    chosen = [advice.choice for advice in found.advice]
    important = {number for number, each in enumerate(found.standings, 1) if each in chosen}
    record = found.record
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    template = files("evergrow.compare").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=f"Learners compared on {escape(found.name)}",
        lead=escape(_data(found)),
        recommendation=_recommendation(found),
        plots=_plots(found.standings, important),
        tables=_tables(found, important),
        meanings=_definitions((column.heading, column.meaning) for column in SHOWN_COLUMNS),
        seed=record["seed"],
        repetitions=record["stream"]["repetitions"],
        checkpoints=", ".join(map(str, record["stream"]["checkpoints"])),
        machine=escape(f"{record['processor']}, {record['n_cores']} cores; {versions}."),
        sha256=record["data"]["sha256"],
    )


def _data(found: Comparison) -> str:
    facts, stream = found.facts, found.record["stream"]
    came = "Learners got all of them at once."
    if stream["initial"] < facts.n_classes:
        came = (
            f"Learners started with {stream['initial']} of them and then got {stream['chunk']} "
            "more at a time."
        )
    sentences = [
        f"{facts.n_train} training and {facts.n_test} test samples with {facts.n_features} "
        f"features in {facts.n_classes} classes.",
        came,
        _BLURRY if stream["protocol"] == "blurry" else "",
        "A quick run on a part of the data." if found.record["quick"] else "",
    ]
    return " ".join(filter(None, sentences))


def _definitions(entries: Any) -> str:
    return "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in entries)


def _recommendation(found: Comparison) -> str:
    """One card for each recommended learner, with the needs that it serves."""
    cards: list[str] = []
    for choice, group in group_by_choice(found.advice):
        title = ""
        if choice is not None:
            title = (
                f"<p class='choice'>{escape(choice.learner.title)}</p>"
                f"<p><code>{escape(choice.learner.code)}</code></p>"
            )
        needs = _definitions((advice.need, advice.reason) for advice in group)
        kind = "card" if cards else "card first"
        cards.append(f"<section class='{kind}'>{title}<dl>{needs}</dl></section>")
    parts = ["<h2>Recommendation</h2>", cards[0]]
    if cards[1:]:
        parts.append(f"<div class='cards'>{''.join(cards[1:])}</div>")
    if found.remarks:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in found.remarks)
        parts.append(f"<h3>Please note</h3><ul>{remarks}</ul>")
    return "\n".join(parts)


def _plots(standings: Sequence[Standing], important: Collection[int]) -> str:
    """Draw the plots that have data."""
    try:
        charts = draw_charts(standings, important)
    except ImportError:
        return f"<p>Plots need matplotlib: <code>{escape(install_command('plot'))}</code></p>"
    return "\n".join(
        f"<h2>{heading}</h2>\n<p>{meaning}</p>\n<figure tabindex='0'>{chart}</figure>"
        for (heading, meaning), chart in zip(_PLOTS, charts, strict=True)
        if chart
    )


def _tables(found: Comparison, important: Collection[int]) -> str:
    parts = []
    if found.standings:
        parts += ["<h2>All numbers</h2>", _table(found.standings, important)]
    facts = found.sample_facts
    if facts is not None:
        apart = "; do not compare these numbers with those above" if found.standings else ""
        text = (
            "river learns one example at a time in Python, so it got a subsample: "
            f"{facts.n_train} training and {facts.n_test} test samples of {facts.n_classes} "
            f"classes. Some learners of Evergrow are shown on the same subsample{apart}."
        )
        parts += ["<h2>On a subsample</h2>", f"<p>{text}</p>", _table(found.on_sample)]
    return "\n".join(parts)


def _table(standings: Sequence[Standing], important: Collection[int] = ()) -> str:
    places = places_of_styles(len(standings), important)
    headings = "".join(
        f"<th scope='col' title='{escape(column.meaning)}'>{escape(column.heading)}</th>"
        for column in SHOWN_COLUMNS
    )
    rows = []
    for number, standing in enumerate(standings, 1):
        note = f"<small>{escape(standing.notes)}</small>" if standing.notes else ""
        cells = "".join(f"<td>{escape(column.text(standing))}</td>" for column in SHOWN_COLUMNS)
        rows.append(
            f"<tr><td>{number}</td><th scope='row'>"
            f"<span class='swatch c{places[number] % len(_COLOURS)}'></span>"
            f"{escape(standing.learner.title)}{note}</th>{cells}</tr>"
        )
    return (
        "<p class='hint'>Scroll the table to the right to see all columns.</p>"
        "<div class='scroll' tabindex='0'><table><thead><tr><th></th><th scope='col'>learner</th>"
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


# --- Plots


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
            "color": _COLOURS[place % len(_COLOURS)],
            "linestyle": _DASHES[place // len(_COLOURS) % len(_DASHES)],
            "linewidth": 3.0 if number in important else 1.3,
            "alpha": 1.0 if number in important else 0.8,
            "zorder": 3 if number in important else 2,
        }
        for number, place in places_of_styles(len(standings), important).items()
    }
    with rc_context(_LOOK):
        return (
            _draw_accuracies([pair for pair in numbered if pair[1].curve], styles, important),
            _draw_costs(
                [pair for pair in finished if pair[1]["seconds_per_update"] > 0], styles, important
            ),
            _draw_memory(finished, styles),
        )


def _make_axes(height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure((_WIDTH, height)).add_subplot()


def _svg(axes: Any, title: str) -> str:
    """Return the element, with variables of the style sheet as colours.

    Where the mouse points, the name of what was drawn with ``gid`` is shown: its label.
    """
    written = io.StringIO()
    unwanted = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    axes.figure.savefig(written, format="svg", metadata=unwanted)
    text = written.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    for line in axes.lines:
        if line.get_gid():
            start = f'<g id="{line.get_gid()}">'
            text = text.replace(start, f"{start}<title>{escape(line.get_label())}</title>")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _draw_accuracies(numbered: Numbered, styles: Styles, important: Collection[int]) -> str:
    if not numbered:
        return ""
    height = max(4.8, 1.2 + _LINE * len(numbered))
    axes = _make_axes(height)
    for number, each in numbered:
        marker, _ = _MARKERS[each.learner.family]
        mark = {"marker": marker, "ms": 4, "gid": f"line{number}", "label": each.learner.title}
        axes.plot(*zip(*each.curve, strict=True), **mark, **styles[number])
    axes.set(xlabel="known classes", ylabel="mean class accuracy")
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    # Names stand at the right end of the lines, apart from each other.
    low, high = axes.get_ylim()
    gap = (high - low) / (height / _LINE)
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
            weight="bold" if number in important else "normal",
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": styles[number]["color"]},
            annotation_clip=False,
        )
    return _svg(axes, "Mean class accuracy by number of known classes")


def _draw_costs(numbered: Numbered, styles: Styles, important: Collection[int]) -> str:
    if not numbered:
        return ""
    axes = _make_axes(5.6)
    for number, each in numbered:
        seconds, accuracy = each["seconds_per_update"], each["class_mean"]
        colour = styles[number]["color"]
        axes.plot(
            seconds,
            accuracy,
            marker=_MARKERS[each.learner.family][0],
            ms=7,
            color=colour,
            mfc=colour if each.learner.way == "grows" else _PAGE,
            gid=f"mark{number}",
            label=f"{each.learner.title}: {percent(accuracy)}, {duration(seconds)}",
        )
        axes.annotate(
            f"{number} {each.learner.title}" if number in important else str(number),
            (seconds, accuracy),
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
    shapes = [axes.plot([], [], _MARKERS[family][0], color=_FAINT)[0] for family in families]
    names = [_MARKERS[family][1] for family in families]
    axes.legend(shapes, names, loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=len(names))
    return _svg(axes, "Mean class accuracy by seconds per update")


def _draw_memory(numbered: Numbered, styles: Styles) -> str:
    if not numbered:
        return ""
    numbered = sorted(numbered, key=lambda pair: -pair[1]["bytes"])
    axes = _make_axes(0.9 + 0.3 * len(numbered))
    stored = [each["bytes"] for _, each in numbered]
    names = [f"{number} {each.learner.title}" for number, each in numbered]
    bars = axes.barh(names, stored, color=[styles[number]["color"] for number, _ in numbered])
    axes.bar_label(bars, [*map(size, stored)], padding=4)
    axes.set(xscale="log", xlabel="bytes to store")
    axes.xaxis.set_major_formatter(lambda value, _: size(value))
    axes.grid(visible=False, axis="y")
    return _svg(axes, "Bytes to store")


def spread_apart(places: Sequence[float], gap: float, high: float) -> list[float]:
    """Move places apart, so that labels do not overlap, and below ``high``."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    # In order, each is at least a gap above the one before, and those at the top move down.
    found = np.maximum.accumulate(np.asarray(places, float)[order] - steps) + steps
    apart = np.empty(len(found))
    apart[order] = np.minimum(found, high - steps[::-1])
    return apart.tolist()
