"""``evergrow evaluate``: measure the accuracy of a model on labelled images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evergrow.cli.models import check_output, load_classifier, predict_images
from evergrow.cli.options import FOLDER, FORCE, JOBS, MODEL, QUIET, command, verbosity
from evergrow.cli.output import report_errors, write_fields, write_json


@dataclass(frozen=True)
class _Result:
    """The confusion matrix, and the images that could not be evaluated."""

    classes: list[str]
    confusion: Any
    # Images per class, and how many of them the model rejected.
    images: Any
    rejected: Any
    unknown: dict[str, int]
    problems: tuple[Any, ...]

    @property
    def n_right(self) -> int:
        return int(self.confusion.trace())

    @property
    def accuracy(self) -> float:
        return self.n_right / int(self.images.sum())

    def per_class(self) -> list[dict[str, Any]]:
        """Results of each class with images."""
        right = self.confusion.diagonal()
        return [
            {
                "class": name,
                "images": int(n),
                "right": int(r),
                "rejected": int(none),
                "accuracy": int(r) / int(n),
            }
            for name, n, r, none in zip(
                self.classes, self.images, right, self.rejected, strict=True
            )
            if n
        ]


@command(
    "evergrow evaluate model.evergrow test_photos/",
    "evergrow evaluate model.evergrow test_photos/ --confusion confusion.svg",
)
@MODEL
@FOLDER
@click.option("--confusion", type=click.Path(), help="Plot the confusion matrix: .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@JOBS
@FORCE
@QUIET
def evaluate(
    model: str,
    folder: str,
    confusion: str | None,
    as_json: bool,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Measure the accuracy of MODEL on FOLDER.

    FOLDER contains one folder of images per class. Writes tab-separated lines: the accuracy, the
    number of correct answers, the number of images and the number of those answered "unknown"; then
    for each class the number of images, the number of correct answers, their share and the number
    answered "unknown". Class folders that the model does not know and
    images that cannot be read are listed on standard error and ignored; the exit code is then 1.
    """
    if confusion is not None:
        if Path(confusion).suffix.lower() not in (".svg", ".png"):
            raise click.BadParameter("must end in .svg or .png", param_hint="'--confusion'")
        check_output(confusion, force=force)
    result = _evaluate(load_classifier(model, verbose=verbosity(quiet), jobs=jobs), folder)
    _write_json(result) if as_json else _write_text(result)
    if confusion is not None:
        from evergrow.vision.classifier import draw_confusion

        draw_confusion(result.confusion, result.classes, confusion, rejected=result.rejected)
    unknown = (
        f"the model does not know {name!r}, {count} images ignored"
        for name, count in result.unknown.items()
    )
    report_errors([*unknown, *result.problems])


def _evaluate(classifier: Any, folder: str) -> _Result:
    import numpy as np

    from evergrow.foundation.labels import ClassList
    from evergrow.vision.images import find_labelled

    found = find_labelled(folder)
    # Folder names are strings; classes may be numbers if the model was trained in Python.
    column_of = ClassList(classifier.classes_).column_by_text
    known = [i for i, label in enumerate(found.labels.tolist()) if label in column_of]
    names, counts = np.unique(np.delete(found.labels, known), return_counts=True)
    unknown = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if not known:
        raise click.ClickException(
            f"the model knows none of the classes {sorted(unknown)}; it knows {list(column_of)}"
        )
    answers = predict_images(classifier, [found.paths[i] for i in known])
    if not len(answers.kept):
        raise click.ClickException(f"no image can be read, the first: {answers.problems[0]}")
    truth = np.array([column_of[label] for label in found.labels[known]])[answers.kept]
    answer = np.array([column_of.get(str(label), -1) for label in answers.labels.tolist()])
    confusion = np.zeros((len(column_of), len(column_of)), dtype=np.int64)
    np.add.at(confusion, (truth[answer >= 0], answer[answer >= 0]), 1)
    images = np.bincount(truth, minlength=len(column_of))
    problems = (*found.problems, *answers.problems)
    rejected = images - confusion.sum(axis=1)
    return _Result(list(column_of), confusion, images, rejected, unknown, problems)


def _write_text(result: _Result) -> None:
    n_images, n_rejected = int(result.images.sum()), int(result.rejected.sum())
    write_fields(["accuracy", f"{result.accuracy:.4f}", result.n_right, n_images, n_rejected])
    for entry in result.per_class():
        counts = [entry["images"], entry["right"], f"{entry['accuracy']:.4f}", entry["rejected"]]
        write_fields(["class", entry["class"], *counts])


def _write_json(result: _Result) -> None:
    write_json(
        {
            "accuracy": result.accuracy,
            "n_images": int(result.images.sum()),
            "n_right": result.n_right,
            "n_rejected": int(result.rejected.sum()),
            "classes": result.per_class(),
            "confusion": {"classes": result.classes, "counts": result.confusion.tolist()},
            "unknown_classes": result.unknown,
            "problems": [{"image": p.source, "reason": p.reason} for p in result.problems],
        }
    )
