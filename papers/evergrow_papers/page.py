"""Markdown pages: the page of an experiment, and the index of a folder of results.

What a page says in prose is in ``notes/PAPER.md``: the words of the paper, notes on how the
experiment differs from the paper, and reasons for claims that differ. :func:`read_notes` reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergrow.foundation.errors import InvalidInputError, warn_user
from evergrow.foundation.files import atomic_write
from evergrow.foundation.formatting import format_count
from evergrow_papers.claims import Finding, Words
from evergrow_papers.frame import (
    PAPERS,
    STANDS_IN,
    Experiment,
    Outcome,
    Paper,
    has_results,
    load_paper,
    read_record,
)
from evergrow_papers.table import Row, Table

if TYPE_CHECKING:
    from jinja2 import Environment

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Notes:
    """The prose of a page, from ``notes/PAPER.md``.

    Attributes
    ----------
    about : str
        What a reader of any page of the paper must know.
    words : mapping of str to str
        What the words of the paper mean.
    text : str
        How the experiments of the paper, and then this one, differ from the paper.
    reasons : mapping of str to str
        Why claims differ, by "claim" or "claim: group".
    """

    about: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)

    def reason(self, finding: Finding) -> str:
        """Why a claim differs: the reason of its group, or else that of the claim."""
        groups = (f"{finding.key}: {finding.group}", finding.key)
        return next((self.reasons[name] for name in groups if name in self.reasons), "")


def read_notes(paper: str, experiment: str) -> Notes:
    """Read the notes of an experiment."""
    sections = _sections(paper)
    shared, mine = sections.get(paper, {}), sections.get(experiment, {})
    words = re.findall(r"^- \*\*(.+?)\*\*: (.+?)$", shared.get("words", ""), re.MULTILINE)
    reasons = {name: text for name, text in mine.items() if name}
    text = "\n".join(filter(None, (shared.get("notes", ""), mine.get("", ""))))
    return Notes(shared.get("", ""), dict(words), text, reasons)


@cache
def _sections(paper: str) -> dict[str, dict[str, str]]:
    """The text of a file by its headings of the first and of the second level."""
    text = files("evergrow_papers").joinpath(f"notes/{paper}.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for part in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        pieces = re.split(r"^## ", rest, flags=re.MULTILINE)
        named = (piece.partition("\n")[::2] for piece in pieces[1:])
        found[title.strip()] = {"": pieces[0].strip()} | {n.strip(): t.strip() for n, t in named}
    return found


def format_page(outcome: Outcome, paper: Paper, notes: Notes) -> str:
    """The page of an experiment as Markdown."""
    experiment, record = outcome.experiment, outcome.record
    # Reasons are about the stored full run on our data.
    caveat = describe_run(record)
    page = {
        "experiment": experiment,
        "record": record,
        "caveat": caveat,
        "notes": notes,
        "is_guide": paper.name == "guide",
        "findings": [
            {
                "finding": each,
                "group": each.group[:1].upper() + each.group[1:],
                "decided_by": _decided_by(each),
                "why": notes.reason(each) if not caveat and each.agrees is False else "",
            }
            for each in outcome.findings
        ],
        "numbers": "" if experiment.numbers is None else experiment.numbers(outcome.table),
        "published": format_published(experiment, outcome.table, paper.words),
        "machine": _machine(record),
        "options": _options(record),
    }
    text = _templates().get_template("page.md.j2").render(page, words={})
    used = {name: said for name, said in notes.words.items() if _is_used(name, text)}
    return str(_templates().get_template("page.md.j2").render(page, words=used))


def describe_run(record: Mapping[str, Any]) -> str:
    """What tells a run from a full one on the data of the paper, such as "a quick run"."""
    files = [each[STANDS_IN] for each in record["data"].values() if STANDS_IN in each]
    run = "a quick run" if record["quick"] else "a run"
    if record["own_data"]:
        return f"{run} on your own data"
    if files:
        return f"{run} on generated data in place of {' and '.join(files)}"
    return run if record["quick"] else ""


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Markdown from our own tables and texts, not HTML from outside.
    return Environment(  # noqa: S701
        loader=PackageLoader("evergrow_papers", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _is_used(name: str, text: str) -> bool:
    """Whether a text has a word, and not as a part of another, as NN in NN-H."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def _decided_by(finding: Finding) -> str:
    """Which of the comparisons is shown, where several decide."""
    n, alike = finding.n_parts, finding.n_alike
    if n == 1:
        return "Decided by"
    if finding.agrees:
        return f"Decided by the weakest of {n} comparisons"
    what = "undecided" if finding.agrees is None else "against the claim"
    pick = "least clear" if finding.agrees is None else "clearest"
    if alike == 1:
        return f"Decided by the one of {n} comparisons that is {what}"
    return f"Decided by the {pick} of {alike} comparisons {what} ({n} in all)"


def format_published(experiment: Experiment, table: Table, words: Words) -> str:
    """A table of the printed numbers with ours for the same setting, mean and deviation.

    Where the published rows name no data set, each of ours has a column of its own.
    """
    apart = any("data" in row for row in experiment.published)
    names = [] if apart else table.values("data")
    columns = {name: table.where(data=name) for name in names} or {"": table}
    measured = (*experiment.exact, *experiment.timed)
    lines, n_missing = [], 0
    for row in experiment.published:
        where = {key: row[key] for key in experiment.keys if key in row}
        setting = words.setting({key: row[key] for key in row if key not in measured})
        for name in measured:
            # Relative to itself, a baseline says nothing.
            if name not in row or (name, row[name]) == ("relative", 1):
                continue
            here = [
                _mean(_without_variants(mine.where(**where), row, measured), name, words)
                for mine in columns.values()
            ]
            if {*here} == {NOT_MEASURED}:
                n_missing += 1
                continue
            printed = "ours" if row[name] is None else words.number(name, row[name])
            lines.append(
                " | ".join(("", setting, words.quantity(name), printed, *here, "")).strip()
            )
    if not lines:
        return ""
    heads = [f"here, {words.bare('data', name)}" if name else "here" for name in columns]
    top = " | ".join(("", "setting", "quantity", "paper", *heads, "")).strip()
    shown = "\n".join([top, "|---" * (3 + len(heads)) + "|", *lines])
    left_out = format_count(n_missing, "number")
    more = f"\n\nLeft out: {left_out} of the paper for settings that we did not measure."
    return shown + (more if n_missing else "")


def _without_variants(table: Table, row: Row, measured: Sequence[str]) -> Table:
    """The rows without those of runs that vary a setting; these have columns that others lack."""
    names = dict.fromkeys(name for each in table for name in each)
    varied = [
        name
        for name in names
        if name not in row
        and name not in measured
        and any(each.get(name) is None for each in table)
    ]
    return table.where(**dict.fromkeys(varied))


def _mean(table: Table, name: str, words: Words) -> str:
    if not len(table.column(name)):
        return NOT_MEASURED
    return words.number(name, table.mean(name), table.deviation(name))


def _machine(record: Mapping[str, Any]) -> str:
    n_jobs, n_workers = record["n_jobs"], record["n_workers"]
    threads = {-1: "one thread per core", 1: "one thread"}.get(n_jobs, f"{n_jobs} threads")
    at_once = "" if n_workers == 1 else f", {n_workers} runs at the same time"
    each = "" if n_workers == 1 else " each"
    return f"{record['processor']}, {record['n_cores']} cores{at_once}, {threads}{each}"


def _options(record: Mapping[str, Any]) -> str:
    options = " --quick" * record["quick"] + " --data YOUR_FILE" * record["own_data"]
    seeds = "" if record["n_seeds"] is None else f" --seeds {record['n_seeds']}"
    return f"{options}{seeds}"


def write_index(folder: str | os.PathLike[str]) -> Path:
    """Write ``index.md``, which lists the experiments whose results are in a folder.

    Damaged results, and those without a page, are left out with a warning.
    """
    target = Path(folder)
    papers: list[dict[str, Any]] = []
    n_experiments = 0
    for paper in map(load_paper, PAPERS):
        n_experiments += len(paper.experiments)
        found = [_entry(each, target) for each in paper.experiments.values()]
        if any(found):
            papers.append({"paper": paper, "experiments": [*filter(None, found)]})
    entries = [(each["paper"].name, one) for each in papers for one in each["experiments"]]
    text = (
        _templates()
        .get_template("index.md.j2")
        .render(
            papers=papers,
            groups={
                what: _count(*(one["record"] for name, one in entries if (name == "guide") is own))
                for what, own in (("the papers", False), ("our own guide", True))
            },
            n_full=sum(not one["run"] for _, one in entries),
            n_experiments=n_experiments,
        )
    )
    with atomic_write(target / "index.md") as file:
        file.write(text.encode())
    return target / "index.md"


def _entry(experiment: Experiment, folder: Path) -> dict[str, Any] | None:
    """What the index says about an experiment; None if it has no results, or damaged ones."""
    if not has_results(experiment, folder):
        return None
    try:
        record = read_record(experiment, folder)
        if not (folder / f"{experiment.name}.md").exists():
            raise FileNotFoundError(f"{experiment.name}.md does not exist: write it with --render")
    except (OSError, InvalidInputError) as error:
        warn_user(f"the index leaves out {experiment.name}: {error}", UserWarning)
        return None
    run, counts = describe_run(record), _count(record)
    return {"experiment": experiment, "record": record, "run": run, "counts": counts}


def _count(*records: Mapping[str, Any]) -> dict[str, int]:
    agrees = [each["agrees"] for record in records for each in record["findings"]]
    return {
        "verdicts": len(agrees),
        "agrees": agrees.count(True),
        "differs": agrees.count(False),
        "open": agrees.count(None),
    }
