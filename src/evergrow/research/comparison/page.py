"""The HTML page of a comparison: one file without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from evergrow.research.comparison.charts import (
    FAMILY_STYLES,
    accuracy_chart,
    cost_chart,
    memory_chart,
)
from evergrow.research.comparison.setup import PROTOCOLS
from evergrow.research.comparison.svg import mark, svg
from evergrow.research.comparison.table import SHOWN_COLUMNS, notes_on

if TYPE_CHECKING:
    from evergrow.research.comparison.comparison import Comparison
    from evergrow.research.comparison.recommendation import Advice
    from evergrow.research.comparison.result import Standing
    from evergrow.research.comparison.setup import Facts

_FAMILY_TITLES = {
    "forests": "Evergrow: forests",
    "means and least squares": "Evergrow: means and least squares",
    "scikit-learn": "scikit-learn",
    "river": "river",
    "peers": "analytic heads of the field",
}


def render_page(found: Comparison) -> str:
    """Return the page as HTML."""
    body = "\n".join(
        [
            f"<h1>Which learner for {escape(found.name)}?</h1>",
            f"<p class='lead'>{escape(_data(found.facts, found.record))}</p>",
            *_recommendation(found),
            *_plots(found.standings),
            *(["<h2>All numbers</h2>", _table(found.standings)] if found.standings else []),
            *_subsample(found),
            _column_meanings(),
            "<h2>How it was measured</h2>",
            *(f"<p>{escape(line)}</p>" for line in _measured(found.record)),
        ]
    )
    title = f"Which learner for {escape(found.name)}?"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _data(facts: Facts, record: Any) -> str:
    quick = " A quick run on a part of the data." if record["quick"] else ""
    stream = record["stream"]
    came = (
        f"Learners started with {stream['initial']} of them and then got {stream['chunk']} "
        "more at a time."
        if stream["initial"] < facts.n_classes
        else "Learners got all of them at once."
    )
    return (
        f"{facts.n_train} training and {facts.n_test} test samples with {facts.n_features} "
        f"features in {facts.n_classes} classes. {came}{_mixed(stream['protocol'])}{quick}"
    )


def _mixed(name: str) -> str:
    meaning = PROTOCOLS[name].meaning
    return f" {meaning}" if meaning else ""


def _plots(standings: Sequence[Standing]) -> list[str]:
    """Draw the plots that have data."""
    numbers = range(1, len(standings) + 1)
    finished = [each for each in standings if each.finished]
    parts = []
    if any(each.curve for each in standings):
        parts += [
            "<h2>Accuracy as classes arrive</h2>",
            _legend(standings),
            _figure(accuracy_chart(standings, numbers)),
        ]
    if any(each.seconds > 0 for each in finished):
        parts += [
            "<h2>What accuracy costs</h2>",
            "<p>Numbers refer to the table. Higher is more accurate, further left is faster. "
            "Hollow marks do not learn new classes incrementally.</p>",
            _figure(cost_chart(standings, numbers)),
        ]
    if finished:
        parts += ["<h2>What must be stored</h2>", _figure(memory_chart(standings))]
    return parts


def _recommendation(found: Comparison) -> list[str]:
    first, *others = found.advice
    parts = ["<h2>Recommendation</h2>", _card(first, "card first")]
    if others:
        parts.append("<div class='cards'>" + "".join(_card(a, "card") for a in others) + "</div>")
    if found.remarks:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in found.remarks)
        parts.append(f"<h3>Please note</h3><ul>{remarks}</ul>")
    return parts


def _card(advice: Advice, kind: str) -> str:
    choice = ""
    if advice.choice is not None:
        learner = advice.choice.learner
        choice = (
            f"<p class='choice'>{escape(learner.title)}</p>"
            f"<p><code>{escape(learner.factory.code)}</code></p>"
        )
    return (
        f"<section class='{kind}'><h3>{escape(advice.need)}</h3>{choice}"
        f"<p>{escape(advice.reason)}</p></section>"
    )


def _legend(standings: Sequence[Standing]) -> str:
    families = dict.fromkeys(each.learner.family for each in standings)
    entries = []
    for family in families:
        kind, shape = FAMILY_STYLES[family]
        picture = svg(16, 16, "", [mark(shape, 8, 8, 5, f"dot {kind}")])
        entries.append(f"<li>{picture} {escape(_FAMILY_TITLES[family])}</li>")
    return f"<ul class='legend'>{''.join(entries)}</ul>"


def _figure(picture: str) -> str:
    return f"<figure tabindex='0'>{picture}</figure>"


def _table(standings: Sequence[Standing]) -> str:
    headings = "".join(
        f"<th scope='col' title='{escape(c.meaning)}'>{escape(c.heading)}</th>"
        for c in SHOWN_COLUMNS
    )
    rows = [
        f"<tr><td>{number}</td><th scope='row'>{_row_heading(standing)}</th>"
        + "".join(f"<td>{escape(column.text(standing))}</td>" for column in SHOWN_COLUMNS)
        + "</tr>"
        for number, standing in enumerate(standings, 1)
    ]
    return (
        "<div class='scroll' tabindex='0'><table><thead><tr><th></th><th scope='col'>learner</th>"
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row_heading(standing: Standing) -> str:
    kind, _ = FAMILY_STYLES[standing.learner.family]
    notes = notes_on(standing)
    note = f"<small>{escape(notes)}</small>" if notes else ""
    return f"<span class='swatch {kind}'></span>{escape(standing.learner.title)}{note}"


def _column_meanings() -> str:
    entries = "".join(
        f"<dt>{escape(c.heading)}</dt><dd>{escape(c.meaning)}</dd>" for c in SHOWN_COLUMNS
    )
    return f"<details><summary>What the columns mean</summary><dl>{entries}</dl></details>"


def _subsample(found: Comparison) -> list[str]:
    if found.sample_facts is None:
        return []
    facts = found.sample_facts
    text = (
        f"river learns one example at a time in Python, so it got a subsample: {facts.n_train} "
        f"training and {facts.n_test} test samples of {facts.n_classes} classes. Some learners of "
        "Evergrow are shown on the same subsample"
        + ("; do not compare these numbers with those above." if found.standings else ".")
    )
    return ["<h2>On a subsample</h2>", f"<p>{escape(text)}</p>", _table(found.on_sample)]


def _measured(record: Any) -> list[str]:
    stream, versions = record["stream"], record["versions"]
    at = ", ".join(map(str, stream["checkpoints"]))
    return [
        f"Order of the classes: seed {record['seed']}, {stream['repetitions']} repetition(s). "
        f"Learners that must be retrained were trained at {at} classes only; times are wall-clock "
        "times and include one prediction, because some learners solve only when they predict.",
        f"{record['processor']}, {record['n_cores']} cores; "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + ".",
        f"Data: SHA-256 {record['data']['sha256']}.",
    ]


# The Okabe-Ito palette for colour-blind readers, lighter in dark mode.
_STYLE = """
:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1c2024; --faint: #5b6470; --rule: #d9dee3; --panel: #f4f6f8;
  --accent: #0072b2; --f0: #0072b2; --f1: #00805d; --f2: #c04f00; --f3: #b0447f;
  --f4: #5b5f97; --on: #ffffff; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --ink: #e8eaed; --faint: #a2abb5; --rule: #343b43; --panel: #1e2328;
  --accent: #56b4e9; --f0: #56b4e9; --f1: #3cc9a0; --f2: #f0a040; --f3: #e59ac4;
  --f4: #b3b6ea; --on: #14171a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
h3 { font-size: .85rem; margin: 0 0 .3rem; color: var(--faint); font-weight: 600; }
p, li { overflow-wrap: anywhere; }
.cards + h3 { margin-top: 1.2rem; }
.lead { color: var(--faint); max-width: 46rem; margin: 0; }
code { font: .85em/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
.card { background: var(--panel); border-radius: 8px; padding: .9rem 1rem; }
.card p { margin: .2rem 0; }
.card.first { border-left: 5px solid var(--accent); margin-bottom: .8rem; }
.choice { font-weight: 650; font-size: 1.1rem; }
.first .choice { font-size: 1.4rem; }
figure { margin: 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 640px; max-width: 60rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .tick { fill: var(--faint); }
svg .name { font-weight: 600; }
.grid { stroke: var(--rule); stroke-width: 1; }
.axis { stroke: var(--faint); stroke-width: 1; }
.curve { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.leader { fill: none; stroke: var(--faint); stroke-width: .7; stroke-dasharray: 2 2; }
.f0 { --colour: var(--f0); } .f1 { --colour: var(--f1); }
.f2 { --colour: var(--f2); } .f3 { --colour: var(--f3); } .f4 { --colour: var(--f4); }
.curve { stroke: var(--colour); }
.dot, .bar { fill: var(--colour); }
svg .label { fill: var(--colour); }
.point { fill: var(--colour); stroke: var(--colour); stroke-width: 2; }
.point.hollow { fill: var(--page); }
svg .number { fill: var(--on); font-weight: 700; font-size: 11px; pointer-events: none; }
svg .number.hollow { fill: var(--ink); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0;
  margin: .2rem 0 .6rem; font-size: .9rem; }
.legend svg { width: 1em; height: 1em; vertical-align: -.1em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--rule); text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { color: var(--faint); font-weight: 600; }
th[scope=row], thead th:nth-child(2), td:nth-child(3), thead th:nth-child(3) { text-align: left; }
th[scope=row] { font-weight: 600; }
th small { display: block; max-width: 14rem; white-space: normal; font-weight: 400;
  color: var(--faint); overflow-wrap: anywhere; }
.swatch { display: inline-block; width: .7em; height: .7em; border-radius: 2px;
  margin-right: .45em; background: var(--colour); }
details { margin-top: .8rem; font-size: .9rem; }
dt { font-weight: 600; } dd { margin: 0 0 .3rem 1rem; color: var(--faint); }
"""
