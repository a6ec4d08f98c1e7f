"""What was measured of a learner: one run, and the summary of all of its runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.compare.learners import ComparedLearner
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import (
    MISSING,
    format_count,
    format_in_units,
    format_percent,
    format_size,
)

Floats = npt.NDArray[np.float64]
_TIMES = ((1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (0.0, 1e-6, "µs"))
percent = format_percent
_WAYS = {"grows": "grows", "told": "knew all classes", "retrained": "retrained"}


def duration(seconds: float) -> str:
    """Format a duration with two digits.

    >>> duration(0.0254), duration(12.34), duration(4e-6), duration(125)
    ('25 ms', '12 s', '4 µs', '125 s')
    """
    return MISSING if math.isnan(seconds) else format_in_units(seconds, _TIMES)


def size(n_bytes: float) -> str:
    """Format a number of bytes with two digits."""
    return MISSING if math.isnan(n_bytes) else format_size(n_bytes)


def mean_known(values: Sequence[float] | Floats) -> float:
    """Return the mean without NaN values; NaN if there are no others.

    >>> mean_known([1.0, float("nan"), 0.5]), mean_known([])
    (0.75, nan)
    """
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


@dataclass(frozen=True)
class Point:
    """A learner after some number of classes; NaN where none of them has test samples."""

    n_classes: int
    accuracy: float
    """Accuracy over all test samples: large classes have more weight."""
    class_mean: float
    """Accuracy averaged over classes: every class has the same weight."""
    newest: float
    """The class mean of the newest classes."""


@dataclass(frozen=True)
class Result:
    """Measurements of one learner on one class order; NaN where nothing could be measured."""

    points: tuple[Point, ...]
    answers: tuple[str, ...]
    """For each class, one digit per test sample: 1 if the final prediction is correct."""
    forgetting: float
    seconds_per_update: float
    cpu_seconds_per_update: float
    last_seconds: float
    """Seconds of the last update, or of the last retraining."""
    answer_seconds: float
    """Seconds per prediction, in large batches."""
    n_bytes: int
    """Bytes that must be stored to continue: the model, and the examples if it needs them."""
    model_bytes: int
    stopped_at: int | None
    """Number of known classes when time ran out; None if the learner finished."""
    time_limit: float
    remarks: tuple[str, ...]

    def last(self, name: str) -> float:
        """Return a value of the last point; NaN if the learner did not finish."""
        finished = self.points and self.stopped_at is None
        return float(getattr(self.points[-1], name)) if finished else math.nan

    def on_the_way(self, checkpoints: Sequence[int]) -> float:
        """Return the mean class accuracy, averaged over the checkpoints.

        NaN if a checkpoint was not reached; checkpoints without test samples do not count.
        """
        found = {point.n_classes: point.class_mean for point in self.points}
        return (
            mean_known([found[n] for n in checkpoints]) if {*checkpoints} <= {*found} else math.nan
        )

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild from ``asdict``; raise a ``ValueError`` for damaged values."""
        try:
            points = tuple(Point(**point) for point in entry["points"])
            lists = {name: tuple(entry[name]) for name in ("answers", "remarks")}
            found = cls(**{**entry, "points": points, **lists})
            values: list[Any] = [value for point in points for value in vars(point).values()]
            values += [
                value
                for name, value in vars(found).items()
                if name not in ("points", "answers", "remarks", "stopped_at")
            ]
            texts: list[Any] = [*found.answers, *found.remarks]
            values.append(found.stopped_at or 0)
            sound = (
                all(isinstance(each, (int, float)) for each in values)
                and all(isinstance(each, str) for each in texts)
                and not set("".join(found.answers)) - {"0", "1"}
                and (found.stopped_at is not None or bool(found.points and found.answers))
            )
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"a result is damaged: {error}") from error
        if not sound:
            raise InvalidInputError("a result is damaged: a value has the wrong type")
        return found


@dataclass(frozen=True)
class Standing:
    """The results of one learner over all class orders, one per order."""

    learner: ComparedLearner
    results: tuple[Result, ...]
    checkpoints: tuple[int, ...]
    problem: str = ""
    """Why nothing was measured; empty if something was."""

    def mean(self, value: Callable[[Result], float]) -> float:
        """Return the mean of a value over the class orders; NaN without results."""
        return float(np.mean([value(result) for result in self.results] or [math.nan]))

    def value(self, name: str) -> float:
        """Return the mean of a measured value by its name in files."""
        if name in ("accuracy", "class_mean", "newest"):
            return self.mean(lambda result: result.last(name))
        if name == "on_the_way":
            return self.mean(lambda result: result.on_the_way(self.checkpoints))
        if name in ("bytes", "model_bytes") and not self.finished:
            return math.nan
        attribute = "n_bytes" if name == "bytes" else name
        return self.mean(lambda result: getattr(result, attribute))

    # The class mean is the value by which learners are ranked.
    @property
    def class_mean(self) -> float:
        """Mean class accuracy at the end."""
        return self.value("class_mean")

    @property
    def newest(self) -> float:
        """Mean class accuracy of the newest classes at the end."""
        return self.value("newest")

    @property
    def seconds(self) -> float:
        """Seconds per update, or per retraining."""
        return self.value("seconds_per_update")

    @property
    def n_bytes(self) -> float:
        """Bytes that must be stored to continue learning."""
        return self.value("bytes")

    @property
    def finished(self) -> bool:
        """Whether it reached the end of the stream in every order."""
        return bool(self.results) and all(result.stopped_at is None for result in self.results)

    @property
    def beats_chance(self) -> bool:
        """Whether it finished and is better than a constant prediction."""
        tested = sum(bool(each) for each in self.results[0].answers) if self.finished else 0
        return tested > 0 and self.class_mean > 1 / tested + 1e-9

    @property
    def deviation(self) -> float:
        """Standard deviation of the mean class accuracy over orders; NaN for one order."""
        found = [result.last("class_mean") for result in self.results]
        return float(np.std(found, ddof=1)) if len(found) > 1 else math.nan

    @property
    def curve(self) -> list[tuple[int, float]]:
        """Mean class accuracy by number of classes, where it was measured in every order."""
        found: dict[int, list[float]] = {}
        for result in self.results:
            for point in result.points:
                if not math.isnan(point.class_mean):
                    found.setdefault(point.n_classes, []).append(point.class_mean)
        n = len(self.results)
        return [(k, float(np.mean(v))) for k, v in sorted(found.items()) if len(v) == n]

    @property
    def notes(self) -> str:
        """What a reader must know in addition to the numbers, in one line."""
        notes = [self.learner.note, self.problem]
        notes += [remark for result in self.results for remark in result.remarks]
        for result in self.results:
            if result.stopped_at is not None:
                reached = "nothing learnt"
                if result.points:
                    classes = format_count(result.stopped_at, "class")
                    reached = f"{percent(result.points[-1].class_mean)} at {classes}"
                notes.append(f"stopped after {duration(result.time_limit)}: {reached}")
        return "; ".join(dict.fromkeys(filter(None, notes)))


@dataclass(frozen=True)
class Column:
    """A column: its name in files, its heading and meaning, and how its values are shown."""

    name: str
    heading: str
    meaning: str
    format: Callable[[float], str] = percent
    only_in_files: bool = False

    def value(self, standing: Standing) -> float | str:
        """The value for files."""
        return standing.learner.way if self.name == "way" else standing.value(self.name)

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
    Column("seconds_per_update", "update", "time of an update, or of one retraining", duration),
    Column("last_seconds", "last", "time of the last update", duration),
    Column("answer_seconds", "answer", "time per prediction, in large batches", duration),
    Column(
        "bytes",
        "stored",
        "what must be stored to continue learning: the saved model (of other packages the pickled "
        "model), and the training examples if the learner needs them",
        size,
    ),
    Column("model_bytes", "model", "the model only", size, only_in_files=True),
    Column(
        "cpu_seconds_per_update",
        "processor",
        "processor time of an update over all threads, which other load hardly changes",
        duration,
        only_in_files=True,
    ),
)
SHOWN_COLUMNS = tuple(column for column in COLUMNS if not column.only_in_files)


def difference(a: Standing, b: Standing) -> tuple[float, float]:
    """Return by how much the class mean of ``a`` is higher, and how much may be chance.

    Both learners predicted the same test samples, and every class has the same weight. The second
    number is the larger of two half-widths of 95 % intervals: the variation between classes (and
    between orders, if there are several), from the spread of the differences, and the variation
    between test samples of these classes, from the samples that only one of the two predicted
    correctly.
    """
    by_order = [
        [
            np.array([int(x) - int(y) for x, y in zip(mine, theirs, strict=True)], np.float64)
            for mine, theirs in zip(one.answers, other.answers, strict=True)
            if mine
        ]
        for one, other in zip(a.results, b.results, strict=True)
    ]
    samples: list[Floats] = [np.mean(each, axis=0) for each in zip(*by_order, strict=True)]
    by_class = np.array([each.mean() for each in samples])
    means = np.array([np.mean([each.mean() for each in order]) for order in by_order])
    noise = max(_noise_of_classes(by_class, means), _noise_of_samples(samples))
    return float(by_class.mean()), min(1.0, noise)


def _noise_of_classes(by_class: Floats, by_order: Floats) -> float:
    """Half-width of the interval of the mean, with classes and orders as random samples."""
    from scipy.stats import t

    parts = [
        (float(np.var(values, ddof=1)) / len(values), len(values) - 1)
        for values in (by_class, by_order)
        if len(values) > 1
    ]
    variance = sum(part for part, _ in parts)
    if not variance:
        return 0.0
    # Welch-Satterthwaite degrees of freedom.
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    return float(t.ppf(0.975, freedom)) * math.sqrt(variance)


def _noise_of_samples(samples: Sequence[Floats]) -> float:
    """Half-width of the interval if each sample could equally have favoured the other learner.

    McNemar's test with continuity correction; samples have their weights in the class mean.
    """
    weights = np.concatenate([np.abs(each) / (len(samples) * len(each)) for each in samples])
    return float(1.96 * np.sqrt(np.sum(weights**2)) + weights.max())
