"""Measure a learner on a stream within a time limit, and summarise what was measured."""

from __future__ import annotations

import math
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import joblib
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from evergrow.compare.data import Array
from evergrow.compare.learners import ComparedLearner
from evergrow.compare.setup import Setup
from evergrow.compare.stream import N_NEWEST, Learner, Retrained, follow, forgetting, model_bytes
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


def duration(seconds: float) -> str:
    """Format a duration with two digits."""
    return MISSING if math.isnan(seconds) else format_in_units(seconds, _TIMES)


def size(n_bytes: float) -> str:
    """Format a number of bytes with two digits."""
    return MISSING if math.isnan(n_bytes) else format_size(n_bytes)


def _mean_known(values: Sequence[float] | Floats) -> float:
    """Return the mean without NaN values; NaN if there are no others."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def shorten(text: str, length: int) -> str:
    """Return a text in one line, cut between two words."""
    return textwrap.shorten(text, length, placeholder="\N{HORIZONTAL ELLIPSIS}")


# --- One run


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

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild from ``asdict``."""
        points = tuple(Point(**point) for point in entry["points"])
        lists = {name: tuple(entry[name]) for name in ("answers", "remarks")}
        return cls(**{**entry, "points": points, **lists})


class _OutOfTimeError(Exception):
    """Time ran out; measurements so far are valid."""


class _TimedLearner:
    """A learner that accepts no further batch after its time limit."""

    def __init__(self, learner: Learner, time_limit: float) -> None:
        self.learner = learner
        self.answer_seconds = math.nan
        self.predicted: Array = np.array([])
        self._time_limit = time_limit
        self._began = time.perf_counter()
        self._n_rows = 0
        self._trained_rows, self._training_seconds = 0, 0.0

    @property
    def _spent(self) -> float:
        return time.perf_counter() - self._began

    def partial_fit(self, X: Any, y: Any) -> None:
        if self._n_rows and self._spent > self._time_limit:
            raise _OutOfTimeError
        self.learner.partial_fit(X, y)
        self._n_rows += len(y)

    def predict(self, X: Any) -> Array:
        if isinstance(self.learner, Retrained) and self.learner.model is None:
            self._train(X[:1])
        start = time.perf_counter()
        self.predicted = np.asarray(self.learner.predict(X))
        # A single prediction is part of training.
        if len(X) > 1:
            self.answer_seconds = (time.perf_counter() - start) / len(X)
        return self.predicted

    def _train(self, row: Array) -> None:
        # Training cannot be interrupted: if it would take too long, it is not started.
        if self._trained_rows:
            expected = self._training_seconds * self._n_rows / self._trained_rows
            if self._spent + expected > self._time_limit:
                raise _OutOfTimeError
        start = time.perf_counter()
        self.learner.predict(row)
        self._training_seconds = time.perf_counter() - start
        self._trained_rows = self._n_rows


def measure(
    learner: ComparedLearner,
    setup: Setup,
    repetition: int = 0,
    *,
    n_jobs: int = -1,
    time_limit: float = math.inf,
) -> Result:
    """Train and test a learner on one class order, whose number also changes its seed."""
    data, stream = setup.data, setup.stream_for(learner, repetition)
    seed = stream.random_state
    retrained = learner.way == "retrained"
    if retrained:
        # Import the package before the clock starts.
        learner.build(seed, n_jobs)
    timed = _TimedLearner(learner.create(seed, n_jobs, data.classes), time_limit)
    measured = []
    finished = False
    with (
        threadpool_limits(joblib.effective_n_jobs(n_jobs)),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            ask: Literal["always", "measured"] = "measured" if retrained else "always"
            for each in follow(timed, data, stream, ask=ask):
                measured.append(each)  # noqa: PERF402
            finished = True
        except _OutOfTimeError:
            pass
    y = data.y_test[np.isin(data.y_test, data.classes)]
    right = np.where(timed.predicted == y, "1", "0") if finished else y
    n_bytes, alone = _stored_bytes(timed.learner, learner)
    # Retrained learners train only where they are measured, also the first time.
    sizes = [each.n_classes for each in measured]
    known = sizes if retrained else stream.sizes(len(data.classes))
    count = known.index(sizes[-1]) if sizes else 0
    trained = bool(sizes) and (retrained or count > 0)
    # More points would raise forgetting, so that it is taken at shared ones; one point shows none.
    shared = [each for each in measured if each.n_classes in setup.checkpoints]
    compared = finished and len(shared) > 1
    shares = [each.class_accuracies for each in measured]
    warned = {str(each.message).partition(". ")[0].rstrip(".") for each in caught}
    return Result(
        points=tuple(
            Point(each.n_classes, each.accuracy, _mean_known(of), _mean_known(of[-N_NEWEST:]))
            for each, of in zip(measured, shares, strict=True)
        ),
        answers=tuple("".join(right[y == label]) for label in data.classes) if finished else (),
        forgetting=_mean_known(forgetting(shared)) if compared else math.nan,
        seconds_per_update=_per_update([m.seconds for m in measured], count, retrained),
        cpu_seconds_per_update=_per_update([m.cpu_seconds for m in measured], count, retrained),
        last_seconds=measured[-1].last_seconds if trained else math.nan,
        answer_seconds=timed.answer_seconds,
        n_bytes=n_bytes,
        model_bytes=alone,
        stopped_at=None if finished else max(sizes, default=0),
        time_limit=time_limit,
        remarks=tuple(sorted(f"warned: {shorten(text, 100)}" for text in warned)),
    )


def _per_update(totals: list[float], count: int, retrained: bool) -> float:
    """Return the mean time after the first batch, whose size the user chose.

    A learner that was retrained only once was trained on everything.
    """
    if count > 0:
        return (totals[-1] - totals[0]) / count
    return totals[-1] if totals and retrained else math.nan


def _stored_bytes(learner: Any, compared: ComparedLearner) -> tuple[int, int]:
    """Return the bytes that must be stored to continue learning, and those of the model."""
    if isinstance(learner, Retrained):
        if learner.model is None:
            return model_bytes(learner), 0
        alone = model_bytes(learner.model)
        # Examples inside the model need not be stored a second time.
        return (alone if compared.holds_examples else model_bytes(learner)), alone
    model = getattr(learner, "model", learner)
    if not hasattr(model, "save"):
        return (model_bytes(model),) * 2
    # The file has no caches.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        return (path.stat().st_size,) * 2


# --- All runs of a learner


@dataclass(frozen=True)
class Standing:
    """The results of one learner over all class orders, one per order.

    ``standing[name]`` is the mean of a measured value over the orders, by its name in the files.
    """

    learner: ComparedLearner
    results: tuple[Result, ...]
    checkpoints: tuple[int, ...]
    problem: str = ""
    """Why nothing was measured; empty if something was."""

    def __getitem__(self, name: str) -> float:
        return float(np.mean(self._values(name) or [math.nan]))

    def _values(self, name: str) -> list[float]:
        """Return a value for each order; NaN where it was not reached."""
        if name == "on_the_way":
            reached = [{p.n_classes: p.class_mean for p in each.points} for each in self.results]
            # Checkpoints without test samples do not count.
            return [
                _mean_known([found.get(n, math.nan) for n in self.checkpoints])
                if {*self.checkpoints} <= {*found}
                else math.nan
                for found in reached
            ]
        if name in ("accuracy", "class_mean", "newest"):
            return [
                getattr(each.points[-1], name) if each.stopped_at is None else math.nan
                for each in self.results
            ]
        if name in ("bytes", "model_bytes") and not self.finished:
            return []
        attribute = "n_bytes" if name == "bytes" else name
        return [getattr(each, attribute) for each in self.results]

    @property
    def finished(self) -> bool:
        """Whether it reached the end of the stream in every order."""
        return bool(self.results) and all(result.stopped_at is None for result in self.results)

    @property
    def beats_chance(self) -> bool:
        """Whether it finished and is better than a constant prediction."""
        tested = sum(bool(each) for each in self.results[0].answers) if self.finished else 0
        return tested > 0 and self["class_mean"] > 1 / tested + 1e-9

    @property
    def deviation(self) -> float:
        """Standard deviation of the mean class accuracy over orders; NaN for one order."""
        found = self._values("class_mean")
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


_WAYS = {"grows": "grows", "told": "knew all classes", "retrained": "retrained"}


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
        return standing.learner.way if self.name == "way" else standing[self.name]

    def text(self, standing: Standing) -> str:
        """The value for people."""
        if self.name == "way":
            return _WAYS[standing.learner.way]
        text = self.format(standing[self.name])
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


# --- Differences that may be chance


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
