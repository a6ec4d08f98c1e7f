"""``evergrow compare``: compare learners on your own features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.options import JOBS, ON_ERROR, QUIET, command, verbosity
from evergrow.cli.output import report
from evergrow.foundation.formatting import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from evergrow.research.comparison.comparison import Comparison
    from evergrow.research.comparison.result import Standing
    from evergrow.research.datasets import Dataset


@command(
    "evergrow compare features.npz",
    "evergrow compare features.npz --quick",
    "evergrow compare features.npz --only lda --only ncm-forest --repetitions 5",
    "evergrow compare digits --skip river --out digits_comparison",
    "evergrow compare X.npy --labels y.npy",
    "evergrow compare mnist --path mnist_files --quick",
    "evergrow compare photos/ --only peers --only least-squares",
    "evergrow compare shards/ --protocol blurry",
)
@click.argument("features", type=click.Path())
@click.option("--labels", type=click.Path(), help="The .npy file of labels of an .npy file.")
@click.option(
    "--path", type=click.Path(), help="Folder with the files of a named data set such as mnist."
)
@click.option(
    "--out",
    type=click.Path(),
    default="comparison",
    help="Folder for the page, the tables and the checkpoints of an interrupted comparison.",
)
@click.option("--quick", is_flag=True, help="Use only some classes and examples.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Use only this learner; may be repeated."
)
@click.option("--skip", multiple=True, metavar="NAME", help="Skip this learner; may be repeated.")
@click.option(
    "--list",
    "listing",
    is_flag=True,
    is_eager=True,
    help="List the learners and exit.",
    expose_value=False,
    callback=lambda ctx, _, value: _list(ctx) if value else None,
)
@click.option(
    "--protocol",
    type=click.Choice(["batches", "single", "blurry"]),
    default="batches",
    help="How classes come: some at a time, one at a time, or old and new mixed in unequal sizes.",
)
@click.option(
    "--initial", type=click.IntRange(1), help="Classes to start with; by default a tenth."
)
@click.option(
    "--chunk", type=click.IntRange(1), help="Classes per update; by default for ten updates."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=0,
    help="Random seed of the class order and of the learners.",
)
@click.option(
    "--repetitions", type=click.IntRange(1, 1000), default=1, help="Number of class orders."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    help="Seconds per learner and order.",
)
@click.option("--fresh", is_flag=True, help="Ignore the results of earlier runs.")
@ON_ERROR
@JOBS
@QUIET
def compare(
    features: str,
    labels: str | None,
    path: str | None,
    out: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    on_error: str,
    jobs: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare all learners on FEATURES and recommend one.

    FEATURES is an .npz file with X_train, y_train, X_test and y_test, or with X and y; an .npy
    file with its --labels; a folder of shards; a folder of photographs with a folder per class,
    which are embedded; or the name of a data set, such as digits, which is built in, or mnist, with
    its files in --path. The learners of this package, of scikit-learn and of river and the analytic
    heads of the field are trained on the same stream, in which classes arrive a few at a time.
    Writes a table, and
    comparison.html, comparison.csv and comparison.json to the folder of --out. Finished learners
    are checkpointed there: after an interruption, run the same command again to resume.
    """
    from evergrow.research.comparison.comparison import compare as compare_learners
    from evergrow.research.comparison.learners import choose
    from evergrow.research.experiments.runner import check_folder

    learners = choose(only, skip)
    verbose = verbosity(quiet)
    check_folder(out)
    data = _load(features, labels, path, jobs=jobs, on_error=on_error, verbose=verbose)
    found = compare_learners(data, out, learners=learners, n_jobs=jobs, verbose=verbose, **options)
    _write(found)
    report(f"{click.format_filename(out)}/comparison.html", quiet=quiet)
    if not found.measured_anything:
        raise click.ClickException("no learner could be measured; see the notes above")


def _load(
    features: str, labels: str | None, path: str | None, *, jobs: int, on_error: str, verbose: int
) -> Dataset:
    """Load features; photographs are embedded, which takes no time if they were before."""
    from evergrow.research.datasets import load_dataset
    from evergrow.research.datasets.embedding import embed_images, is_image_dataset
    from evergrow.workspace.store.layout import is_workspace

    if path is None and is_workspace(Path(features)):
        raise click.ClickException(
            f"{click.format_filename(features)!r} is a workspace: compare takes features, shards "
            "or a folder of photographs"
        )
    if labels is not None and Path(features).suffix.lower() != ".npy":
        raise click.BadParameter("labels go with an .npy file of features", param_hint="'--labels'")
    data = load_dataset(features, path=path, **({} if labels is None else {"labels": labels}))
    if not is_image_dataset(data):
        return data
    from evergrow.vision.embedding import Embedder

    return embed_images(data, embedder=Embedder(n_jobs=jobs, verbose=verbose), on_error=on_error)


def _list(ctx: click.Context) -> None:
    from evergrow.research.comparison.learners import LEARNERS

    for learner in LEARNERS:
        click.echo(f"{learner.name:22} {learner.family:24} {learner.title}")
    ctx.exit()


def _write(found: Comparison) -> None:
    from rich.console import Console

    # A file or a pipe has no width; lines must not be wrapped there.
    console = Console(highlight=False, markup=False)
    console = console if console.is_terminal else Console(highlight=False, markup=False, width=140)
    facts = found.facts
    title = f"{found.name}: {facts.n_train} samples, {facts.n_classes} classes"
    if found.standings:
        console.print(_table(printable(title), found.standings))
    if found.on_sample and found.sample_facts is not None:
        facts = found.sample_facts
        console.print(
            _table(
                f"a subsample: {facts.n_train} samples, {facts.n_classes} classes", found.on_sample
            )
        )
    _write_notes([*found.standings, *found.on_sample])
    for advice in found.advice:
        choice = advice.choice
        name = "" if choice is None else f"{choice.learner.title}, {choice.learner.factory.code}"
        click.echo(f"{advice.need}: {name}" if name else f"{advice.need}:")
        click.echo(f"  {advice.reason}")
    for remark in found.remarks:
        click.echo(f"Note: {remark}")


def _table(title: str, standings: Sequence[Standing]) -> Table:
    from rich.table import Table

    from evergrow.research.comparison.table import SHOWN_COLUMNS

    table = Table(title=title, title_justify="left")
    table.add_column("learner")
    for column in SHOWN_COLUMNS:
        table.add_column(column.heading, justify="left" if column.name == "way" else "right")
    for standing in standings:
        table.add_row(standing.learner.title, *(column.text(standing) for column in SHOWN_COLUMNS))
    return table


def _write_notes(standings: Sequence[Standing]) -> None:
    from evergrow.research.comparison.table import notes_on

    said = dict.fromkeys((each.learner.title, notes_on(each)) for each in standings)
    for title, note in said:
        if note:
            click.echo(printable(f"{title}: {note}"))
    click.echo("")
