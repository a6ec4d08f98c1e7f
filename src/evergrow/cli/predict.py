"""``evergrow predict``: classify images with a model file or a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import load_classifier, predict_images
from evergrow.cli.options import (
    JOBS,
    NO_FOLLOW_LINKS,
    QUIET,
    command,
    output_forms,
    verbosity,
)
from evergrow.cli.output import (
    Align,
    is_for_people,
    report_errors,
    write_csv_row,
    write_fields,
    write_json,
    write_table,
)
from evergrow.foundation.formatting import format_percent

if TYPE_CHECKING:
    from evergrow.vision.classifier import Answers
    from evergrow.workspace.records import Answer as WorkspaceAnswer


# What text and CSV say of an image that fits no class. A class may have the same name; CSV and JSON
# have a field that tells them apart.
_UNKNOWN = "unknown"
_CSV_FLAGS = {True: "true", False: "false"}


@dataclass(frozen=True)
class _Answer:
    """The prediction for one image."""

    image: str
    # None if the image fits no class.
    label: Any
    # The best classes, each with its probability.
    best: list[tuple[Any, float]]
    # More details, from a workspace only.
    told: WorkspaceAnswer | None

    @property
    def known(self) -> bool:
        return self.label is not None


def _write_text(answer: _Answer) -> None:
    fine = answer.told.fine if answer.told is not None else None
    fields = [field for pair in _pairs(answer) for field in pair]
    write_fields([answer.image, *fields, *([] if fine is None else [fine])])


def _write_table(answers: list[_Answer]) -> None:
    n_more = len(answers[0].best) - 1 if answers else 0
    columns: dict[str, Align] = {"image": "left", "class": "left", "probability": "right"}
    for place in range(2, n_more + 2):
        columns |= {f"{place}.": "left", " " * place: "right"}
    has_fine = any(one.told is not None and one.told.fine is not None for one in answers)
    rows = []
    for one in answers:
        fields = [field for pair in _pairs(one, format_percent) for field in pair]
        fine = [one.told.fine if one.told is not None else None] if has_fine else []
        rows.append([one.image, *fields, *fine])
    write_table({**columns, "fine class": "left"} if has_fine else columns, rows)


def _write_csv(answer: _Answer) -> None:
    fine = [] if answer.told is None else [answer.told.fine or ""]
    first, *others = _pairs(answer)
    more = [field for pair in others for field in pair]
    write_csv_row([answer.image, *first, _CSV_FLAGS[answer.known], *more, *fine])


def _write_object(answer: _Answer) -> None:
    written = {
        "image": answer.image,
        "label": answer.label,
        "known": answer.known,
        "top": _candidates(answer.best),
    }
    told = answer.told
    if told is not None:
        written |= {"novelty": told.novelty, "fine": told.fine}
        written |= {"fine_top": _candidates(told.fine_top)}
    write_json(written)


def _candidates(best: Iterable[tuple[Any, float]]) -> list[dict[str, Any]]:
    """Classes and probabilities, with the keys of the service."""
    return [{"name": name, "probability": share} for name, share in best]


def _four_digits(share: float) -> str:
    return f"{share:.4f}"


def _pairs(answer: _Answer, shown: Callable[[float], str] = _four_digits) -> list[tuple[Any, str]]:
    """The answer and the next best classes, each with its probability.

    "unknown" has none, and the best class of all comes after it.
    """
    pairs = [(name, shown(share)) for name, share in answer.best]
    if not answer.known:
        return [(_UNKNOWN, ""), *pairs[:-1]]
    return [(answer.label, pairs[0][1]), *pairs[1:]]


_WRITERS: dict[str, Callable[[_Answer], None]] = {
    "csv": _write_csv,
    "json": _write_object,
    "tsv": _write_text,
}


@command(
    "evergrow predict model.evergrow cat.jpg holiday/",
    "evergrow predict things cat.jpg holiday/",
    'evergrow predict model.evergrow "holiday/**/*.jpg" --top 3',
    "evergrow predict model.evergrow holiday/ --json | jq .label",
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@click.argument("images", metavar="IMAGES...", nargs=-1, required=True, type=click.Path())
@output_forms("json", "csv", "tsv", each=" per line")
@click.option(
    "--top", type=click.IntRange(1), default=1, help="Number of classes to list per image."
)
@NO_FOLLOW_LINKS
@JOBS
@QUIET
def predict(
    model: str,
    images: tuple[str, ...],
    form: str | None,
    top: int,
    follow_links: bool,
    jobs: int,
    quiet: bool,
) -> None:
    """Predict the class of IMAGES: files, folders or patterns.

    MODEL is a model file, DIR a workspace. Shows the class and the probability of each image; in a
    pipe, or with --tsv, as tab-separated lines. An image that fits no class is "unknown", without a
    probability, if the model can tell (fit --unknown, and every workspace); in JSON its label is
    null and "known" is false. A workspace adds the fine class at the end if it is sure of one.
    Images that cannot be read are listed on standard error; the others are classified, and the exit
    code is 1.
    """
    classifier = load_classifier(model, verbose=verbosity(quiet), jobs=jobs)
    paths, unreadable = _find_images(images, follow_links=follow_links)
    k = min(top, len(classifier.classes_))
    answers = predict_images(classifier, paths, k=k)
    write = _WRITERS[form or "tsv"]
    if form == "csv":
        more = [f"{name}_{place}" for place in range(2, k + 1) for name in ("label", "probability")]
        fine = ["fine"] if _told(answers) is not None else []
        write_csv_row(["image", "label", "probability", "known", *more, *fine])
    if is_for_people(form):
        _write_table([*_each(paths, answers)])
    else:
        for answer in _each(paths, answers):
            write(answer)
    report_errors([*unreadable, *answers.problems])


def _each(paths: list[str], answers: Answers) -> Iterator[_Answer]:
    names, shares = answers.top_labels.tolist(), answers.top_probabilities.tolist()
    told = _told(answers)
    known = answers.known.tolist()
    for place, label in enumerate(answers.labels.tolist()):
        best = list(zip(names[place], shares[place], strict=True))
        image = paths[answers.kept[place]]
        said = label if known[place] else None
        yield _Answer(image, said, best, None if told is None else told[place])


def _told(answers: Answers) -> tuple[WorkspaceAnswer, ...] | None:
    from evergrow.cli.workspace.predictor import WorkspaceAnswers

    return answers.told if isinstance(answers, WorkspaceAnswers) else None


def _find_images(
    images: tuple[str, ...], *, follow_links: bool
) -> tuple[list[str], tuple[Any, ...]]:
    """Return the images, and the files among them that cannot be read."""
    from evergrow.vision.images.folders import search_images
    from evergrow.vision.images.results import warn_about

    found = search_images(list(images), follow_links=follow_links)
    warn_about(found.ignored)
    return [os.fspath(path) for path in found.paths], found.unreadable
