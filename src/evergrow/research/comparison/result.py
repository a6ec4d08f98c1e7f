"""What was measured of a learner: one run, and all of its runs together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.research.comparison.contender import Contender

__all__ = ["Point", "Result", "Standing", "difference", "mean_known"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A learner at some number of classes; NaN where none of them has test samples."""

    n_classes: int
    accuracy: float
    """Share of right answers over all test samples, in which large classes weigh more."""
    class_mean: float
    """The mean over classes of the share of right answers: each class weighs the same."""
    newest: float
    """The same over the classes that came last."""


@dataclass(frozen=True)
class Result:
    """One learner through one order of the classes; NaN where nothing could be measured."""

    points: tuple[Point, ...]
    answers: tuple[str, ...]
    """Of each class, classes sorted, a digit for each test sample: 1 if it was right in the end."""
    forgetting: float
    """How far classes fell from the best they were, the mean over classes."""
    seconds_per_update: float
    cpu_seconds_per_update: float
    """Processor time of all threads, which other work on the machine hardly changes."""
    last_seconds: float
    """Seconds of the last update, or of the last retraining."""
    answer_seconds: float
    """Seconds per answer, asked for many at once."""
    n_bytes: int
    """All that must be kept to learn on: the model, and examples if it needs them."""
    model_bytes: int
    """What answers alone."""
    stopped_at: int | None
    """Classes it knew when its time was up; None if it came to the end."""
    time_limit: float
    remarks: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """Accuracy over all test samples in the end."""
        return self._last(lambda point: point.accuracy)

    @property
    def class_mean(self) -> float:
        """Mean accuracy of the classes in the end."""
        return self._last(lambda point: point.class_mean)

    @property
    def newest(self) -> float:
        """Mean accuracy of the classes that came last."""
        return self._last(lambda point: point.newest)

    def _last(self, value: Callable[[Point], float]) -> float:
        return value(self.points[-1]) if self.points and self.stopped_at is None else math.nan

    @property
    def class_accuracies(self) -> Floats:
        """Accuracy of each class in the end, classes sorted; NaN without test samples."""
        shares = [each.count("1") / len(each) if each else math.nan for each in self.answers]
        return np.array(shares, dtype=np.float64)

    def on_the_way(self, checkpoints: Sequence[int]) -> float:
        """Mean of the classes' mean over the points at which everybody is measured.

        NaN if one was not reached; points at which there is nothing to test do not count.
        """
        found = {point.n_classes: point.class_mean for point in self.points}
        if not all(n in found for n in checkpoints):
            return math.nan
        return mean_known([found[n] for n in checkpoints])

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_json`; a ``ValueError`` unless all of it is there as it should."""
        try:
            points = tuple(Point(**point) for point in entry["points"])
            lists = {name: tuple(entry[name]) for name in ("answers", "remarks")}
            found = cls(**{**entry, "points": points, **lists})
        except (KeyError, TypeError) as error:
            raise ValueError(f"a result is damaged: {error}") from error
        if not _is_sound(found):
            raise ValueError("a result is damaged: a value is of another type than was written")
        return found


_NUMBERS = (
    "forgetting",
    "seconds_per_update",
    "cpu_seconds_per_update",
    "last_seconds",
    "answer_seconds",
    "n_bytes",
    "model_bytes",
    "time_limit",
)


def _is_sound(found: Any) -> bool:
    """Whether values that were read are of the types that are written."""
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
    """The mean of what is no NaN; NaN of nothing.

    Examples
    --------
    >>> from evergrow.research.comparison.result import mean_known
    >>> mean_known([1.0, float("nan"), 0.5]), mean_known([])
    (0.75, nan)
    """
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


@dataclass(frozen=True)
class Standing:
    """A learner over all orders of the classes; ``problem`` says why there is nothing."""

    contender: Contender
    results: tuple[Result, ...]
    checkpoints: tuple[int, ...]
    problem: str = ""

    @property
    def finished(self) -> bool:
        """Whether it came to the end every time."""
        return bool(self.results) and all(result.stopped_at is None for result in self.results)

    def _mean(self, value: Callable[[Result], float]) -> float:
        return float(np.mean([value(result) for result in self.results] or [math.nan]))

    @property
    def accuracy(self) -> float:
        """Accuracy over all test samples in the end."""
        return self._mean(lambda result: result.accuracy)

    @property
    def class_mean(self) -> float:
        """Mean accuracy of the classes in the end, by which learners are ranked."""
        return self._mean(lambda result: result.class_mean)

    @property
    def chance(self) -> float:
        """The classes' mean of whoever always gives the same answer."""
        tested = sum(bool(each) for each in self.results[0].answers) if self.finished else 0
        return 1 / tested if tested else math.nan

    @property
    def knows_something(self) -> bool:
        """Whether it came to the end and is better than always giving the same answer."""
        return self.finished and self.class_mean > self.chance + 1e-9

    @property
    def deviation(self) -> float:
        """Standard deviation of the classes' mean over orders; NaN for one order."""
        found = [result.class_mean for result in self.results]
        return float(np.std(found, ddof=1)) if len(found) > 1 else math.nan

    @property
    def on_the_way(self) -> float:
        """Mean over the points at which everybody is measured."""
        return self._mean(lambda result: result.on_the_way(self.checkpoints))

    @property
    def newest(self) -> float:
        """Mean accuracy of the classes that came last."""
        return self._mean(lambda result: result.newest)

    @property
    def forgetting(self) -> float:
        """How far classes fell from the best they were."""
        return self._mean(lambda result: result.forgetting)

    @property
    def seconds(self) -> float:
        """Seconds of an update; of those who train anew, of one training."""
        return self._mean(lambda result: result.seconds_per_update)

    @property
    def cpu_seconds(self) -> float:
        """The same in processor time of all threads."""
        return self._mean(lambda result: result.cpu_seconds_per_update)

    @property
    def last_seconds(self) -> float:
        """Seconds of the last one."""
        return self._mean(lambda result: result.last_seconds)

    @property
    def answer_seconds(self) -> float:
        """Seconds per answer."""
        return self._mean(lambda result: result.answer_seconds)

    @property
    def n_bytes(self) -> float:
        """All that must be kept to learn on, in the end."""
        return self._mean(lambda result: result.n_bytes) if self.finished else math.nan

    @property
    def model_bytes(self) -> float:
        """What answers alone, in the end."""
        return self._mean(lambda result: result.model_bytes) if self.finished else math.nan

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The classes' mean over the number of classes, where every order could be measured."""
        found: dict[int, list[float]] = {}
        for result in self.results:
            for point in result.points:
                if not math.isnan(point.class_mean):
                    found.setdefault(point.n_classes, []).append(point.class_mean)
        n = len(self.results)
        return [(k, float(np.mean(v))) for k, v in sorted(found.items()) if len(v) == n]

    @property
    def remarks(self) -> list[str]:
        """What must be said beside the numbers, each once."""
        said = [self.contender.note, self.problem]
        said += [remark for result in self.results for remark in result.remarks]
        return [*dict.fromkeys(remark for remark in said if remark)]


def difference(a: Standing, b: Standing) -> tuple[float, float]:
    """By how much the classes' mean of ``a`` is higher, and how much chance may make.

    Both answered the same test samples, and every class weighs the same on both sides of it. The
    second number is the larger of two, each the half-width of a 95 % interval: what other classes
    would make, from the spread of the difference over classes (and over orders, where there are
    several), and what other test samples of these classes would make, from those that only one of
    the two answered rightly.
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
    """Of each class that was tested and each sample: 1, 0 or -1 as one, none or the other wins."""
    return [
        np.array([int(x) - int(y) for x, y in zip(mine, theirs, strict=True)], dtype=np.float64)
        for mine, theirs in zip(one.answers, other.answers, strict=True)
        if mine
    ]


def _noise_of_classes(by_class: Floats, by_order: Sequence[float]) -> float:
    """Half-width of the interval of the mean, classes and orders being drawn from many."""
    from scipy.stats import t

    parts = [
        (float(np.var(values, ddof=1)) / len(values), len(values) - 1)
        for values in (by_class, by_order)
        if len(values) > 1
    ]
    variance = sum(part for part, _ in parts)
    if not variance:
        return 0.0
    # Welch and Satterthwaite: few values tell little of how far they spread.
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    return float(t.ppf(0.975, freedom)) * math.sqrt(variance)


def _noise_of_samples(samples: Sequence[Floats]) -> float:
    """What is left to chance if each sample might as well have favoured the other learner.

    McNemar's test with its correction for steps, each sample weighing as much as it does in the
    mean over classes.
    """
    weights = np.concatenate([np.abs(each) / (len(samples) * len(each)) for each in samples])
    return float(1.96 * np.sqrt(np.sum(weights**2)) + weights.max())
