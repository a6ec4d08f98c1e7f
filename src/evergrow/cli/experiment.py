"""``evergrow experiment``: repeat the experiments of the papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evergrow.cli.options import JOBS, QUIET, command, verbosity
from evergrow.cli.output import report, write_text

if TYPE_CHECKING:
    from evergrow.research.experiments import Experiment, ExperimentContext, Outcome


@command(
    "evergrow experiment --list",
    "evergrow experiment cvpr2014-fig5 --quick",
    "evergrow experiment cvpr2014-fig5 --data features.npz --out results",
    "evergrow experiment icra2017",
    "evergrow experiment all --render --out docs/results",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="List all tables and figures.")
@click.option(
    "--data", type=click.Path(), help="Use your own data (.npz features, or a folder) instead."
)
@click.option("--quick", is_flag=True, help="A small run on built-in data, in about a minute.")
@click.option(
    "--out",
    type=click.Path(),
    help="Folder for tables, figures, pages and cached runs; by default results or results-quick.",
)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Number of random seeds; mostly 5 by default."
)
@click.option("--fresh", is_flag=True, help="Ignore cached runs.")
@click.option(
    "--render",
    is_flag=True,
    help="Measure nothing: judge the stored tables in the folder again and write their pages.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Processes that measure runs at the same time. Times then depend on each other.",
)
@JOBS
@QUIET
def experiment(
    names: tuple[str, ...],
    listing: bool,
    data: str | None,
    quick: bool,
    out: str | None,
    seeds: int | None,
    fresh: bool,
    render: bool,
    workers: int,
    jobs: int,
    quiet: bool,
) -> None:
    """Repeat experiments of the papers: NAME is one, a paper's name, or "all".

    Prints which claims of the paper hold. Writes the tables NAME.csv and NAME-timings.csv, the
    figure NAME.svg, the page NAME.md, and NAME.json with versions, processor and hashes of the
    data. Without --data and --quick, the data are the files in the folder EVERGROW_DATA, or
    built-in data if this variable is not set. After an interruption, run the same command again to
    resume.

    --render reads NAME.csv, NAME-timings.csv and NAME.json, and writes page, figure and findings
    from them, for example after a change of the wording. With the name of a paper, or "all", it
    takes the experiments whose results are in the folder.
    """
    if listing:
        _write_list()
        return
    if not names:
        raise click.UsageError("name an experiment, or use --list")
    out = out or ("results-quick" if quick else "results")
    if render:
        if quick or fresh or data is not None or seeds is not None or workers != 1:
            raise click.UsageError(
                "--render measures nothing: leave out --data, --quick, --seeds, --fresh, --workers"
            )
        _render(names, out, quiet=quiet)
        return
    from evergrow.research.experiments import ExperimentContext, find_experiments, run_experiment
    from evergrow.research.experiments.pages import write_index
    from evergrow.research.experiments.runner import check_folder

    found = find_experiments(names)
    if data is not None:
        found = _taking_data(found)
    check_folder(out)
    for each in found:
        context = ExperimentContext(
            each.sources, quick=quick, data=data, n_seeds=seeds, n_jobs=jobs
        )
        for file in context.missing_files:
            report(f"{each.name}: built-in data stand in for {file}")
        if not (quick or fresh):
            report(_expected_time(each, out, context, workers), quiet=quiet)
        try:
            outcome = run_experiment(
                each, out, context, fresh=fresh, n_workers=workers, verbose=verbosity(quiet)
            )
        except KeyboardInterrupt:
            report("Finished runs are cached; run the same command again to resume.")
            raise
        _write_findings(outcome)
        report(f"  {out}/{each.name}.svg", quiet=quiet)
    write_index(out)


def _write_findings(outcome: Outcome) -> None:
    click.echo(f"{outcome.experiment.name}: {outcome.experiment.title}")
    for finding in outcome.findings:
        write_text(f"{finding.verdict}: {finding.claim} {finding.here}")


def _render(names: tuple[str, ...], out: str, *, quiet: bool) -> None:
    """Write the pages of stored results again."""
    from evergrow.research.experiments import find_experiments, render_experiment
    from evergrow.research.experiments.pages import write_index
    from evergrow.research.experiments.stored import has_results

    found = find_experiments(names)
    stored = [each for each in found if each.name in names or has_results(each, out)]
    if not stored:
        raise click.UsageError(f"no results of these experiments in {out!r}: measure them first")
    for each in stored:
        _write_findings(render_experiment(each, out))
        if not each.can_draw_stored:
            drawn = ", ".join(each.drawn)
            report(f"{each.name}: {each.name}.svg is kept; no file has what it shows ({drawn})")
        report(f"  {out}/{each.name}.md", quiet=quiet)
    write_index(out)


def _expected_time(
    experiment: Experiment, folder: str, context: ExperimentContext, workers: int
) -> str:
    from evergrow.research.experiments.runner import estimate_seconds

    seconds = estimate_seconds(experiment, folder, context, workers)
    if seconds is None:
        return f"{experiment.name}: no earlier results to estimate the time from"
    if not seconds:
        return f"{experiment.name}: all runs are cached"
    minutes = max(1, round(seconds / 60))
    return f"{experiment.name}: about {minutes} min, by the last results"


def _taking_data(experiments: list[Experiment]) -> list[Experiment]:
    """Return the experiments that accept a user's data, and list the others."""
    taking = [each for each in experiments if each.sources]
    left_out = [each.name for each in experiments if not each.sources]
    if not taking:
        raise click.UsageError(
            f"{', '.join(left_out)}: generates its own data and does not accept --data"
        )
    for name in left_out:
        report(f"{name}: skipped, it generates its own data")
    return taking


def _write_list() -> None:
    from evergrow.research.experiments import PAPERS, find_experiments

    for paper in PAPERS:
        click.echo(paper.citation)
        for each in find_experiments([paper.name]):
            click.echo(f"  {each.name:22} {each.shows}")
        for illustration in paper.illustrations:
            click.echo(f"  {illustration.name:22} not repeated: {illustration.why}")
