"""The HTML page of a comparison: one file without external resources."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from evergrow.research.comparison.charts import (
    FAMILY_SHAPES,
    accuracy_chart,
    assign_styles,
    cost_chart,
    memory_chart,
)
from evergrow.research.comparison.recommendation import group_by_choice
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
    title = f"Learners compared on {escape(found.name)}"
    body = "\n".join(
        [
            f"<h1>{title}</h1>",
            f"<p class='lead'>{escape(_data(found.facts, found.record))}</p>",
            *_recommendation(found),
            *_plots(found),
            *_all_numbers(found),
            *_subsample(found),
            _column_meanings(),
            "<h2>How it was measured</h2>",
            *(f"<p>{escape(line)}</p>" for line in _measured(found.record)),
        ]
    )
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


def _important(found: Comparison) -> set[int]:
    """The numbers of the recommended learners in the table."""
    chosen = [advice.choice for advice in found.advice]
    return {number for number, each in enumerate(found.standings, 1) if each in chosen}


def _plots(found: Comparison) -> list[str]:
    """Draw the plots that have data."""
    standings = found.standings
    numbers, important = range(1, len(standings) + 1), _important(found)
    finished = [each for each in standings if each.finished]
    parts = []
    if any(each.curve for each in standings):
        parts += [
            "<h2>Accuracy as classes arrive</h2>",
            "<p>Thick lines are recommended learners. Point at a line or a name to highlight it."
            "</p>",
            _legend(standings),
            _figure(accuracy_chart(standings, numbers, important)),
        ]
    if any(each.seconds > 0 for each in finished):
        parts += [
            "<h2>What accuracy costs</h2>",
            "<p>Higher is more accurate, further left is faster. Marks are at the measured values. "
            "Hollow marks do not learn new classes incrementally.</p>",
            _figure(cost_chart(standings, numbers, important)),
        ]
    if finished:
        parts += [
            "<h2>What must be stored</h2>",
            _figure(memory_chart(standings, numbers, important)),
        ]
    return parts


def _recommendation(found: Comparison) -> list[str]:
    """One card for each recommended learner, with the needs that it serves."""
    cards = [
        _card(choice, group, "card first" if place == 0 else "card")
        for place, (choice, group) in enumerate(group_by_choice(found.advice))
    ]
    parts = ["<h2>Recommendation</h2>", cards[0]]
    if cards[1:]:
        parts.append(f"<div class='cards'>{''.join(cards[1:])}</div>")
    if found.remarks:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in found.remarks)
        parts.append(f"<h3>Please note</h3><ul>{remarks}</ul>")
    return parts


def _card(choice: Standing | None, group: Sequence[Advice], kind: str) -> str:
    title = ""
    if choice is not None:
        learner = choice.learner
        title = (
            f"<p class='choice'>{escape(learner.title)}</p>"
            f"<p><code>{escape(learner.factory.code)}</code></p>"
        )
    needs = "".join(
        f"<dt>{escape(advice.need)}</dt><dd>{escape(advice.reason)}</dd>" for advice in group
    )
    return f"<section class='{kind}'>{title}<dl>{needs}</dl></section>"


def _legend(standings: Sequence[Standing]) -> str:
    families = dict.fromkeys(each.learner.family for each in standings)
    entries = []
    for family in families:
        picture = svg(16, 16, "", [mark(FAMILY_SHAPES[family], 8, 8, 5, "dot")])
        entries.append(f"<li>{picture} {escape(_FAMILY_TITLES[family])}</li>")
    return f"<ul class='legend'>{''.join(entries)}</ul>"


def _figure(picture: str) -> str:
    return f"<figure tabindex='0'>{picture}</figure>"


def _all_numbers(found: Comparison) -> list[str]:
    if not found.standings:
        return []
    return ["<h2>All numbers</h2>", _table(found.standings, _important(found))]


def _table(standings: Sequence[Standing], important: Collection[int] = ()) -> str:
    styles = assign_styles(range(1, len(standings) + 1), important)
    headings = "".join(
        f"<th scope='col' title='{escape(c.meaning)}'>{escape(c.heading)}</th>"
        for c in SHOWN_COLUMNS
    )
    rows = [
        f"<tr><td>{number}</td><th scope='row'>{_row_heading(standing, styles[number])}</th>"
        + "".join(f"<td>{escape(column.text(standing))}</td>" for column in SHOWN_COLUMNS)
        + "</tr>"
        for number, standing in enumerate(standings, 1)
    ]
    return (
        "<p class='hint'>Scroll the table to the right to see all columns.</p>"
        "<div class='scroll' tabindex='0'><table><thead><tr><th></th><th scope='col'>learner</th>"
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row_heading(standing: Standing, kind: str) -> str:
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


# Colours after Okabe and Ito, for colour-blind readers, lighter in dark mode. Shadows at the sides
# of a table show that it goes on there; they are covered at its ends.
_STYLE = """
:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1c2024; --faint: #5b6470; --rule: #d9dee3; --panel: #f4f6f8;
  --shade: #00000040; --accent: #0072b2; --c0: #0072b2; --c1: #c04f00; --c2: #00805d;
  --c3: #b0447f; --c4: #8a6d00; --c5: #9c1c28; --c6: #6a4fb3; --c7: #4d5560; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --ink: #e8eaed; --faint: #a2abb5; --rule: #343b43; --panel: #1e2328;
  --shade: #000000c0; --accent: #56b4e9; --c0: #56b4e9; --c1: #f0a040; --c2: #3cc9a0;
  --c3: #e59ac4; --c4: #e5d04a; --c5: #ff8a8a; --c6: #b9a6ff; --c7: #b4bcc6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
h3 { font-size: .85rem; margin: 1.2rem 0 .3rem; color: var(--faint); font-weight: 600; }
p, li, dd { overflow-wrap: anywhere; }
.lead { color: var(--faint); max-width: 46rem; margin: 0; }
code { font: .85em/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
.card { background: var(--panel); border-radius: 8px; padding: .9rem 1rem; }
.card p { margin: .2rem 0; }
.card dl { margin: .5rem 0 0; }
.card dt { font-size: .85rem; color: var(--faint); }
.card dd { margin: 0 0 .35rem; color: var(--ink); }
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
.c0 { --colour: var(--c0); } .c1 { --colour: var(--c1); } .c2 { --colour: var(--c2); }
.c3 { --colour: var(--c3); } .c4 { --colour: var(--c4); } .c5 { --colour: var(--c5); }
.c6 { --colour: var(--c6); } .c7 { --colour: var(--c7); }
.d1 { --dashes: 7 3; } .d2 { --dashes: 2 3; } .d3 { --dashes: 9 3 2 3; }
.curve { fill: none; stroke: var(--colour); stroke-width: 1.4; stroke-linejoin: round;
  stroke-dasharray: var(--dashes, none); }
.leader { fill: none; stroke: var(--colour, var(--faint)); stroke-width: .7; }
.line .leader { stroke-dasharray: 2 2; }
.line > .curve, .line > .dot { opacity: .7; }
.line.important > *, .line:hover > * { opacity: 1; }
.important .curve, .line:hover .curve { stroke-width: 3.2; }
.important .label, g:hover > .label { font-weight: 700; }
.dot, .bar { fill: var(--colour, var(--faint)); }
svg .label { fill: var(--colour); font-size: 11px; }
.point { fill: var(--colour); stroke: var(--colour); stroke-width: 2; }
.point.hollow { fill: var(--page); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0;
  margin: .2rem 0 .6rem; font-size: .9rem; }
.legend svg { width: 1em; height: 1em; vertical-align: -.1em; }
.hint { display: none; color: var(--faint); font-size: .85rem; margin: 0 0 .3rem; }
.scroll { overflow-x: auto; scrollbar-width: thin; scrollbar-color: var(--faint) var(--panel);
  background: linear-gradient(90deg, var(--page) 30%, transparent) 0 / 3rem 100% local no-repeat,
    linear-gradient(270deg, var(--page) 30%, transparent) 100% / 3rem 100% local no-repeat,
    linear-gradient(90deg, var(--shade), transparent) 0 / 1rem 100% no-repeat,
    linear-gradient(270deg, var(--shade), transparent) 100% / 1rem 100% no-repeat; }
.scroll::-webkit-scrollbar { height: 10px; }
.scroll::-webkit-scrollbar-thumb { background: var(--faint); border-radius: 5px; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--rule); text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { color: var(--faint); font-weight: 600; white-space: normal; vertical-align: bottom; }
th[scope=row], thead th:nth-child(2), td:nth-child(3), thead th:nth-child(3) { text-align: left; }
th[scope=row] { font-weight: 600; white-space: normal; min-width: 11rem; }
th small { display: block; max-width: 18rem; font-weight: 400; color: var(--faint);
  overflow-wrap: anywhere; }
@media (max-width: 66rem) { .hint { display: block; } }
.swatch { display: inline-block; width: .7em; height: .7em; border-radius: 2px;
  margin-right: .45em; background: var(--colour); }
details { margin-top: .8rem; font-size: .9rem; }
dt { font-weight: 600; } dd { margin: 0 0 .3rem 1rem; color: var(--faint); }
"""
