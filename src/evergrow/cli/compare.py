"""``evergrow compare``: compare learners on your own photographs or features."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.options import JOBS, ON_ERROR, QUIET, command, verbosity
from evergrow.cli.output import FACTS, is_for_people, report, write_fields, write_table, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evergrow.compare import Dataset
    from evergrow.compare.comparison import Comparison
    from evergrow.compare.measurement import Standing
    from evergrow.compare.recommendation import Advice
    from evergrow.compare.setup import Facts

# The names of learners in 'evergrow fit --learner'.
_LEARNERS_OF_FIT = {
    "least-squares": "rls",
    "least-squares-random": "rls-random",
    "class-means": "means",
    "lda": "lda",
    "ncm-forest": "forest",
}
# A terminal has room for these.
_NARROW_COLUMNS = ("class_mean", "newest", "seconds_per_update", "bytes")


@command(
    "evergrow compare photos/",
    "evergrow compare features.npz --quick",
    "evergrow compare features.npz --only lda --only ncm-forest --repetitions 5",
    "evergrow compare digits --skip river --out digits_comparison",
    "evergrow compare X.npy --labels y.npy",
    "evergrow compare shards/ --protocol blurry --only forests",
)
@click.argument("features", metavar="DATA", type=click.Path())
@click.option("--labels", type=click.Path(), help="The .npy file of labels of an .npy file.")
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
    help="How classes arrive: several at a time, one at a time, or old and new ones mixed.",
)
@click.option(
    "--initial", type=click.IntRange(1), help="Classes in the first training; by default a tenth."
)
@click.option("--chunk", type=click.IntRange(1), help="Classes per update; by default ten updates.")
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
    help="Maximum seconds per learner and class order.",
)
@click.option("--fresh", is_flag=True, help="Ignore the results of earlier runs.")
@ON_ERROR
@JOBS
@QUIET
def compare(
    features: str,
    labels: str | None,
    out: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    on_error: str,
    jobs: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare all learners on DATA and recommend one.

    DATA is one of these: a folder of photographs with one folder per class; a folder of shards,
    written by 'evergrow shard'; an .npz file with X_train, y_train, X_test and y_test, or with X
    and y; an .npy file with --labels; or the word digits, for an example without your own data.

    Learners of this package, of scikit-learn and of river, and those of evergrow-papers if it is
    installed, are trained on the same stream, in which classes arrive a few at a time. The output
    has the accuracy, the time of an update and the size of each learner. The folder of --out gets
    comparison.html with plots and all numbers, comparison.csv and comparison.json. Finished
    learners are checkpointed there: after an interruption, run the same command again to resume.
    """
    from evergrow.compare.comparison import check_folder
    from evergrow.compare.comparison import compare as compare_learners
    from evergrow.compare.learners import choose

    learners = choose(only, skip)
    verbose = verbosity(quiet)
    check_folder(out)
    data = _load(features, labels, jobs=jobs, on_error=on_error, verbose=verbose)
    found = compare_learners(data, out, learners=learners, n_jobs=jobs, verbose=verbose, **options)
    _write(found)
    report(f"All numbers and plots: {click.format_filename(out)}/comparison.html", quiet=quiet)
    if not found.measured_anything:
        raise click.ClickException("no learner could be measured; see the notes above")


def _load(features: str, labels: str | None, *, jobs: int, on_error: str, verbose: int) -> Dataset:
    """Load features; photographs are embedded, which takes no time if they were before."""
    from evergrow.compare.data import embed_images, is_image_dataset, load_dataset
    from evergrow.workspace.store.layout import is_workspace

    if is_workspace(Path(features)):
        raise click.ClickException(
            f"{click.format_filename(features)!r} is a workspace: compare takes features, shards "
            "or a folder of photographs"
        )
    if labels is not None and Path(features).suffix.lower() != ".npy":
        raise click.BadParameter("labels go with an .npy file of features", param_hint="'--labels'")
    # A folder may be called like the built-in data set.
    source = Path(features) if os.path.isdir(features) else features
    data = load_dataset(source, labels=labels)
    if not is_image_dataset(data):
        return data
    from evergrow.vision.embedding import Embedder

    return embed_images(data, Embedder(n_jobs=jobs, verbose=verbose), on_error=on_error)


def _list(ctx: click.Context) -> None:
    from evergrow.compare.learners import known_learners

    columns = ("name", "family", "learner")
    rows = [(learner.name, learner.family, learner.title) for learner in known_learners()]
    if is_for_people(None):
        write_table(dict.fromkeys(columns, "left"), rows)
    else:
        for row in rows:
            write_fields(row)
    ctx.exit()


def _write(found: Comparison) -> None:
    if found.standings:
        _write_standings(found.name, found.facts, found.standings)
    if found.on_sample and found.sample_facts is not None:
        _write_standings("A subsample", found.sample_facts, found.on_sample)
    _write_notes([*found.standings, *found.on_sample])
    _write_advice(found.advice)
    for remark in found.remarks:
        write_text(f"Note: {remark}")


def _write_advice(advice: Sequence[Advice]) -> None:
    from evergrow.compare.recommendation import group_by_choice

    for choice, group in group_by_choice(advice):
        if choice is not None:
            write_text(f"Recommended: {choice.learner.title}, {choice.learner.code}")
            if choice.learner.name in _LEARNERS_OF_FIT:
                name = _LEARNERS_OF_FIT[choice.learner.name]
                write_text(f"  For photographs: evergrow fit FOLDER -o FILE --learner {name}")
        if is_for_people(None):
            write_table(FACTS, [(f"  {each.need}", each.reason) for each in group])
            continue
        for each in group:
            write_text(f"  {each.need}: {each.reason}")


def _write_standings(title: str, facts: Facts, standings: Sequence[Standing]) -> None:
    """Write a table: on a terminal the most important columns, in a pipe all of them."""
    from evergrow.compare.measurement import SHOWN_COLUMNS

    write_text(f"{title}: {facts.n_train} samples, {facts.n_classes} classes")
    for_people = is_for_people(None)
    columns = [each for each in SHOWN_COLUMNS if not for_people or each.name in _NARROW_COLUMNS]
    rows = [
        (_title(each, marked=for_people), *(column.text(each) for column in columns))
        for each in standings
    ]
    headings = [column.heading for column in columns]
    if not for_people:
        for fields in (("learner", *headings), *rows):
            write_fields(fields)
        return
    write_table({"learner": "left", **dict.fromkeys(headings, "right")}, rows)
    if any(each.learner.way != "grows" for each in standings):
        write_text("* does not take new classes: is trained again, or knew them in advance")
    write_text()


def _title(standing: Standing, *, marked: bool) -> str:
    title = standing.learner.title
    return f"{title} *" if marked and standing.learner.way != "grows" else title


def _write_notes(standings: Sequence[Standing]) -> None:
    """Write which learners failed or were stopped; the page has all notes."""
    said = dict.fromkeys(
        (each.learner.title, each.notes) for each in standings if not each.finished
    )
    for title, note in said:
        write_text(f"{title}: {note}")
    if said:
        write_text()
