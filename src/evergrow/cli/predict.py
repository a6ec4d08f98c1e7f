"""Asking a model about images."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from evergrow.cli.models import answers_of, load_classifier
from evergrow.cli.options import JOBS, MODEL, QUIET, examples, verbosity
from evergrow.cli.output import write_csv_row, write_fields, write_json

__all__ = ["predict"]

# The best classes of one image, each with its probability.
Best = list[tuple[Any, float]]


def _write_text(image: str, label: Any, best: Best) -> None:
    write_fields([image, *_flat(label, best)])


def _write_csv(image: str, label: Any, best: Best) -> None:
    write_csv_row([image, *_flat(label, best)])


def _write_object(image: str, label: Any, best: Best) -> None:
    top = [{"label": name, "probability": share} for name, share in best]
    write_json({"image": image, "label": label, "top": top})


def _flat(label: Any, best: Best) -> list[Any]:
    name, share = best[0]
    # The answer of a model that rejects may be none of its classes, and has no probability.
    first = [label, f"{share:.4f}" if name == label else ""]
    return first + [field for name, share in best[1:] for field in (name, f"{share:.4f}")]


_WRITERS: dict[str, Callable[[str, Any, Best], None]] = {
    "csv": _write_csv,
    "json": _write_object,
    "text": _write_text,
}


@click.command(
    epilog=examples(
        "evergrow predict model.evergrow cat.jpg holiday/",
        'evergrow predict model.evergrow "holiday/**/*.jpg" --top 3',
        "evergrow predict model.evergrow holiday/ --json | jq .label",
    )
)
@MODEL
@click.argument("images", metavar="IMAGES...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "form", flag_value="json", help="One JSON object per line.")
@click.option("--csv", "form", flag_value="csv", help="CSV with a header.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many classes to name per image.",
)
@JOBS
@QUIET
def predict(
    model: str, images: tuple[str, ...], form: str | None, top: int, jobs: int, quiet: bool
) -> None:
    """Tell the class of IMAGES: files, folders or patterns.

    Writes one line per image: its name, the class and the probability, with tabs between. Images
    that cannot be read are named on standard error; the others are answered, and the exit code
    is 1.
    """
    classifier = load_classifier(model, verbose=verbosity(quiet), jobs=jobs)
    paths, unreadable = _found(images)
    k = min(top, len(classifier.classes_))
    answers = answers_of(classifier, paths, k=k)
    write = _WRITERS[form or "text"]
    if form == "csv":
        more = [f"{name}_{place}" for place in range(2, k + 1) for name in ("label", "probability")]
        write_csv_row(["image", "label", "probability", *more])
    names, shares = answers.top_labels.tolist(), answers.top_probabilities.tolist()
    for place, label in enumerate(answers.labels.tolist()):
        best = list(zip(names[place], shares[place], strict=True))
        write(paths[answers.kept[place]], label, best)
    problems = (*unreadable, *answers.problems)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


def _found(images: tuple[str, ...]) -> tuple[list[str], tuple[Any, ...]]:
    """Images, and what was found where they lie but cannot be read."""
    from evergrow.features.finding import found_images
    from evergrow.features.many import warn_of

    found = found_images(list(images))
    warn_of(found.ignored)
    return [os.fspath(path) for path in found.paths], found.unreadable
