"""Performing an experiment: the runs that are missing, then its table, picture and page."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import written_whole
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.version import __version__
from evergrow.research.experiments.drawing import check_drawing, drawn
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.kept import KeptRuns
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.page import page
from evergrow.research.experiments.record import surroundings
from evergrow.research.experiments.table import Table

__all__ = ["Outcome", "check_folder", "perform"]


@dataclass(frozen=True)
class Outcome:
    """What an experiment gave."""

    experiment: Experiment
    table: Table
    findings: tuple[Finding, ...]
    record: Mapping[str, Any]
    n_measured: int
    """Runs done now; the others were kept from before."""


def perform(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    lab: Lab,
    *,
    fresh: bool = False,
    verbose: int = 0,
) -> Outcome:
    """Do an experiment and write what came of it.

    Every finished run is kept in ``folder``, so that after an interruption the same call goes on
    where it stopped and writes the same ``NAME.csv``; times, which differ whenever they are
    taken, stand apart in ``NAME-timings.csv``.

    Parameters
    ----------
    experiment : Experiment
        One of :func:`~evergrow.research.find_experiments`.
    folder : path
        Where tables, picture, page and record are written; it is made if it is not there.
    lab : Lab
        Data sets and sizes.
    fresh : bool, default=False
        Do runs again that are kept from before, as after a change of the code.
    verbose : int, default=0
        Above 0 shows how far it is and how long it may take.
    """
    target = check_folder(folder)
    _check_replacing(target / f"{experiment.name}.json", lab)
    check_drawing()
    kept = KeptRuns(target / ".runs" / f"{experiment.name}.jsonl")
    if fresh:
        kept.drop()
    rows: list[dict[str, Any]] = []
    n_measured = 0
    runs = list(experiment.runs(lab))
    with progress_bar(experiment.name, len(runs), verbose) as show:
        for done, run in enumerate(runs):
            if show is not None:
                show(done)
            setting = _setting(lab, run)
            found = kept.find(setting)
            if found is None:
                found = kept.keep(setting, experiment.measure(lab, run))
                n_measured += 1
            rows += found
    table = Table(rows) if experiment.complete is None else experiment.complete(Table(rows))
    outcome = Outcome(
        experiment,
        table,
        tuple(experiment.judge(table)),
        _record(experiment, lab, runs),
        n_measured,
    )
    _write(target, outcome)
    return outcome


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder, or say before any work why nothing can be written there."""
    target = Path(folder)
    probe = target / ".evergrow-probe"
    try:
        target.mkdir(parents=True, exist_ok=True)
        probe.touch()
    except OSError as error:
        raise OSError(f"cannot write to the folder {str(folder)!r}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return target


def _check_replacing(record: Path, lab: Lab) -> None:
    """A quick run must not take the place of a full one that took an hour."""
    if not lab.quick or not record.exists():
        return
    try:
        was_quick = json.loads(record.read_text(encoding="utf-8"))["quick"]
    except (ValueError, KeyError, TypeError):
        return
    if not was_quick:
        raise ValueError(
            f"{record.name} is of a full run, which a quick one would replace: name another folder"
        )


def _setting(lab: Lab, run: Run) -> dict[str, Any]:
    """All that a run depends on; one that is kept holds only for the same."""
    name = run.get("data")
    data = {} if name is None else {"sha256": lab.dataset(name).sha256}
    return {**run, **data, "quick": lab.quick, "version": __version__}


def _record(experiment: Experiment, lab: Lab, runs: list[Run]) -> dict[str, Any]:
    names = dict.fromkeys(run["data"] for run in runs if "data" in run)
    datasets = {name: lab.dataset(name) for name in names}
    return {
        "experiment": experiment.name,
        "quick": lab.quick,
        "own_data": lab.data is not None,
        "n_jobs": lab.n_jobs,
        "n_seeds": lab.n_seeds,
        "seeds": sorted({run["seed"] for run in runs if "seed" in run}),
        "data": {
            name: {"name": data.name, "sha256": data.sha256} for name, data in datasets.items()
        },
        **surroundings(),
    }


def _write(folder: Path, outcome: Outcome) -> None:
    experiment, table = outcome.experiment, outcome.table
    # The picture first: a page must not speak of one that is not there.
    with drawn(folder / f"{experiment.name}.svg", *experiment.size) as figure:
        experiment.draw(figure, table)
    files = {
        f"{experiment.name}.csv": table.to_csv(experiment.columns),
        f"{experiment.name}.md": page(experiment, table, outcome.findings, outcome.record),
        f"{experiment.name}.json": _as_json(outcome),
    }
    if experiment.timed:
        columns = (*experiment.keys, *experiment.timed)
        files[f"{experiment.name}-timings.csv"] = table.to_csv(columns)
    for name, text in files.items():
        with written_whole(folder / name) as file:
            file.write(text.encode())


def _as_json(outcome: Outcome) -> str:
    findings = [{"claim": f.claim, "here": f.here, "agrees": f.agrees} for f in outcome.findings]
    return json.dumps({**outcome.record, "findings": findings}, indent=2) + "\n"
