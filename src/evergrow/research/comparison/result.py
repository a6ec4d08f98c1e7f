"""Measured results of a learner: one run, and the summary of all of its runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.comparison.learners import ComparedLearner

Floats = npt.NDArray[np.float64]


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
    """Measurements of one learner on one class order; NaN where nothing could be measured.

    Attributes
    ----------
    points : tuple
        The measurements at each number of classes.
    answers : tuple of str
        For each class, one digit per test sample: 1 if the final prediction is correct.
    forgetting : float
        Drop from a class's best accuracy to its final one, averaged over classes.
    seconds_per_update : float
        Mean seconds per update.
    cpu_seconds_per_update : float
        Mean processor time of all threads per update.
    last_seconds : float
        Seconds of the last update, or of the last retraining.
    answer_seconds : float
        Seconds per prediction, in large batches.
    n_bytes : int
        Bytes that must be stored to continue: the model, and the examples if it needs them.
    model_bytes : int
        Bytes of the model only.
    stopped_at : int or None
        Number of known classes when time ran out; None if the learner finished.
    time_limit : float
        The time limit in seconds.
    remarks : tuple of str
        Remarks for the reader.
    """

    points: tuple[Point, ...]
    answers: tuple[str, ...]
    forgetting: float
    seconds_per_update: float
    cpu_seconds_per_update: float
    last_seconds: float
    answer_seconds: float
    n_bytes: int
    model_bytes: int
    stopped_at: int | None
    time_limit: float
    remarks: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """Final accuracy over all test samples."""
        return self._last("accuracy")

    @property
    def class_mean(self) -> float:
        """Final accuracy, averaged over classes."""
        return self._last("class_mean")

    @property
    def newest(self) -> float:
        """Final accuracy of the newest classes, averaged over them."""
        return self._last("newest")

    def _last(self, name: str) -> float:
        finished = self.points and self.stopped_at is None
        return float(getattr(self.points[-1], name)) if finished else math.nan

    @property
    def class_accuracies(self) -> Floats:
        """Final accuracy of each class, sorted by class; NaN without test samples."""
        shares = [each.count("1") / len(each) if each else math.nan for each in self.answers]
        return np.array(shares, dtype=np.float64)

    def on_the_way(self, checkpoints: Sequence[int]) -> float:
        """Return the mean class accuracy, averaged over the checkpoints.

        NaN if a checkpoint was not reached; checkpoints without test samples do not count.
        """
        found = {point.n_classes: point.class_mean for point in self.points}
        if not all(n in found for n in checkpoints):
            return math.nan
        return mean_known([found[n] for n in checkpoints])

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_json`; raise a ``ValueError`` for damaged values."""
        try:
            points = tuple(Point(**point) for point in entry["points"])
            lists = {name: tuple(entry[name]) for name in ("answers", "remarks")}
            found = cls(**{**entry, "points": points, **lists})
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"a result is damaged: {error}") from error
        if not _is_sound(found):
            raise InvalidInputError("a result is damaged: a value has the wrong type")
        return found


_NUMBERS = [field.name for field in fields(Result) if field.type in ("int", "float")]


def _is_sound(found: Any) -> bool:
    """Return whether all values have the types that are written."""
    values = [getattr(found, name) for name in _NUMBERS]
    values += [value for point in found.points for value in vars(point).values()]
    return bool(
        all(isinstance(each, (int, float)) for each in values)
        and isinstance(found.stopped_at, (int, type(None)))
        and all(isinstance(each, str) for each in (*found.answers, *found.remarks))
        and not set("".join(found.answers)) - {"0", "1"}
        and (found.stopped_at is not None or (found.points and found.answers))
    )


def mean_known(values: Sequence[float] | Floats) -> float:
    """Return the mean without NaN values; NaN if there are no others.

    Examples
    --------
    >>> from evergrow.research.comparison.result import mean_known
    >>> mean_known([1.0, float("nan"), 0.5]), mean_known([])
    (0.75, nan)
    """
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


class _Mean:
    """An attribute of a standing: the mean of an attribute of its results."""

    def __init__(self, name: str, *, if_finished: bool = False) -> None:
        self._name, self._if_finished = name, if_finished

    def __get__(self, standing: Standing, owner: type[Standing]) -> float:
        if self._if_finished and not standing.finished:
            return math.nan
        return standing.mean(lambda result: getattr(result, self._name))


@dataclass(frozen=True)
class Standing:
    """The results of one learner over all class orders.

    Attributes
    ----------
    learner : ComparedLearner
        The learner.
    results : tuple of Result
        One result per class order.
    checkpoints : tuple of int
        Numbers of classes at which all learners are measured.
    problem : str
        Why nothing was measured; empty if something was.
    """

    learner: ComparedLearner
    results: tuple[Result, ...]
    checkpoints: tuple[int, ...]
    problem: str = ""

    # The class mean is the value by which learners are ranked.
    accuracy = _Mean("accuracy")
    class_mean = _Mean("class_mean")
    newest = _Mean("newest")
    forgetting = _Mean("forgetting")
    seconds = _Mean("seconds_per_update")
    cpu_seconds = _Mean("cpu_seconds_per_update")
    last_seconds = _Mean("last_seconds")
    answer_seconds = _Mean("answer_seconds")
    n_bytes = _Mean("n_bytes", if_finished=True)
    model_bytes = _Mean("model_bytes", if_finished=True)

    def mean(self, value: Callable[[Result], float]) -> float:
        """Return the mean of a value over the class orders; NaN without results."""
        return float(np.mean([value(result) for result in self.results] or [math.nan]))

    @property
    def way(self) -> str:
        """How the learner learns new classes."""
        return self.learner.way

    @property
    def finished(self) -> bool:
        """Whether it reached the end of the stream in every order."""
        return bool(self.results) and all(result.stopped_at is None for result in self.results)

    @property
    def chance(self) -> float:
        """Mean class accuracy of a constant prediction."""
        tested = sum(bool(each) for each in self.results[0].answers) if self.finished else 0
        return 1 / tested if tested else math.nan

    @property
    def beats_chance(self) -> bool:
        """Whether it finished and is better than a constant prediction."""
        return self.finished and self.class_mean > self.chance + 1e-9

    @property
    def deviation(self) -> float:
        """Standard deviation of the mean class accuracy over orders; NaN for one order."""
        found = [result.class_mean for result in self.results]
        return float(np.std(found, ddof=1)) if len(found) > 1 else math.nan

    @property
    def on_the_way(self) -> float:
        """Mean class accuracy, averaged over the checkpoints."""
        return self.mean(lambda result: result.on_the_way(self.checkpoints))

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
    def remarks(self) -> list[str]:
        """What a reader must know in addition to the numbers."""
        found = [self.learner.note, self.problem]
        found += [remark for result in self.results for remark in result.remarks]
        return [*dict.fromkeys(filter(None, found))]


def difference(a: Standing, b: Standing) -> tuple[float, float]:
    """Return by how much the class mean of ``a`` is higher, and how much may be chance.

    Both learners predicted the same test samples, and every class has the same weight. The second
    number is the larger of two half-widths of 95 % intervals: the variation between classes (and
    between orders, if there are several), from the spread of the differences, and the variation
    between test samples of these classes, from the samples that only one of the two predicted
    correctly.
    """
    by_order = [
        _sample_differences(one, other) for one, other in zip(a.results, b.results, strict=True)
    ]
    samples = [np.mean(each, axis=0) for each in zip(*by_order, strict=True)]
    by_class = np.array([each.mean() for each in samples])
    means = [float(np.mean([each.mean() for each in order])) for order in by_order]
    noise = max(_noise_of_classes(by_class, means), _noise_of_samples(samples))
    return float(by_class.mean()), min(1.0, noise)


def _sample_differences(one: Result, other: Result) -> list[Floats]:
    """For each tested class and sample: 1 if only one is correct, -1 if only the other is, or 0."""
    return [
        np.array([int(x) - int(y) for x, y in zip(mine, theirs, strict=True)], dtype=np.float64)
        for mine, theirs in zip(one.answers, other.answers, strict=True)
        if mine
    ]


def _noise_of_classes(by_class: Floats, by_order: Sequence[float]) -> float:
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
