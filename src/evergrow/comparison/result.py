"""What was measured of a learner: one run, and all of its runs together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.comparison.contender import Contender

__all__ = ["Point", "Result", "Standing", "difference"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A learner at some number of classes."""

    n_classes: int
    accuracy: float
    newest: float


@dataclass(frozen=True)
class Result:
    """One learner through one order of the classes; NaN where nothing could be measured."""

    points: tuple[Point, ...] = ()
    class_accuracies: tuple[float, ...] = ()
    """Accuracy of each class in the end, classes sorted."""
    forgetting: float = math.nan
    """How far classes fell from the best they were, the mean over classes."""
    seconds_per_update: float = math.nan
    cpu_seconds_per_update: float = math.nan
    """Processor time of all threads, which other work on the machine hardly changes."""
    last_seconds: float = math.nan
    """Seconds of the last update, or of the last retraining."""
    answer_seconds: float = math.nan
    """Seconds per answer, asked for many at once."""
    n_bytes: int = 0
    """All that must be kept to learn on: the model, and examples if it needs them."""
    model_bytes: int = 0
    """What answers alone."""
    stopped_at: int | None = None
    """Classes it knew when its time was up; None if it came to the end."""
    time_limit: float = math.inf
    remarks: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """Accuracy over all classes in the end."""
        return self.points[-1].accuracy if self.points and self.stopped_at is None else math.nan

    @property
    def newest(self) -> float:
        """Accuracy over the classes that came last."""
        return self.points[-1].newest if self.points and self.stopped_at is None else math.nan

    def mean_accuracy(self, checkpoints: Sequence[int]) -> float:
        """Mean over the points at which everybody is measured; NaN if one is missing."""
        found = {point.n_classes: point.accuracy for point in self.points}
        return float(np.mean([found.get(n, math.nan) for n in checkpoints]))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_json`."""
        points = tuple(Point(**point) for point in entry["points"])
        lists = {name: tuple(entry[name]) for name in ("class_accuracies", "remarks")}
        return cls(**{**entry, "points": points, **lists})


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
        """Accuracy over all classes in the end."""
        return self._mean(lambda result: result.accuracy)

    @property
    def deviation(self) -> float:
        """Standard deviation of it over orders; NaN for one order."""
        found = [result.accuracy for result in self.results]
        return float(np.std(found, ddof=1)) if len(found) > 1 else math.nan

    @property
    def mean_accuracy(self) -> float:
        """Mean over the points at which everybody is measured."""
        return self._mean(lambda result: result.mean_accuracy(self.checkpoints))

    @property
    def newest(self) -> float:
        """Accuracy over the classes that came last."""
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
        """Accuracy over the number of classes, mean over orders where all were measured."""
        found: dict[int, list[float]] = {}
        for result in self.results:
            for point in result.points:
                found.setdefault(point.n_classes, []).append(point.accuracy)
        n = len(self.results)
        return [(k, float(np.mean(v))) for k, v in sorted(found.items()) if len(v) == n]

    @property
    def remarks(self) -> list[str]:
        """What must be said beside the numbers, each once."""
        said = [self.contender.note, self.problem]
        said += [remark for result in self.results for remark in result.remarks]
        return [*dict.fromkeys(remark for remark in said if remark)]


def difference(a: Standing, b: Standing) -> tuple[float, float]:
    """How much more accurate ``a`` is, and how large a difference chance may make.

    Both answered the same test samples, so classes are compared one by one: twice the standard
    error of the mean difference over classes, and over orders where there are several.
    """
    pairs = [
        np.subtract(one.class_accuracies, other.class_accuracies)
        for one, other in zip(a.results, b.results, strict=True)
    ]
    by_class = np.nanmean(np.array(pairs), axis=0) if len(pairs) > 1 else pairs[0]
    known = by_class[~np.isnan(by_class)]
    variance = known.var(ddof=1) / len(known) if len(known) > 1 else math.inf
    if len(pairs) > 1:
        by_order = [
            one.accuracy - other.accuracy for one, other in zip(a.results, b.results, strict=True)
        ]
        variance += float(np.var(by_order, ddof=1)) / len(by_order)
    return a.accuracy - b.accuracy, 2 * math.sqrt(variance)
