"""Markdown pages: the page of one experiment, and the index of a folder of results."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import atomic_write
from evergrow.foundation.formatting import format_count
from evergrow.research.experiments.catalogue import PAPERS, Paper, find_paper
from evergrow.research.experiments.experiment import Experiment, Finding, Verdict
from evergrow.research.experiments.table import Row, Table
from evergrow.research.experiments.terms import format_terms
from evergrow.research.experiments.wording import (
    say_number,
    say_quantity,
    say_setting,
)

_VERDICTS = {"agrees": "**Agrees.**", "differs": "**Differs.**", "open": "**Not decided.**"}

_INTRODUCTION = """# Results

We repeated every table and figure of the papers that can be measured. Each page below takes what
a paper claims, measures it, and says whether the measurement agrees."""

_READING = """\
[The same rule](index.md#how-a-claim-is-judged) decides the verdict of every claim. "A against B"
is A minus B in percentage points, or A divided by B for times and counts. The brackets hold the
95 % interval of this difference over the seeds. After a percentage, "±" is the standard deviation
over the seeds; after a difference in points, it is half the width of the 95 % interval."""

_RULE = """\
The same rule decides every claim. A claim is about a difference between two sides, such as the
accuracies of two learners. Runs with several random seeds give this difference a 95 % interval.

- A claim that one side is higher *agrees* if the whole interval is above zero.
- It *differs* if the whole interval is below the smallest difference that counts. This is half a
  percentage point for an accuracy, and 5 % for a time or a count. Either the order is reversed,
  or both sides are equal.
- Otherwise the claim is *not decided*.
- A claim with a bound, such as "at least 10 points", agrees or differs if the interval lies on
  one side of the bound. The bound is a number from the paper. Where the paper only has a word
  such as "much", the claim states the number that we chose for it.
- If a claim has several parts, the page shows the part that decides.

Some pages have up to 20 seeds, because five left a claim undecided. The intervals are not
corrected for that, nor for the number of claims. A seed sets the random numbers of the learners,
the order or the choice of the classes and, where the protocol draws them, the training samples.
The test samples mostly stay the same. The intervals therefore say how much another run on the
same data may differ. They say nothing about another data set."""

_PUBLISHED = """\
Our numbers are means over the seeds ± the standard deviation."""

_NOT_MEASURED = "not measured"

# Shown in the index next to the title of a result.
_REMARKS = {"quick": "**a quick run**", "own_data": "on your own data"}


def format_page(
    experiment: Experiment,
    table: Table,
    findings: Sequence[Finding],
    record: Mapping[str, Any],
    figure: str | os.PathLike[str] | None = None,
) -> str:
    """The page of an experiment as Markdown.

    ``figure`` is the file of its figure, whose words the page explains too.
    """
    paper = find_paper(experiment.name)
    parts = ["## Claims and verdicts", _READING, "\n".join(map(_format_finding, findings))]
    if experiment.summarize is not None:
        parts += ["## Numbers", experiment.summarize(table)]
    published = format_published(experiment, table)
    if published:
        parts += ["## Published and measured numbers", _PUBLISHED, published]
    if experiment.notes:
        ours = experiment.name.startswith("guide-")
        parts += [
            "## Setting" if ours else "## Differences from the paper",
            "\n".join(f"- {n}" for n in experiment.notes),
        ]
    shows = _as_sentence(experiment.shows)
    text = "\n".join([shows, *parts, _words_of(figure)])
    terms = format_terms(paper.terms, text) if paper else ""
    above = [
        f"# {experiment.title}",
        shows,
        *([paper.about] if paper and paper.about else []),
        f"![{experiment.title}]({experiment.name}.svg)",
        *(["Words of this page:", terms] if terms else []),
    ]
    below = ["## Repeat it", _format_record(experiment, record)]
    return "\n\n".join([*above, *parts, *below]) + "\n"


def _words_of(figure: str | os.PathLike[str] | None) -> str:
    """All texts of an SVG file; text on several lines becomes one."""
    if figure is None:
        return ""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", Path(figure).read_text(encoding="utf-8"))
    return " ".join(map(html.unescape, found))


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def _format_finding(finding: Finding) -> str:
    parts = {
        "": finding.here,
        "Printed in the paper: ": finding.printed,
        f"{_decided_by(finding)}: ": finding.contrast,
        "Why: ": finding.why,
    }
    told = [f"  - {_as_sentence(label + text)}" for label, text in parts.items() if text]
    return "\n".join([f"- {_VERDICTS[finding.verdict]} {finding.claim}", *told])


def _decided_by(finding: Finding) -> str:
    """Which of the comparisons is shown, where several decide."""
    decision = finding.decision
    if not isinstance(decision, Verdict) or decision.n_parts == 1:
        return "Decided by"
    n, k = decision.n_parts, decision.n_deciding
    if decision.agrees:
        return f"Decided by the weakest of {n} comparisons"
    is_open = decision.agrees is None
    if k == 1:
        what = "undecided" if is_open else "against the claim"
        return f"Decided by the one comparison of {n} that is {what}"
    comparisons = "undecided comparisons" if is_open else "comparisons against the claim"
    pick = "least clear" if is_open else "clearest"
    return f"Decided by the {pick} of {k} {comparisons} ({n} in all)"


def format_published(experiment: Experiment, table: Table) -> str:
    """A table of the published numbers with ours for the same setting, mean and deviation.

    Where the published rows name no data set, each of ours has a column of its own. A published row
    without its number is a setting of ours.
    """
    apart = any("data" in row for row in experiment.published)
    names = [] if apart else table.values("data")
    columns = {name: table.where(data=name) for name in names} or {"here": table}
    measured = (*experiment.exact, *experiment.timed)
    lines, n_missing = [], 0
    for row in experiment.published:
        where = {key: row[key] for key in experiment.keys if key in row}
        # Columns that only the paper has, such as the kind of its features, are shown as well.
        setting = say_setting(where | {key: row[key] for key in row if key not in measured})
        for name in measured:
            # Relative to itself, a baseline says nothing.
            if name in row and (name, row[name]) != ("relative", 1):
                printed = "ours" if row[name] is None else say_number(name, row[name])
                here = [
                    _format_mean(_as_published(mine.where(**where), row, measured), name)
                    for mine in columns.values()
                ]
                if {*here} == {_NOT_MEASURED}:
                    n_missing += 1
                    continue
                cells = (setting, say_quantity(name), printed, *here)
                lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ""
    heads = [name if name == "here" else f"here, {name}" for name in columns]
    rule = "|---|---|---|" + "---|" * len(heads)
    shown = "\n".join([f"| setting | quantity | paper | {' | '.join(heads)} |", rule, *lines])
    if not n_missing:
        return shown
    numbers = format_count(n_missing, "number")
    return f"{shown}\n\nLeft out: {numbers} of the paper for settings that we did not measure."


def _as_published(table: Table, row: Row, measured: Collection[str]) -> Table:
    """The rows without those of runs that vary a setting to explain a verdict.

    These have columns that the others lack.
    """
    names = dict.fromkeys(name for each in table for name in each)
    varied = [
        name
        for name in names
        if name not in row
        and name not in measured
        and any(each.get(name) is None for each in table)
    ]
    return table.where(**dict.fromkeys(varied))


def _format_mean(table: Table, name: str) -> str:
    if not len(table.column(name)):
        return _NOT_MEASURED
    return say_number(name, table.mean(name), table.deviation(name))


def _format_record(experiment: Experiment, record: Mapping[str, Any]) -> str:
    data = ", ".join(
        f"{role}: {found['name']} (SHA-256 `{found['sha256'][:16]}`)"
        for role, found in record["data"].items()
    )
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    seeds = ", ".join(map(str, record["seeds"]))
    n_jobs = record["n_jobs"]
    threads = {-1: "one thread per core", 1: "one thread"}.get(n_jobs, f"{n_jobs} threads")
    if record.get("n_workers", 1) > 1:
        threads += " each"
    options = (" --quick" if record["quick"] else "") + (
        " --data YOUR_FILE" if record["own_data"] else ""
    )
    if record["n_seeds"] is not None:
        options += f" --seeds {record['n_seeds']}"
    files = f"Numbers: [{experiment.name}.csv]({experiment.name}.csv)"
    if experiment.timed:
        files += f", times: [{experiment.name}-timings.csv]({experiment.name}-timings.csv)"
    return "\n".join(
        [
            f"    evergrow experiment {experiment.name}{options}",
            "",
            *([f"- Data: {data}."] if data else []),
            *([f"- Seeds: {seeds}."] if seeds else []),
            f"- Machine: {record['processor']}, {_at_a_time(record)}, {threads}.",
            f"- Versions: {versions}.",
            f"- {files}.",
        ]
    )


def _at_a_time(record: Mapping[str, Any]) -> str:
    """How busy the processor was; times depend on it."""
    n_workers = record.get("n_workers", 1)
    at_once = "" if n_workers == 1 else f", {n_workers} runs at the same time"
    return f"{record['n_cores']} cores{at_once}"


def write_index(folder: str | os.PathLike[str]) -> Path:
    """Write ``index.md``, which lists the experiments whose results are in a folder."""
    target = Path(folder)
    parts = [_INTRODUCTION]
    found: list[str] = []
    for paper in PAPERS:
        lines = _index_lines(paper, target, found)
        if lines:
            parts += [f"## {paper.citation}", "\n".join(lines)]
    if found:
        parts.insert(1, _count_claims(target, found))
        parts += [
            "## How a claim is judged",
            _RULE,
            "## All claims",
            "\n".join(_claims(target, found)),
        ]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *found, "```"]))
    with atomic_write(target / "index.md") as file:
        file.write(("\n\n".join(parts) + "\n").encode())
    return target / "index.md"


def _index_lines(paper: Paper, folder: Path, found: list[str]) -> list[str]:
    lines = [
        "| page | seeds | minutes | agrees | differs | not decided |",
        "|---|---|---|---|---|---|",
    ]
    for name in paper.names:
        page, record = folder / f"{name}.md", folder / f"{name}.json"
        if not (page.exists() and record.exists()):
            continue
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        content = _read_record(record)
        if content is None:
            continue
        agrees = [finding["agrees"] for finding in content["findings"]]
        counts = (agrees.count(True), agrees.count(False), agrees.count(None))
        remarks = "".join(f", {words}" for key, words in _REMARKS.items() if content.get(key))
        about = (len(content.get("seeds", [])), _minutes(content), *counts)
        lines.append(f"| [{title}]({name}.md){remarks} | {' | '.join(map(str, about))} |")
        found.append(name)
    return lines if len(lines) > 2 else []


def _minutes(record: Mapping[str, Any]) -> str:
    """Minutes of all runs in one process; earlier versions did not record them."""
    seconds = record.get("seconds")
    return "" if seconds is None else f"{seconds / 60:.1f}"


def _count_claims(folder: Path, names: list[str]) -> str:
    """Sentences on all verdicts."""
    ours = [name for name in names if name.startswith("guide-")]
    papers = [name for name in names if name not in ours]
    parts = []
    for group, of in ((papers, "claims of the papers"), (ours, "claims of our own guide")):
        records = (_read_record(folder / f"{name}.json") for name in group)
        agrees = [each["agrees"] for record in records if record for each in record["findings"]]
        if agrees:
            parts.append(
                f"Of {len(agrees)} verdicts on {of}, {agrees.count(True)} agree, "
                f"{agrees.count(False)} differ and {agrees.count(None)} are not decided."
            )
    return " ".join(parts) + (
        " A claim that is judged on several data sets counts once for each. The tables count the "
        'verdicts of each page; "minutes" is the time of all its runs in one process. See [how a '
        "claim is judged](#how-a-claim-is-judged). Where a claim differs, its page says what it "
        "depends on, or that nothing we tried changes the verdict."
    )


def _claims(folder: Path, names: list[str]) -> list[str]:
    """All claims in one table, a row each; the pages have the numbers."""
    lines = ["| page | claim | verdict |", "|---|---|---|"]
    words = {True: "agrees", False: "**differs**", None: "not decided"}
    for name in names:
        record = _read_record(folder / f"{name}.json")
        for found in record["findings"] if record else ():
            claim = found["claim"].replace("|", chr(92) + "|")
            lines.append(f"| [{name}]({name}.md) | {claim} | {words[found['agrees']]} |")
    return lines


def _read_record(record: Path) -> dict[str, Any] | None:
    """The record of an experiment; None if the file is damaged."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        findings = [
            {key: finding[key] for key in ("claim", "agrees")} for finding in content["findings"]
        ]
    except (ValueError, KeyError, TypeError):
        return None
    return {**content, "findings": findings}
