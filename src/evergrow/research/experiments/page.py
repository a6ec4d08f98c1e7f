"""The page of an experiment: picture, numbers beside the paper's, and what agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evergrow.research.experiments.experiment import Experiment, Finding
from evergrow.research.experiments.table import Table

__all__ = ["beside_published", "page"]

_MARKS = {"agrees": "Agrees.", "differs": "**Differs.**", "open": "Not decided here."}


def page(
    experiment: Experiment, table: Table, findings: Sequence[Finding], record: Mapping[str, Any]
) -> str:
    """The page as Markdown."""
    parts = [
        f"# {experiment.title}",
        experiment.shows,
        f"![{experiment.title}]({experiment.name}.svg)",
        "## What agrees and what does not",
        "\n".join(f"- {_MARKS[f.verdict]} {f.claim} {f.here}" for f in findings),
    ]
    beside = beside_published(experiment, table)
    if beside:
        parts += ["## The paper's numbers beside ours", beside]
    if experiment.notes:
        parts += [
            "## What is not as in the paper",
            "\n".join(f"- {n}" for n in experiment.notes),
        ]
    parts += ["## How it was measured", _measured(experiment, record)]
    return "\n\n".join(parts) + "\n"


def beside_published(experiment: Experiment, table: Table) -> str:
    """A table of the printed numbers with ours for the same setting, mean and deviation.

    Where the printed rows do not tell data sets apart, each of ours has a column of its own.
    """
    apart = any("data" in row for row in experiment.published)
    names = [] if apart else table.values("data")
    columns = {name: table.where(data=name) for name in names} or {"here": table}
    measured = (*experiment.exact, *experiment.timed)
    lines = []
    for row in experiment.published:
        where = {key: row[key] for key in experiment.keys if key in row}
        # What only the paper tells apart, as its features from other ones, is said as well.
        told = where | {key: row[key] for key in row if key not in measured}
        setting = ", ".join(f"{key} {value}" for key, value in told.items())
        for name in measured:
            if row.get(name) is not None:
                ours = [_mean(mine.where(**where), name) for mine in columns.values()]
                lines.append(f"| {setting} | {name} | {row[name]:.4g} | {' | '.join(ours)} |")
    if not lines:
        return ""
    heads = [name if name == "here" else f"here, {name}" for name in columns]
    rule = "|---|---|---|" + "---|" * len(heads)
    return "\n".join([f"| setting | what | paper | {' | '.join(heads)} |", rule, *lines])


def _mean(table: Table, name: str) -> str:
    found = table.column(name)
    if not len(found):
        return "not measured"
    return f"{table.mean(name):.4g} ± {table.deviation(name):.2g}"


def _threads(n_jobs: int) -> str:
    return {-1: "a thread for each", 1: "one thread"}.get(n_jobs, f"{n_jobs} threads")


def _measured(experiment: Experiment, record: Mapping[str, Any]) -> str:
    data = ", ".join(
        f"{role}: {found['name']} (SHA-256 `{found['sha256'][:16]}`)"
        for role, found in record["data"].items()
    )
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    seeds = ", ".join(map(str, record["seeds"]))
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
            *([f"Data: {data}."] if data else []),
            *([f"Seeds: {seeds}."] if seeds else []),
            f"{record['processor']}, {record['n_cores']} cores, "
            f"{_threads(record['n_jobs'])}; {versions}.",
            f"{files}.",
        ]
    )
