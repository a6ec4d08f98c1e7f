"""The columns of a comparison's table, the same in the terminal, on the page and in the CSV."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from evergrow.foundation.formatting import MISSING, format_count
from evergrow.research.comparison.formats import duration, percent, size
from evergrow.research.comparison.result import Standing

_WAYS = {"grows": "grows", "told": "knew all classes", "retrained": "retrained"}


@dataclass(frozen=True)
class Column:
    """A column: its name in files, its heading and meaning, and how its values are shown."""

    name: str
    heading: str
    meaning: str
    format: Callable[[float], str] = percent
    attribute: str = ""
    """The attribute of a standing, if it is not the name."""
    only_in_files: bool = False
    """Whether tables for people leave it out."""

    def value(self, standing: Standing) -> float | str:
        """The value for files."""
        found: float | str = getattr(standing, self.attribute or self.name)
        return found

    def text(self, standing: Standing) -> str:
        """The value for people."""
        value = self.value(standing)
        if isinstance(value, str):
            return _WAYS[value]
        text = self.format(value)
        if self.name != "class_mean" or text == MISSING or math.isnan(standing.deviation):
            return text
        return f"{text} ± {100 * standing.deviation:.1f}"


COLUMNS: tuple[Column, ...] = (
    Column("way", "updates", "whether new classes are learnt incrementally"),
    Column(
        "class_mean",
        "mean class accuracy",
        "accuracy at the end, averaged over classes: every class has the same weight",
    ),
    Column(
        "accuracy",
        "accuracy",
        "accuracy at the end over all test samples: large classes have more weight",
    ),
    Column(
        "on_the_way",
        "on the way",
        "mean class accuracy at the start, in the middle and at the end, averaged",
    ),
    Column("newest", "newest", "mean class accuracy of the five newest classes at the end"),
    Column(
        "forgetting",
        "forgotten",
        "drop from a class's best accuracy to its final one, averaged over classes",
    ),
    Column(
        "seconds_per_update",
        "update",
        "time of an update, or of one retraining",
        duration,
        "seconds",
    ),
    Column("last_seconds", "last", "time of the last update", duration),
    Column("answer_seconds", "answer", "time per prediction, in large batches", duration),
    Column(
        "bytes",
        "stored",
        "what must be stored to continue learning: the saved model (of other packages the pickled "
        "model), and the training examples if the learner needs them",
        size,
        "n_bytes",
    ),
    Column("model_bytes", "model", "the model only", size, only_in_files=True),
    Column(
        "cpu_seconds_per_update",
        "processor",
        "processor time of an update over all threads, which other load hardly changes",
        duration,
        "cpu_seconds",
        only_in_files=True,
    ),
)
# A terminal has room for these.
NARROW_COLUMNS = tuple(
    column
    for column in COLUMNS
    if column.name in ("class_mean", "newest", "seconds_per_update", "bytes")
)
SHOWN_COLUMNS = tuple(column for column in COLUMNS if not column.only_in_files)


def notes_on(standing: Standing) -> str:
    """Return what a reader must know besides the numbers, in one line."""
    notes = standing.remarks
    for result in standing.results:
        if result.stopped_at is not None:
            reached = "nothing learnt"
            if result.points:
                classes = format_count(result.stopped_at, "class")
                reached = f"{percent(result.points[-1].class_mean)} at {classes}"
            notes.append(f"stopped after {duration(result.time_limit)}: {reached}")
    return "; ".join(dict.fromkeys(notes))
