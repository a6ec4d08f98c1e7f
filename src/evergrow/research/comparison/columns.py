"""The columns of a comparison's table, the same in the terminal, on the page and in the CSV."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from evergrow.research.comparison.result import Standing
from evergrow.research.comparison.wording import MISSING, duration, percent, several, size

__all__ = ["COLUMNS", "SHOWN", "WAYS", "Column", "said_of"]

WAYS = {"grows": "grows", "told": "told all classes", "retrained": "trained anew"}


@dataclass(frozen=True)
class Column:
    """One column: a name for files, a heading, the value, and how it is shown."""

    name: str
    heading: str
    explained: str
    value: Callable[[Standing], float | str]
    shown: Callable[[Standing], str]
    only_in_files: bool = False
    """Whether it would only make the tables wider for people."""


def _class_mean(standing: Standing) -> str:
    said = percent(standing.class_mean)
    if math.isnan(standing.deviation) or said == MISSING:
        return said
    return f"{said} ± {100 * standing.deviation:.1f}"


COLUMNS: tuple[Column, ...] = (
    Column(
        "way",
        "updates",
        "whether new classes are learnt in place",
        lambda s: s.contender.way,
        lambda s: WAYS[s.contender.way],
    ),
    Column(
        "class_mean",
        "class mean",
        "right answers in the end, the mean over classes: each class weighs the same",
        lambda s: s.class_mean,
        _class_mean,
    ),
    Column(
        "accuracy",
        "accuracy",
        "right answers in the end over all test samples: large classes weigh more",
        lambda s: s.accuracy,
        lambda s: percent(s.accuracy),
    ),
    Column(
        "on_the_way",
        "on the way",
        "mean of the class mean at the beginning, half way and in the end",
        lambda s: s.on_the_way,
        lambda s: percent(s.on_the_way),
    ),
    Column(
        "newest",
        "newest",
        "class mean in the end, of the five classes that came last alone",
        lambda s: s.newest,
        lambda s: percent(s.newest),
    ),
    Column(
        "forgetting",
        "forgotten",
        "how far classes fell from the best they were, mean over classes",
        lambda s: s.forgetting,
        lambda s: percent(s.forgetting),
    ),
    Column(
        "seconds_per_update",
        "update",
        "time of an update, or of one training anew",
        lambda s: s.seconds,
        lambda s: duration(s.seconds),
    ),
    Column(
        "last_seconds",
        "last",
        "time of the last of them",
        lambda s: s.last_seconds,
        lambda s: duration(s.last_seconds),
    ),
    Column(
        "answer_seconds",
        "answer",
        "time per answer, asked for many at once",
        lambda s: s.answer_seconds,
        lambda s: duration(s.answer_seconds),
    ),
    Column(
        "bytes",
        "kept",
        "all that must be kept to learn on: of ours the bytes of the saved model, of others those "
        "of the pickled one, with the examples of those that need them",
        lambda s: s.n_bytes,
        lambda s: size(s.n_bytes),
    ),
    Column(
        "model_bytes",
        "model",
        "what answers alone",
        lambda s: s.model_bytes,
        lambda s: size(s.model_bytes),
        only_in_files=True,
    ),
    Column(
        "cpu_seconds_per_update",
        "processor",
        "processor time of an update over all threads, which other work hardly changes",
        lambda s: s.cpu_seconds,
        lambda s: duration(s.cpu_seconds),
        only_in_files=True,
    ),
)
SHOWN = tuple(column for column in COLUMNS if not column.only_in_files)


def said_of(standing: Standing) -> str:
    """What must be known beside the numbers, in one line."""
    said = standing.remarks
    for result in standing.results:
        if result.stopped_at is not None:
            reached = (
                f"{percent(result.points[-1].class_mean)} at {several(result.stopped_at, 'class')}"
                if result.points
                else "nothing learnt"
            )
            said.append(f"stopped after {duration(result.time_limit)}: {reached}")
    return "; ".join(dict.fromkeys(said))
