"""The HTML page of a comparison: one file without external resources."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from evergrow.compare.charts import N_COLOURS, draw_charts, places_of_styles
from evergrow.compare.measurement import SHOWN_COLUMNS, Standing
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
                f"<p><code>{escape(choice.learner.factory.code)}</code></p>"
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
            f"<span class='swatch c{places[number] % N_COLOURS}'></span>"
            f"{escape(standing.learner.title)}{note}</th>{cells}</tr>"
        )
    return (
        "<p class='hint'>Scroll the table to the right to see all columns.</p>"
        "<div class='scroll' tabindex='0'><table><thead><tr><th></th><th scope='col'>learner</th>"
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
