"""``evergrow label-issues`` and ``evergrow next-to-label``: clean data, and what to label next."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import find_images
from evergrow.cli.options import (
    DEFAULT_READING,
    JOBS,
    NETWORK,
    QUIET,
    command,
    make_embedder,
    output_forms,
    verbosity,
)
from evergrow.cli.output import (
    Align,
    is_for_people,
    report,
    report_errors,
    write_csv_row,
    write_fields,
    write_json,
    write_table,
)
from evergrow.foundation.formatting import format_count, format_percent

if TYPE_CHECKING:
    from evergrow.estimators.curation import LabelIssues

_FORMS = output_forms("json", "csv", "tsv", each=" per line")
# Columns of text in the tables; the others are numbers.
_ALIGN: dict[str, Align] = dict.fromkeys(("issue", "image", "label", "suggestion"), "left")


@dataclass(frozen=True)
class _Examples:
    """Features, names for the output, labels if there are any, and images that were skipped."""

    features: Any
    names: list[Any]
    labels: Any
    problems: tuple[Any, ...]


@command(
    "evergrow label-issues photos/",
    "evergrow label-issues photos/ --certainty 0.9 --csv > issues.csv",
    "evergrow label-issues features.npz --json",
    "evergrow label-issues X.npy --labels y.npy",
)
@click.argument("source", type=click.Path())
@click.option("--labels", type=click.Path(), help="The .npy file of labels of an .npy file.")
@click.option(
    "--certainty",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="Probability from which a label is listed as wrong.",
)
@click.option(
    "--similarity",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.92,
    help="Cosine from which two images are near-duplicates.",
)
@click.option(
    "--harmful", type=click.IntRange(0), default=20, help="Maximum number of harmful images."
)
@NETWORK
@_FORMS
@JOBS
@QUIET
def label_issues(
    source: str,
    labels: str | None,
    certainty: float,
    similarity: float,
    harmful: int,
    network: str,
    form: str | None,
    jobs: int,
    quiet: bool,
) -> None:
    """Find wrong labels, near-duplicates and harmful images in SOURCE.

    SOURCE is a folder with one folder of images per class, or a file of features and labels: .npz,
    .npy or .parquet.

    The output is a table with the issue ("label", "duplicate" or "harm"), the image or the row, and
    its label. A wrong label also has a suggestion and the probability that the label is wrong.
    Near-duplicates have the number of their group; groups with different labels come first. A
    harmful image has the percentage by which the error of all other images falls without it. Images
    that cannot be read are listed on standard error, and the exit code is 1.
    """
    from evergrow.estimators.curation import label_issues as find_issues

    found = _read(source, labels, labelled=True, network=network, jobs=jobs, quiet=quiet)
    issues = find_issues(
        found.features,
        found.labels,
        certainty=certainty,
        similarity=similarity,
        n_harmful=harmful,
    )
    _write(_rows(issues, found), form)
    _summarise(issues, len(found.names), quiet)
    report_errors(found.problems)


@command(
    "evergrow next-to-label new_photos/",
    "evergrow next-to-label new_photos/ --labelled photos/ -n 50",
    "evergrow next-to-label unlabelled.npz --labelled labelled.npz --csv",
)
@click.argument("unlabelled", type=click.Path())
@click.option(
    "--labelled",
    type=click.Path(),
    help="Folder with one folder of images per class, or a file of features and labels.",
)
@click.option("-n", "--number", type=click.IntRange(1), default=100, help="Number of images.")
@NETWORK
@_FORMS
@JOBS
@QUIET
def next_to_label(
    unlabelled: str,
    labelled: str | None,
    number: int,
    network: str,
    form: str | None,
    jobs: int,
    quiet: bool,
) -> None:
    """Choose which images of UNLABELLED to label next, the most useful first.

    UNLABELLED is a folder of images or a file of features. Images that are similar to many
    uncertain images come first. Without --labelled, typical images come first. The output has the
    rank and the image or the row. Images that cannot be read are listed on standard error, and the
    exit code is 1.
    """
    from evergrow.estimators.curation import next_to_label as choose

    options: dict[str, Any] = {"network": network, "jobs": jobs, "quiet": quiet}
    found = _read(unlabelled, None, labelled=False, **options)
    known: tuple[Any, ...] = ()
    problems = found.problems
    if labelled is not None:
        taught = _read(labelled, None, labelled=True, **options)
        known, problems = (taught.features, taught.labels), (*problems, *taught.problems)
    rows = choose(found.features, *known, n=number)
    ranked = enumerate(rows.tolist(), start=1)
    _write(({"rank": rank, "image": found.names[row]} for rank, row in ranked), form)
    report_errors(problems)


def _read(
    source: str, labels: str | None, *, labelled: bool, network: str, jobs: int, quiet: bool
) -> _Examples:
    from evergrow.vision.images.labelled.finder import source_kind

    if source_kind(source) is not None:
        if labels is not None:
            raise click.UsageError("--labels is for .npy files; a folder names the classes itself")
        return _read_images(source, labelled=labelled, network=network, jobs=jobs, quiet=quiet)
    from evergrow.storage.shards.importers import read_table

    rows, given = read_table(source, labels=labels)
    if labelled and given is None:
        raise click.ClickException(f"{click.format_filename(source)!r} has no labels")
    return _Examples(rows, [*range(len(rows))], given, ())


def _read_images(folder: str, *, labelled: bool, network: str, jobs: int, quiet: bool) -> _Examples:
    from evergrow import BadImageWarning
    from evergrow.vision.images.folders import search_images

    sources: Sequence[Any]
    if labelled:
        found = find_images(folder, DEFAULT_READING, split="train", quiet=quiet)
        sources, labels, problems = found.sources, found.labels, found.problems
    else:
        listed = search_images(folder)
        sources, labels, problems = listed.paths, None, listed.unreadable
    with warnings.catch_warnings():
        # The problems are listed at the end; the warning names only the first few.
        warnings.simplefilter("ignore", BadImageWarning)
        embedder = make_embedder(network, n_jobs=jobs, verbose=verbosity(quiet))
        seen = embedder.extract(sources, on_error="skip")
    if not len(seen.kept):
        raise click.ClickException(f"no image can be read, the first: {seen.problems[0]}")
    names = [_name(sources[i]) for i in seen.kept.tolist()]
    kept = None if labels is None else labels[seen.kept]
    return _Examples(seen.features, names, kept, (*problems, *seen.problems))


def _name(source: Any) -> str:
    return os.fspath(source) if isinstance(source, os.PathLike) else str(source.name)


def _rows(issues: LabelIssues, examples: _Examples) -> Iterable[dict[str, Any]]:
    """Yield the lines of the table."""
    names = examples.names
    empty = {"suggestion": None, "certainty": None, "group": None, "harm": None}
    for one in issues.wrong:
        first = {"issue": "label", "image": names[one.index], "label": one.label}
        certainty = round(one.certainty, 4)
        yield first | empty | {"suggestion": one.suggestion, "certainty": certainty}
    for number, group in enumerate(issues.duplicates, start=1):
        for i, label in zip(group.indices, group.labels, strict=True):
            first = {"issue": "duplicate", "image": names[i], "label": label}
            yield first | empty | {"group": number}
    for harmful in issues.harmful:
        first = {"issue": "harm", "image": names[harmful.index], "label": harmful.label}
        yield first | empty | {"harm": round(harmful.harm, 4)}


def _write(lines: Iterable[dict[str, Any]], form: str | None) -> None:
    listed = [*lines]
    if form == "json":
        for line in listed:
            write_json({name: value for name, value in line.items() if value is not None})
    elif form == "csv":
        if listed:
            write_csv_row(listed[0])
        for line in listed:
            write_csv_row("" if value is None else value for value in line.values())
    elif listed and is_for_people(form):
        used = [name for name in listed[0] if any(line[name] is not None for line in listed)]
        columns = {name: _ALIGN.get(name, "right") for name in used}
        write_table(columns, [[_shown(name, line[name]) for name in used] for line in listed])
    elif listed:
        texts = [[value for value in line.values() if value is not None] for line in listed]
        width = max(map(len, texts))
        for text in texts:
            write_fields([*text, *[""] * (width - len(text))])


def _shown(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "harm":
        # Percent of the error already.
        return f"{value:.1f}%"
    return format_percent(value) if name == "certainty" else value


def _summarise(issues: LabelIssues, n_images: int, quiet: bool) -> None:
    n_contradicting = sum(group.contradicts for group in issues.duplicates)
    report(
        f"{format_count(n_images, 'example')}: "
        f"{format_count(len(issues.wrong), 'label')} probably wrong, "
        f"{format_count(len(issues.duplicates), 'group')} of near-duplicates, "
        f"{n_contradicting} with different labels.",
        quiet=quiet,
    )
