"""Run an experiment: measure the missing runs, then write its table, figure and page.

Or write figure and page again from the stored table. Both judge the table as it is stored.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import atomic_write
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.version import __version__
from evergrow.research.experiments.context import ExperimentContext
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.measuring import measure_runs
from evergrow.research.experiments.pages import format_page
from evergrow.research.experiments.plots import check_matplotlib, saved_figure
from evergrow.research.experiments.run_cache import CachedRun, RunCache
from evergrow.research.experiments.stored import Stored, read_stored, store
from evergrow.research.experiments.table import Table


@dataclass(frozen=True)
class Outcome:
    """The result of :func:`run_experiment` and of :func:`render_experiment`.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    table : Table
        The rows that were measured.
    findings : tuple of Finding
        The claims of the paper, and which of them hold.
    record : mapping
        Versions, processor and hashes of the data.
    n_measured : int
        Number of runs measured now; the others were in the cache.
    """

    experiment: Experiment
    table: Table
    findings: tuple[Finding, ...]
    record: Mapping[str, Any]
    n_measured: int


def run_experiment(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    context: ExperimentContext,
    *,
    fresh: bool = False,
    n_workers: int = 1,
    verbose: int = 0,
) -> Outcome:
    """Run an experiment and write its results.

    Every finished run is cached in `folder`. After an interruption, the same call resumes and
    writes the same ``NAME.csv``. Times go to ``NAME-timings.csv``, because they differ from run to
    run.

    Parameters
    ----------
    experiment : Experiment
        The experiment, from :func:`~evergrow.research.find_experiments`.
    folder : path
        Folder for tables, figure, page and record. It is created if it does not exist.
    context : ExperimentContext
        Data sets and sizes.
    fresh : bool, default=False
        Whether to clear the cache and measure all runs again, for example after a change of the
        code.
    n_workers : int, default=1
        Number of processes that measure runs at the same time. Accuracies do not depend on it, but
        times do.
    verbose : int, default=0
        Show a progress bar if positive.

    Returns
    -------
    outcome : Outcome
        The table, and which claims of the paper hold.
    """
    target = check_folder(folder)
    _check_replacing(target / f"{experiment.name}.json", context)
    check_matplotlib()
    cache = RunCache(target / ".runs" / f"{experiment.name}.jsonl")
    if fresh:
        cache.clear()
    runs = list(experiment.runs(context))
    settings = [_setting(context, run) for run in runs]
    found = [cache.get(setting) for setting in settings]
    missing = [place for place, run in enumerate(found) if run is None]
    with progress_bar(f"Measuring {experiment.name}", len(missing), verbose) as show:
        measuring = measure_runs(
            experiment, context, [runs[place] for place in missing], min(n_workers, len(missing))
        )
        for done, (index, run) in enumerate(measuring if missing else ()):
            place = missing[index]
            found[place] = cache.add(
                settings[place],
                run.rows,
                seconds=round(run.seconds, 3),
                n_workers=run.n_workers,
                n_jobs=run.n_jobs,
                environment=run.environment,
            )
            if show is not None:
                show(done + 1)
    cached = [run for run in found if run is not None]
    table = Table(row for run in cached for row in run.rows)
    if experiment.complete is not None:
        table = experiment.complete(table)
    stored = store(experiment, table, _record(experiment, context, runs, cached))
    return _finish(target, experiment, stored, len(missing))


def render_experiment(experiment: Experiment, folder: str | os.PathLike[str]) -> Outcome:
    """Judge stored results again and write their figure, page and findings, without measuring.

    For a change of the wording, of the figure or of a rule: the tables and the record stay what
    they are. The results are those that :func:`run_experiment` would write after the same
    measurements. A figure that shows more than the tables hold, such as pictures, is kept as it is
    (:attr:`Experiment.can_draw_stored`).

    Parameters
    ----------
    experiment : Experiment
        The experiment, from :func:`~evergrow.research.find_experiments`.
    folder : path
        Folder with its ``NAME.csv``, ``NAME.json`` and, if it measures times,
        ``NAME-timings.csv``.

    Returns
    -------
    outcome : Outcome
        The table, and which claims of the paper hold.
    """
    check_matplotlib()
    target, stored = Path(folder), read_stored(experiment, folder)
    figure = target / f"{experiment.name}.svg"
    if not experiment.can_draw_stored and not figure.exists():
        raise FileNotFoundError(
            f"{str(figure)!r} does not exist, and cannot be drawn without measuring again"
        )
    return _finish(check_folder(target), experiment, stored, 0, draws=experiment.can_draw_stored)


def _finish(
    folder: Path, experiment: Experiment, stored: Stored, n_measured: int, *, draws: bool = True
) -> Outcome:
    """Judge the table as it is stored, and write everything."""
    findings = tuple(experiment.judge(stored.table))
    outcome = Outcome(experiment, stored.table, findings, stored.record, n_measured)
    # The figure first: a page must not show a figure that does not exist, and explains its words.
    drawing = folder / f"{experiment.name}.svg"
    if draws:
        with saved_figure(drawing, *experiment.size) as figure:
            experiment.draw(figure, stored.table)
    page = format_page(experiment, stored.table, findings, stored.record, drawing)
    files = {
        **stored.tables,
        f"{experiment.name}.md": page,
        f"{experiment.name}.json": _as_json(outcome),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as file:
            file.write(text.encode())
    return outcome


def estimate_seconds(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    context: ExperimentContext,
    n_workers: int = 1,
) -> float | None:
    """Seconds that the runs which are not cached will take; None if not known.

    By the time that runs of the last result in the folder took on average.
    """
    cache = RunCache(Path(folder) / ".runs" / f"{experiment.name}.jsonl")
    runs = list(experiment.runs(context))
    n_missing = sum(cache.get(_setting(context, run)) is None for run in runs)
    if not n_missing:
        return 0.0
    try:
        record = json.loads((Path(folder) / f"{experiment.name}.json").read_text(encoding="utf-8"))
        rounds = n_missing / min(n_workers, n_missing)
        return rounds * float(record["seconds"]) / int(record["n_runs"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Create a folder, or raise an error, before any work, if it cannot be written to."""
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


def _check_replacing(record: Path, context: ExperimentContext) -> None:
    """Refuse to replace a full run, which may have taken an hour, by a quick one."""
    if not context.quick or not record.exists():
        return
    try:
        was_quick = json.loads(record.read_text(encoding="utf-8"))["quick"]
    except (ValueError, KeyError, TypeError):
        return
    if not was_quick:
        raise InvalidInputError(
            f"{record.name} is from a full run that a quick run would replace: name another folder"
        )


def _setting(context: ExperimentContext, run: Run) -> dict[str, Any]:
    """Everything that a run depends on: the key of the cache."""
    name = run.get("data")
    data = {} if name is None else {"sha256": context.dataset(name).sha256}
    return {**run, **data, "quick": context.quick, "version": __version__}


def _record(
    experiment: Experiment, context: ExperimentContext, runs: list[Run], cached: list[CachedRun]
) -> dict[str, Any]:
    names = dict.fromkeys(run["data"] for run in runs if "data" in run)
    datasets = {name: context.dataset(name) for name in names}
    return {
        "experiment": experiment.name,
        "quick": context.quick,
        "own_data": context.data is not None,
        "n_jobs": context.n_jobs,
        "n_seeds": context.n_seeds,
        "seeds": sorted({run["seed"] for run in runs if "seed" in run}),
        "data": {
            name: {"name": data.name, "sha256": data.sha256} for name, data in datasets.items()
        },
        **describe_environment(),
        **_measured_on(cached),
    }


def _measured_on(cached: list[CachedRun]) -> dict[str, Any]:
    """How the runs were measured: their number, seconds, runs at a time, and environment.

    Runs that do not say so, of earlier versions, are taken to be measured here.
    """
    found: dict[str, Any] = {"n_runs": len(cached)}
    said = {"seconds", "n_workers", "n_jobs", "environment"}
    if not all(said <= run.about.keys() for run in cached):
        return found
    environments = [run.about["environment"] for run in cached]
    return {
        **found,
        "seconds": round(sum(run.about["seconds"] for run in cached), 1),
        "n_workers": max((run.about["n_workers"] for run in cached), default=1),
        "n_jobs": max((run.about["n_jobs"] for run in cached), default=1),
        **_joined(environments),
    }


def _joined(environments: list[dict[str, Any]]) -> dict[str, Any]:
    """Environments as one: all versions and processors, and the most cores."""
    versions: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, number in environment["versions"].items():
            versions.setdefault(name, {})[number] = None
    return {
        "versions": {name: " and ".join(numbers) for name, numbers in versions.items()},
        "processor": ", ".join(dict.fromkeys(each["processor"] for each in environments)),
        "n_cores": max(each["n_cores"] for each in environments),
    }


def _as_json(outcome: Outcome) -> str:
    keys = ("claim", "printed", "here", "contrast", "agrees")
    findings = [
        {**{key: getattr(each, key) for key in keys}, "reason": each.why}
        for each in outcome.findings
    ]
    return json.dumps({**outcome.record, "findings": findings}, indent=2) + "\n"
