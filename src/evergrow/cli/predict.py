"""``evergrow predict``: classify images with a model file or a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import load_classifier, predict_images
from evergrow.cli.options import JOBS, QUIET, command, verbosity
from evergrow.cli.output import report_errors, write_csv_row, write_fields, write_json

if TYPE_CHECKING:
    from evergrow.vision.classifier import Answers
    from evergrow.workspace.records import Answer as WorkspaceAnswer


@dataclass(frozen=True)
class _Answer:
    """The prediction for one image."""

    image: str
    label: Any
    # The best classes, each with its probability.
    best: list[tuple[Any, float]]
    # More details, from a workspace only.
    told: WorkspaceAnswer | None


def _write_text(answer: _Answer) -> None:
    fine = answer.told.fine if answer.told is not None else None
    write_fields([answer.image, *_flat(answer), *([] if fine is None else [fine])])


def _write_csv(answer: _Answer) -> None:
    fine = [] if answer.told is None else [answer.told.fine or ""]
    write_csv_row([answer.image, *_flat(answer), *fine])


def _write_object(answer: _Answer) -> None:
    top = [{"label": name, "probability": share} for name, share in answer.best]
    written = {"image": answer.image, "label": answer.label, "top": top}
    told = answer.told
    if told is not None:
        fine_top = [{"label": name, "probability": share} for name, share in told.fine_top]
        # A class may be named "unknown"; "known" tells the two apart.
        written |= {"label": told.label if told.known else None, "known": told.known}
        written |= {"novelty": told.novelty, "fine": told.fine, "fine_top": fine_top}
    write_json(written)


def _flat(answer: _Answer) -> list[Any]:
    name, share = answer.best[0]
    # A rejecting model may answer none of its classes, without a probability.
    is_best = name == answer.label if answer.told is None else answer.told.known
    first = [answer.label, f"{share:.4f}" if is_best else ""]
    return first + [field for name, share in answer.best[1:] for field in (name, f"{share:.4f}")]


_WRITERS: dict[str, Callable[[_Answer], None]] = {
    "csv": _write_csv,
    "json": _write_object,
    "text": _write_text,
}


@command(
    "evergrow predict model.evergrow cat.jpg holiday/",
    "evergrow predict things cat.jpg holiday/",
    'evergrow predict model.evergrow "holiday/**/*.jpg" --top 3',
    "evergrow predict model.evergrow holiday/ --json | jq .label",
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@click.argument("images", metavar="IMAGES...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "form", flag_value="json", help="One JSON object per line.")
@click.option("--csv", "form", flag_value="csv", help="CSV with a header.")
@click.option(
    "--top", type=click.IntRange(1), default=1, help="Number of classes to list per image."
)
@JOBS
@QUIET
def predict(
    model: str, images: tuple[str, ...], form: str | None, top: int, jobs: int, quiet: bool
) -> None:
    """Predict the class of IMAGES: files, folders or patterns.

    MODEL is a model file, DIR a workspace. Writes one tab-separated line per image: its name, the
    class and the probability. A workspace answers "unknown", without a probability, if no class
    fits, and adds the fine class at the end of the line if it is sure of one. Images that cannot
    be read are listed on standard error; the others are classified, and the exit code is 1.
    """
    classifier = load_classifier(model, verbose=verbosity(quiet), jobs=jobs)
    paths, unreadable = _find_images(images)
    k = min(top, len(classifier.classes_))
    answers = predict_images(classifier, paths, k=k)
    write = _WRITERS[form or "text"]
    if form == "csv":
        more = [f"{name}_{place}" for place in range(2, k + 1) for name in ("label", "probability")]
        fine = ["fine"] if _told(answers) is not None else []
        write_csv_row(["image", "label", "probability", *more, *fine])
    for answer in _each(paths, answers):
        write(answer)
    report_errors([*unreadable, *answers.problems])


def _each(paths: list[str], answers: Answers) -> Iterator[_Answer]:
    names, shares = answers.top_labels.tolist(), answers.top_probabilities.tolist()
    told = _told(answers)
    for place, label in enumerate(answers.labels.tolist()):
        best = list(zip(names[place], shares[place], strict=True))
        image = paths[answers.kept[place]]
        yield _Answer(image, label, best, None if told is None else told[place])


def _told(answers: Answers) -> tuple[WorkspaceAnswer, ...] | None:
    from evergrow.cli.workspace.predictor import WorkspaceAnswers

    return answers.told if isinstance(answers, WorkspaceAnswers) else None


def _find_images(images: tuple[str, ...]) -> tuple[list[str], tuple[Any, ...]]:
    """Return the images, and the files among them that cannot be read."""
    from evergrow.vision.images.folders import search_images
    from evergrow.vision.images.results import warn_about

    found = search_images(list(images))
    warn_about(found.ignored)
    return [os.fspath(path) for path in found.paths], found.unreadable
