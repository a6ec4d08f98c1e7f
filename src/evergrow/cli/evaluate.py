"""``evergrow evaluate``: measure the accuracy of a model on labelled images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import check_output, find_images, load_classifier, predict_images
from evergrow.cli.options import (
    FORCE,
    JOBS,
    QUIET,
    SOURCE,
    command,
    output_forms,
    reads_labelled,
    verbosity,
)
from evergrow.cli.output import (
    is_for_people,
    report,
    report_errors,
    write_fields,
    write_json,
    write_table,
    write_text,
)
from evergrow.foundation.formatting import (
    format_count,
    format_percent,
    list_names,
    natural_order,
    suggest,
)

if TYPE_CHECKING:
    from evergrow.vision.images import LabelledImages

_TOP = 5
# Mix-ups that are listed for people; all of them are in the confusion matrix.
_MOST_MIX_UPS = 5
# Answers that are named for a class that the model does not know.
_MOST_ANSWERS = 3
# Classes without a known name for which similar names are listed.
_MOST_HINTS = 3
# How many of them are compared with the known names.
_MOST_COMPARED = 20


@dataclass(frozen=True)
class _Result:
    """The confusion matrix, and the images that could not be evaluated."""

    classes: list[str]
    confusion: Any
    # Images per class, how many of them the model rejected, and how many have their class among
    # the best five.
    images: Any
    rejected: Any
    in_top: Any
    # Images of classes that the model does not know, and its answers for those that can be read;
    # None is "unknown".
    unknown: dict[str, int]
    answered: Mapping[str, Counter[str | None]]
    # Whether the model may answer "unknown".
    rejects: bool
    # How many of the images the model has learnt.
    n_learnt: int
    # What was left out, and the part of it that is an error.
    problems: tuple[Any, ...]
    errors: tuple[Any, ...]

    @property
    def noticed(self) -> dict[str, int] | None:
        """How many images of unknown classes are answered "unknown"; None if that never happens."""
        if not self.rejects:
            return None
        return {name: self.answered[name][None] for name in self.unknown}

    @property
    def n_images(self) -> int:
        return int(self.images.sum())

    @property
    def n_right(self) -> int:
        return int(self.confusion.trace())

    @property
    def n_rejected(self) -> int:
        return int(self.rejected.sum())

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_images

    @property
    def mean_class_accuracy(self) -> float:
        tested = self.images > 0
        return float((self.confusion.diagonal()[tested] / self.images[tested]).mean())

    @property
    def top5(self) -> float:
        return int(self.in_top.sum()) / self.n_images

    def per_class(self) -> list[dict[str, Any]]:
        """Results of each class with images, in the natural order of their names."""
        answered = self.confusion.sum(axis=0)
        return [
            {
                "class": self.classes[k],
                "images": int(self.images[k]),
                "right": int(self.confusion[k, k]),
                "wrong": int(self.images[k] - self.confusion[k, k] - self.rejected[k]),
                "rejected": int(self.rejected[k]),
                "accuracy": float(self.confusion[k, k] / self.images[k]),
                "recall": float(self.confusion[k, k] / self.images[k]),
                "precision": float(self.confusion[k, k] / answered[k]) if answered[k] else None,
            }
            for k in sorted(range(len(self.classes)), key=lambda k: natural_order(self.classes[k]))
            if self.images[k]
        ]

    def mix_ups(self) -> list[tuple[str, str, int, int]]:
        """Pairs of classes of which one is taken for the other, and how often, most often first."""
        counts = self.confusion.copy()
        counts[range(len(counts)), range(len(counts))] = 0
        pairs = sorted(zip(*counts.nonzero(), strict=True), key=lambda pair: -counts[pair])
        return [
            (self.classes[i], self.classes[j], int(counts[i, j]), int(self.images[i]))
            for i, j in pairs
        ]


@command(
    "evergrow evaluate model.evergrow test_photos/",
    "evergrow evaluate things test_photos/",
    "evergrow evaluate model.evergrow test_photos/ --confusion confusion.svg",
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@SOURCE
@click.option(
    "--confusion",
    type=click.Path(),
    help="Write a picture of the confusion matrix to this file: .svg or .png.",
)
@output_forms("json", "tsv")
@reads_labelled
@JOBS
@FORCE
@QUIET
def evaluate(
    model: str,
    source: str,
    confusion: str | None,
    form: str | None,
    reading: dict[str, Any],
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Measure the accuracy of MODEL, or of the workspace DIR, on SOURCE.

    SOURCE is a folder with one folder of images per class, a zip file of such folders, a CSV or TSV
    table of paths and labels, COCO annotations (.json) or WebDataset tar files. Of
    splits, test is used, or val if test is missing; --split chooses another.

    The output has the number of images that are right, wrong and answered "unknown". The mean class
    accuracy weights all classes equally. The top-5 accuracy counts an image as right if its class
    is among the five best. The recall of a class is the share of its images that are recognised.
    Its precision is the share of images with this answer that belong to it.

    In a pipe, or with --tsv, the output is tab-separated lines. The first has the accuracy and the
    numbers of correct answers, of images and of "unknown" answers. Each class has a line with the
    numbers of images and of correct answers, their share, and the number of "unknown" answers.

    Images of classes that the model does not know are not counted; standard error lists what they
    were answered. Images that cannot be read are listed there too, and the exit code is then 1. A
    warning says how many images the model has learnt, because they make the accuracy too high.
    """
    if confusion is not None:
        if Path(confusion).suffix.lower() not in (".svg", ".png"):
            raise click.BadParameter("must end in .svg or .png", param_hint="'--confusion'")
        check_output(confusion, force=force)
        _check_plots()
    classifier = load_classifier(model, verbose=verbosity(quiet), jobs=jobs)
    result = _evaluate(classifier, source, reading, quiet=quiet)
    _write(result, form)
    if result.n_rejected:
        report(_explain_unknown(classifier, result.n_rejected), quiet=quiet)
    if confusion is not None:
        from evergrow.vision.classifier import draw_confusion

        draw_confusion(result.confusion, result.classes, confusion, rejected=result.rejected)
        report(f"{click.format_filename(confusion)}: confusion matrix written.", quiet=quiet)
    if result.n_learnt:
        report(
            f"Warning: the model has learnt {result.n_learnt} of the "
            f"{format_count(result.n_images, 'image')}, so the accuracy is too high: evaluate it "
            "on others"
        )
    for name in result.unknown:
        _report_class(result, name, quiet=quiet)
    report_errors(result.errors)


def _check_plots() -> None:
    """Raise an error before the work if the picture could not be drawn after it."""
    from evergrow.vision.classifier.confusion import figure_class

    figure_class()


def _report_class(result: _Result, name: str, *, quiet: bool) -> None:
    """Say how images of a class that the model does not know were answered."""
    hint = suggest(name, result.classes)
    n_images = result.unknown[name]
    images = "image is" if n_images == 1 else f"{n_images} images are"
    answered = result.answered[name]
    text = f"the model does not know {name!r}: its {images} not counted"
    if answered:
        text = f"{text}; {_list_answers(answered, n_images)}"
    # "unknown" is the right answer.
    is_right = set(answered) == {None} and not hint
    report(
        f"{'Note' if is_right else 'Warning'}: {text}{f'; {hint}' if hint else ''}",
        quiet=quiet and is_right,
    )


def _list_answers(answered: Counter[str | None], n_images: int) -> str:
    """Say how often which answer was given, such as "13 were answered 'fish', 2 'cup'"."""
    pairs = [
        (n, '"unknown"' if label is None else repr(label))
        for label, n in answered.most_common(_MOST_ANSWERS)
    ]
    (n_first, first), *others = pairs
    subject = "it" if n_images == 1 else str(n_first)
    were = "was" if n_first == 1 else "were"
    listed = ", ".join([f"{subject} {were} answered {first}", *(f"{n} {x}" for n, x in others)])
    return f"{listed}, ..." if len(answered) > len(pairs) else listed


def _evaluate(classifier: Any, source: str, reading: dict[str, Any], *, quiet: bool) -> _Result:
    import numpy as np

    from evergrow.foundation.labels import ClassList
    from evergrow.vision.images.labelled.labelled_images import warn_doubt
    from evergrow.vision.images.results import warn_about

    found = find_images(source, reading, split="test", quiet=quiet)
    warn_doubt(found)
    errors = set(found.unreadable)
    warn_about([problem for problem in found.problems if problem not in errors])
    # Folder names are strings; classes may be numbers if the model was trained in Python.
    column_of = ClassList(classifier.classes_).column_by_text
    known = [i for i, label in enumerate(found.labels.tolist()) if label in column_of]
    names, counts = np.unique(np.delete(found.labels, known), return_counts=True)
    unknown = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if not known:
        raise click.ClickException(_explain_no_class(unknown, column_of))
    k = min(_TOP, len(column_of))
    answers = predict_images(classifier, [found.sources[i] for i in known], k=k)
    if not len(answers.kept):
        raise click.ClickException(f"no image can be read, the first: {answers.problems[0]}")
    truth = np.array([column_of[label] for label in found.labels[known]])[answers.kept]
    answer = np.array([column_of.get(str(label), -1) for label in answers.labels.tolist()])
    answer[~answers.known] = -1
    confusion = np.zeros((len(column_of), len(column_of)), dtype=np.int64)
    np.add.at(confusion, (truth[answer >= 0], answer[answer >= 0]), 1)
    images = np.bincount(truth, minlength=len(column_of))
    top = np.vectorize(column_of.get, otypes=[int])(answers.top_labels.astype(str))
    in_top = np.bincount(truth[(top == truth[:, None]).any(axis=1)], minlength=len(column_of))
    answered, more = _answer_unknown(classifier, found, set(unknown))
    unreadable = (*answers.problems, *more)
    return _Result(
        list(column_of),
        confusion,
        images,
        images - confusion.sum(axis=1),
        in_top,
        unknown,
        answered,
        _false_alarms(classifier) is not None,
        _count_learnt(classifier, [found.sources[known[place]] for place in answers.kept.tolist()]),
        (*found.problems, *unreadable),
        (*found.unreadable, *unreadable),
    )


def _explain_no_class(asked: Iterable[str], known: Iterable[str]) -> str:
    """Say that the model knows none of the classes, and which of its own were meant."""
    asked, known = (sorted(names, key=natural_order) for names in (asked, known))
    text = f"the model knows none of the classes {list_names(asked)}; it knows {list_names(known)}"
    pairs = ((name, suggest(name, known)) for name in asked[:_MOST_COMPARED])
    hints = (hint if len(asked) == 1 else f"{name!r}: {hint}" for name, hint in pairs if hint)
    return "; ".join([text, *islice(hints, _MOST_HINTS)])


def _answer_unknown(
    classifier: Any, found: LabelledImages, unknown: set[str]
) -> tuple[dict[str, Counter[str | None]], tuple[Any, ...]]:
    """The answers for images of unknown classes, and the images that cannot be read."""
    answered: dict[str, Counter[str | None]] = {name: Counter() for name in unknown}
    asked = [i for i, label in enumerate(found.labels.tolist()) if label in unknown]
    if not asked:
        return answered, ()
    answers = predict_images(classifier, [found.sources[i] for i in asked])
    said = zip(answers.kept.tolist(), answers.known.tolist(), answers.labels.tolist(), strict=True)
    for place, is_known, label in said:
        answered[str(found.labels[asked[place]])][str(label) if is_known else None] += 1
    return answered, tuple(answers.problems)


def _count_learnt(classifier: Any, sources: list[Any]) -> int:
    from evergrow.cli.workspace.predictor import WorkspaceClassifier
    from evergrow.vision.classifier.learner import count_learnt

    if isinstance(classifier, WorkspaceClassifier):
        return classifier.count_learnt(sources)
    return count_learnt(classifier, sources)


def _false_alarms(classifier: Any) -> float | None:
    """The share of known images that may be answered "unknown"; None if that never happens."""
    from evergrow.cli.workspace.predictor import WorkspaceClassifier

    if isinstance(classifier, WorkspaceClassifier):
        return classifier.false_alarms
    share: float | None = getattr(classifier.learner_, "false_alarms", None)
    return share


def _explain_unknown(classifier: Any, n_rejected: int) -> str:
    """Say why images of known classes are answered "unknown", and which setting decides it."""
    from evergrow.cli.workspace.predictor import WorkspaceClassifier

    known = f'{format_count(n_rejected, "image")} of known classes answered "unknown"'
    share = _false_alarms(classifier)
    about = "some" if share is None else f"about {100 * share:g}%"
    if not isinstance(classifier, WorkspaceClassifier):
        return (
            f"{known}: the model does so for {about} of such images, in order to notice unknown "
            "things. For another share, train again: 'evergrow fit --unknown --false-alarms "
            "SHARE', or 'evergrow init --false-alarms SHARE' for the model of a workspace."
        )
    return (
        f"{known}: the workspace does so for {about} of the things it knows, in order to notice "
        "unknown things ('evergrow init --false-alarms' sets the share). A model file does the "
        "same if it was made by 'evergrow fit --unknown', else never."
    )


def _write(result: _Result, form: str | None) -> None:
    if form == "json":
        _write_json(result)
    elif is_for_people(form):
        _write_tables(result)
    else:
        _write_lines(result)


def _write_tables(result: _Result) -> None:
    n_images = result.n_images
    n_wrong = n_images - result.n_right - result.n_rejected
    counted = f"{result.n_right} of {n_images} right, {n_wrong} wrong, {result.n_rejected} unknown"
    summary = [
        ("Accuracy", format_percent(result.accuracy), counted),
        ("Mean class accuracy", format_percent(result.mean_class_accuracy), ""),
    ]
    if len(result.classes) > _TOP:
        n_in_top = int(result.in_top.sum())
        among = f"{n_in_top} of {n_images} among the {_TOP} most probable classes"
        summary.append((f"Top-{_TOP} accuracy", format_percent(result.top5), among))
    write_table({"": "left", " ": "right", "  ": "left"}, summary)
    write_text()
    entries = result.per_class()
    counts = ("images", "right", "wrong", "rejected")
    rows = [
        [
            entry["class"],
            *(entry[name] for name in counts),
            format_percent(entry["recall"]),
            format_percent(entry["precision"]),
        ]
        for entry in entries
    ]
    names = ("images", "right", "wrong", "unknown", "recall", "precision")
    write_table({"class": "left", **dict.fromkeys(names, "right")}, rows)
    mix_ups = result.mix_ups()
    if mix_ups:
        write_text()
        write_table(
            {"class": "left", "taken for": "left", "images": "right"},
            [(name, other, f"{n} of {of}") for name, other, n, of in mix_ups[:_MOST_MIX_UPS]],
        )


def _write_lines(result: _Result) -> None:
    summary = [f"{result.accuracy:.4f}", result.n_right, result.n_images, result.n_rejected]
    write_fields(["accuracy", *summary])
    for entry in result.per_class():
        counts = [entry["images"], entry["right"], f"{entry['accuracy']:.4f}", entry["rejected"]]
        write_fields(["class", entry["class"], *counts])


def _write_json(result: _Result) -> None:
    write_json(
        {
            "accuracy": result.accuracy,
            "mean_class_accuracy": result.mean_class_accuracy,
            "top5": result.top5,
            "n_images": result.n_images,
            "n_right": result.n_right,
            "n_rejected": result.n_rejected,
            "n_learnt": result.n_learnt,
            "classes": result.per_class(),
            "confusion": {"classes": result.classes, "counts": result.confusion.tolist()},
            "unknown_classes": result.unknown,
            "noticed": result.noticed,
            "problems": [{"image": p.source, "reason": p.reason} for p in result.problems],
        }
    )
