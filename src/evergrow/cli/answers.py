"""Predictions as ``evergrow predict`` writes them: to a terminal, a pipe, or a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from evergrow.cli.output import (
    Align,
    is_for_people,
    redirect,
    write_csv_row,
    write_fields,
    write_json,
    write_table,
)
from evergrow.foundation.formatting import format_percent

if TYPE_CHECKING:
    from evergrow.workspace.records import Answer as WorkspaceAnswer

# What text and CSV say of an image that fits no class. A class may have the same name; CSV and JSON
# have a field that tells them apart.
_UNKNOWN = "unknown"
_CSV_FLAGS = {True: "true", False: "false"}
# The form of a file by its ending.
FILE_FORMS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json", ".json": "coco"}


@dataclass(frozen=True)
class Answer:
    """The prediction for one image, or for one frame of a video."""

    image: str
    # None if the image fits no class.
    label: Any
    # The best classes, each with its probability.
    best: list[tuple[Any, float]]
    # More details, from a workspace only.
    told: WorkspaceAnswer | None
    # The time stamp of a frame.
    seconds: float | None = None

    @property
    def known(self) -> bool:
        """Whether the image fits a class."""
        return self.label is not None

    @property
    def title(self) -> str:
        """The image, with the time of a frame as in the addresses of the web."""
        return self.image if self.seconds is None else f"{self.image}#t={self.seconds:.3f}"


@dataclass(frozen=True)
class Columns:
    """Which columns a table of answers has."""

    n_classes: int
    has_time: bool
    has_fine: bool


class AnswerWriter(Protocol):
    """Writes answers one by one."""

    def add(self, answer: Answer) -> None:
        """Write an answer."""

    def finish(self) -> None:
        """Write what comes after the last answer."""


@contextmanager
def open_writer(form: str | None, output: str | None, columns: Columns) -> Iterator[AnswerWriter]:
    """Open a writer to standard output, or to a file that is complete or not there at all.

    A stream of frames has no table for people: it may never end.
    """
    if output is None:
        people = is_for_people(form) and not columns.has_time
        writer = _Table() if people else _WRITERS[form or "tsv"](columns)
        yield writer
        writer.finish()
        return
    from evergrow.foundation.files import atomic_write

    form = FILE_FORMS[os.path.splitext(output)[1].lower()]
    with atomic_write(output) as file:
        if form == "coco":
            from evergrow.vision.images.labelled.coco_writer import CocoWriter

            with CocoWriter() as annotations:
                yield _Coco(annotations, os.path.dirname(os.path.abspath(output)))
                annotations.finish(file)
            return
        with redirect(file):
            writer = _Relative(_WRITERS[form](columns), os.path.dirname(os.path.abspath(output)))
            yield writer
            writer.finish()


class _Lines:
    """Writes a line for each answer."""

    def __init__(self, write: Callable[[Answer], None]) -> None:
        self._write = write

    def add(self, answer: Answer) -> None:
        self._write(answer)

    def finish(self) -> None:
        """Write nothing: every line is complete."""


class _Table:
    """Writes a table for people at the end, because its columns are as wide as its cells."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []

    def add(self, answer: Answer) -> None:
        self._answers.append(answer)

    def finish(self) -> None:
        answers = self._answers
        if not answers:
            # What is wrong with the images is an error, which needs no headings above it.
            return
        n_more = len(answers[0].best) - 1
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


@dataclass(frozen=True)
class _Relative:
    """Names images relative to the folder of a file, so that the file can be read again."""

    writer: AnswerWriter
    folder: str

    def add(self, answer: Answer) -> None:
        from evergrow.vision.images.labelled.coco_writer import relative_name

        self.writer.add(replace(answer, image=relative_name(answer.image, self.folder)))

    def finish(self) -> None:
        self.writer.finish()


@dataclass(frozen=True)
class _Coco:
    """Writes annotations in the format of COCO; an image that fits no class has none."""

    annotations: Any
    folder: str

    def add(self, answer: Answer) -> None:
        from evergrow.vision.images.labelled.coco_writer import relative_name, upright_size

        label = None if answer.label is None else str(answer.label)
        name = relative_name(answer.image, self.folder)
        self.annotations.add(name, upright_size(answer.image), label, answer.best[0][1])

    def finish(self) -> None:
        """Write nothing: the file is written as a whole."""


def _csv_lines(columns: Columns) -> AnswerWriter:
    more = [
        f"{name}_{place}"
        for place in range(2, columns.n_classes + 1)
        for name in ("label", "probability")
    ]
    when = ["time"] if columns.has_time else []
    fine = ["fine"] if columns.has_fine else []
    write_csv_row(["image", *when, "label", "probability", "known", *more, *fine])

    def write(answer: Answer) -> None:
        fine = [] if answer.told is None else [answer.told.fine or ""]
        first, *others = _pairs(answer)
        more = [field for pair in others for field in pair]
        when = []
        if columns.has_time:
            when = ["" if answer.seconds is None else f"{answer.seconds:.3f}"]
        write_csv_row([answer.image, *when, *first, _CSV_FLAGS[answer.known], *more, *fine])

    return _Lines(write)


def _write_text(answer: Answer) -> None:
    fine = answer.told.fine if answer.told is not None else None
    fields = [field for pair in _pairs(answer) for field in pair]
    write_fields([answer.title, *fields, *([] if fine is None else [fine])])


def _write_object(answer: Answer) -> None:
    written: dict[str, Any] = {"image": answer.image}
    if answer.seconds is not None:
        written["time"] = round(answer.seconds, 3)
    written |= {"label": answer.label, "known": answer.known, "top": _candidates(answer.best)}
    told = answer.told
    if told is not None:
        written |= {"novelty": told.novelty, "fine": told.fine}
        written |= {"fine_top": _candidates(told.fine_top)}
    write_json(written)


_WRITERS: dict[str, Callable[[Columns], AnswerWriter]] = {
    "csv": _csv_lines,
    "json": lambda _: _Lines(_write_object),
    "tsv": lambda _: _Lines(_write_text),
}


def _candidates(best: Iterable[tuple[Any, float]]) -> list[dict[str, Any]]:
    """Classes and probabilities, with the keys of the service."""
    return [{"name": name, "probability": share} for name, share in best]


def _four_digits(share: float) -> str:
    return f"{share:.4f}"


def _pairs(answer: Answer, shown: Callable[[float], str] = _four_digits) -> list[tuple[Any, str]]:
    """The answer and the next best classes, each with its probability.

    "unknown" has none, and the best class of all comes after it.
    """
    pairs = [(name, shown(share)) for name, share in answer.best]
    if not answer.known:
        return [(_UNKNOWN, ""), *pairs[:-1]]
    return [(answer.label, pairs[0][1]), *pairs[1:]]


def check_file(output: str) -> None:
    """Refuse an ending that stands for no form."""
    if Path(output).suffix.lower() not in FILE_FORMS:
        endings = ", ".join(FILE_FORMS)
        raise click.BadParameter(f"must end in one of {endings}", param_hint="'--output'")
