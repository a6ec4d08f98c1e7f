"""The page of a comparison: one file that needs nothing else."""

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
from evergrow.research.comparison.columns import SHOWN, said_of
from evergrow.research.comparison.page_style import STYLE
from evergrow.research.comparison.svg import mark, svg

if TYPE_CHECKING:
    from evergrow.research.comparison.comparing import Comparison
    from evergrow.research.comparison.plan import Facts
    from evergrow.research.comparison.recommending import Advice
    from evergrow.research.comparison.result import Standing

__all__ = ["page"]

_FAMILY_TITLES = {
    "forests": "Evergrow: forests",
    "means and least squares": "Evergrow: means and least squares",
    "scikit-learn": "scikit-learn",
    "river": "river",
}


def page(found: Comparison) -> str:
    """The page as HTML."""
    body = "\n".join(
        [
            f"<h1>Which learner for {escape(found.name)}?</h1>",
            f"<p class='lead'>{escape(_data(found.facts, found.record))}</p>",
            *_recommendation(found),
            *_plots(found.standings),
            *(["<h2>All numbers</h2>", _table(found.standings)] if found.standings else []),
            *_subsample(found),
            _explained(),
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
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _data(facts: Facts, record: Any) -> str:
    quick = " A quick run on a part of the data." if record["quick"] else ""
    stream = record["stream"]
    came = (
        f"Learners began with {stream['initial']} of them and were then shown {stream['chunk']} "
        "more at a time."
        if stream["initial"] < facts.n_classes
        else "Learners were shown all of them at once."
    )
    return (
        f"{facts.n_train} training and {facts.n_test} test samples with {facts.n_features} "
        f"features in {facts.n_classes} classes. {came}{quick}"
    )


def _plots(standings: Sequence[Standing]) -> list[str]:
    """The plots for which there is anything to show."""
    numbers = range(1, len(standings) + 1)
    finished = [each for each in standings if each.finished]
    parts = []
    if any(each.curve for each in standings):
        parts += [
            "<h2>Accuracy as classes come</h2>",
            _legend(standings),
            _figure(accuracy_chart(standings, numbers)),
        ]
    if any(each.seconds > 0 for each in finished):
        parts += [
            "<h2>What accuracy costs</h2>",
            "<p>Numbers are those of the table. Upwards is more accurate, to the left "
            "faster. Hollow marks do not take new classes in place.</p>",
            _figure(cost_chart(standings, numbers)),
        ]
    if finished:
        parts += ["<h2>What must be kept</h2>", _figure(memory_chart(standings))]
    return parts


def _recommendation(found: Comparison) -> list[str]:
    first, *others = found.advice
    parts = ["<h2>Recommendation</h2>", _card(first, "card first")]
    if others:
        parts.append("<div class='cards'>" + "".join(_card(a, "card") for a in others) + "</div>")
    if found.remarks:
        remarks = "".join(f"<li>{escape(remark)}</li>" for remark in found.remarks)
        parts.append(f"<h3>To keep in mind</h3><ul>{remarks}</ul>")
    return parts


def _card(advice: Advice, kind: str) -> str:
    choice = ""
    if advice.choice is not None:
        contender = advice.choice.contender
        choice = (
            f"<p class='choice'>{escape(contender.title)}</p>"
            f"<p><code>{escape(contender.recipe.code)}</code></p>"
        )
    return (
        f"<section class='{kind}'><h3>{escape(advice.need)}</h3>{choice}"
        f"<p>{escape(advice.reason)}</p></section>"
    )


def _legend(standings: Sequence[Standing]) -> str:
    families = dict.fromkeys(each.contender.family for each in standings)
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
        f"<th scope='col' title='{escape(c.explained)}'>{escape(c.heading)}</th>" for c in SHOWN
    )
    rows = [
        f"<tr><td>{number}</td><th scope='row'>{_named(standing)}</th>"
        + "".join(f"<td>{escape(column.shown(standing))}</td>" for column in SHOWN)
        + "</tr>"
        for number, standing in enumerate(standings, 1)
    ]
    return (
        "<div class='scroll' tabindex='0'><table><thead><tr><th></th><th scope='col'>learner</th>"
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _named(standing: Standing) -> str:
    kind, _ = FAMILY_STYLES[standing.contender.family]
    said = said_of(standing)
    note = f"<small>{escape(said)}</small>" if said else ""
    return f"<span class='swatch {kind}'></span>{escape(standing.contender.title)}{note}"


def _explained() -> str:
    entries = "".join(f"<dt>{escape(c.heading)}</dt><dd>{escape(c.explained)}</dd>" for c in SHOWN)
    return f"<details><summary>What the columns mean</summary><dl>{entries}</dl></details>"


def _subsample(found: Comparison) -> list[str]:
    if found.sample_facts is None:
        return []
    facts = found.sample_facts
    said = (
        f"river learns one example at a time in Python. It was shown a subsample: {facts.n_train} "
        f"training and {facts.n_test} test samples of {facts.n_classes} classes. Learners of ours "
        "on the same subsample stand beside it"
        + ("; these numbers are not to be compared with those above." if found.standings else ".")
    )
    return ["<h2>On a subsample</h2>", f"<p>{escape(said)}</p>", _table(found.on_sample)]


def _measured(record: Any) -> list[str]:
    stream, versions = record["stream"], record["versions"]
    at = ", ".join(map(str, stream["checkpoints"]))
    return [
        f"Order of the classes: seed {record['seed']}, {stream['repetitions']} repetition(s). "
        f"Learners that are trained anew were trained at {at} classes only; times are wall-clock "
        "times and include one answer, as some solve only when they are asked.",
        f"{record['processor']}, {record['n_cores']} cores; "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + ".",
        f"Data: SHA-256 {record['data']['sha256']}.",
    ]
