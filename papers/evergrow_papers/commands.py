"""``evergrow experiment`` and ``evergrow download``, two commands for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from evergrow.cli.options import JOBS, QUIET, command, verbosity
from evergrow.cli.output import report, write_text

if TYPE_CHECKING:
    from evergrow_papers import frame


@command(
    "evergrow experiment --list",
    "evergrow experiment cvpr2014-fig5 --quick",
    "evergrow experiment cvpr2014-fig5 --data features.npz --out results",
    "evergrow experiment icra2017",
    "evergrow experiment all --render --out papers/results",
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
@click.option(
    "--fresh",
    is_flag=True,
    help="Ignore cached runs; replace results of more seeds or real data.",
)
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
    """Repeat the experiments of the papers: NAME is one, a paper's name, or "all".

    Prints which claims of the paper hold. Writes the tables NAME.csv and NAME-timings.csv, the
    figure NAME.svg, the page NAME.md, and NAME.json with versions, processor and hashes of the
    data. Without --data and --quick, the data are the files in the folder EVERGROW_DATA, or
    built-in data if this variable is not set. After an interruption, run the same command again to
    resume.

    --render reads NAME.csv, NAME-timings.csv and NAME.json, and writes page, figure and findings
    from them, for example after a change of a claim. With the name of a paper, or "all", it takes
    the experiments whose results are in the folder.
    """
    if listing:
        _write_list()
        return
    if not names:
        raise click.UsageError("name an experiment, or use --list")
    from evergrow_papers import frame, page

    out = out or ("results-quick" if quick else "results")
    found = frame.find_experiments(names)
    if render:
        if quick or fresh or data is not None or seeds is not None or workers != 1:
            raise click.UsageError(
                "--render measures nothing: leave out --data, --quick, --seeds, --fresh, --workers"
            )
        _render([each for each in found if each.name in names or frame.has_results(each, out)], out)
        return
    if data is not None:
        found = _taking_data(found)
    frame.check_folder(out)
    for each in found:
        context = frame.Context(each.sources, quick=quick, data=data, n_seeds=seeds, n_jobs=jobs)
        for file in context.missing_files:
            report(f"{each.name}: built-in data stand in for {file}")
        if not (quick or fresh):
            report(_expected_time(each, out, context, workers), quiet=quiet)
        try:
            outcome = frame.run(
                each, out, context, fresh=fresh, n_workers=workers, verbose=verbosity(quiet)
            )
        except KeyboardInterrupt:
            report("Finished runs are cached; run the same command again to resume.")
            raise
        _write_findings(outcome)
        report(f"  {out}/{each.name}.md", quiet=quiet)
    page.write_index(out)


def _write_findings(outcome: frame.Outcome) -> None:
    click.echo(f"{outcome.experiment.name}: {outcome.experiment.title}")
    for finding in outcome.findings:
        group = f"{finding.group}: " if finding.group else ""
        decided_by = f" {finding.decided_by}." if finding.decided_by else ""
        write_text(f"{finding.verdict}: {group}{finding.claim}{decided_by}")


def _render(found: Sequence[frame.Experiment], out: str) -> None:
    """Write the pages of stored results again."""
    from evergrow_papers import frame, page

    if not found:
        raise click.UsageError(f"no results of these experiments in {out!r}: measure them first")
    for each in found:
        _write_findings(frame.render(each, out))
        if each.drawn:
            drawn = ", ".join(each.drawn)
            report(f"{each.name}: {each.name}.svg is kept; no file has what it shows ({drawn})")
    page.write_index(out)


def _expected_time(
    experiment: frame.Experiment, folder: str, context: frame.Context, workers: int
) -> str:
    from evergrow_papers import frame

    seconds = frame.estimate_seconds(experiment, folder, context, workers)
    if seconds is None:
        return f"{experiment.name}: no earlier results to estimate the time from"
    if not seconds:
        return f"{experiment.name}: all runs are cached"
    return f"{experiment.name}: about {max(1, round(seconds / 60))} min, by the last results"


def _taking_data(experiments: Sequence[frame.Experiment]) -> list[frame.Experiment]:
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
    from evergrow_papers import frame

    for name in frame.PAPERS:
        paper = frame.load_paper(name)
        click.echo(paper.citation)
        for key, each in paper.experiments.items():
            click.echo(f"  {key:22} {each.shows}")
        for illustration, why in paper.illustrations.items():
            click.echo(f"  {illustration:22} not repeated: {why}")


@command(
    "evergrow download mnist data",
    "evergrow download cifar100 data",
)
@click.argument("name", type=click.Choice(["cifar10", "cifar100", "mnist"]))
@click.argument("folder", type=click.Path())
@QUIET
def download(name: str, folder: str, quiet: bool) -> None:
    """Download the data set NAME and write it as FOLDER/NAME.npz.

    The file has X_train, y_train, X_test and y_test, which 'evergrow compare' and 'evergrow
    experiment --data' read. Downloads use https only, and the SHA-256 of every file is checked.
    After an interruption, run the same command again to resume.
    """
    from evergrow_papers.data import download as fetch

    path = fetch(name, folder, verbose=verbosity(quiet))
    report(f"{click.format_filename(path)}: complete.", quiet=quiet)
