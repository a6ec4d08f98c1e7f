"""Classes that come one after another: growing a forest, and training it anew each time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Array, Split
from benchmarks.measure import THREADS
from benchmarks.peers import ncm_forest
from evergrow import NCMForestClassifier

__all__ = [
    "ORDER_SEEDS",
    "Meter",
    "Outcome",
    "Schedule",
    "Stage",
    "Stream",
    "grow",
    "last",
    "mean_outcome",
    "retrain",
    "stream_of",
]

# One seed per random order of the classes; the forests grown in that order take it too.
ORDER_SEEDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)

# The accuracy over all classes hides how badly the latest ones are known.
N_NEWEST = 5


@dataclass(frozen=True)
class Stream:
    """A data set whose classes come in a given order."""

    split: Split
    order: Array
    seed: int

    def batch(self, first: int, end: int) -> tuple[Array, Array]:
        """Training samples of the classes at these places of the order."""
        rows = np.flatnonzero(np.isin(self.split.y, self.order[first:end]))
        return self.split.X[rows], self.split.y[rows]

    def accuracy(self, forest: Any, first: int, end: int) -> float:
        """Accuracy on the test samples of the classes at these places."""
        rows = np.flatnonzero(np.isin(self.split.y_test, self.order[first:end]))
        return float(forest.score(self.split.X_test[rows], self.split.y_test[rows]))

    def test_rows(self, end: int) -> Array:
        """Test samples of the first classes."""
        return self.split.X_test[np.isin(self.split.y_test, self.order[:end])]


def stream_of(split: Split, seed: int, n_classes: int) -> Stream:
    """Some classes of a data set in random order."""
    classes = np.unique(split.y)
    order = np.random.default_rng(seed).permutation(classes)[:n_classes]
    return Stream(split, order, seed)


@dataclass(frozen=True)
class Schedule:
    """How many classes a forest begins with, and how many come at a time."""

    initial: int
    step: int = 1

    def ends(self, n_classes: int) -> list[int]:
        """Numbers of classes known after each step."""
        return [*range(self.initial, n_classes, self.step), n_classes]


@dataclass
class Meter:
    """Processor time of all threads, and distances computed, inside training calls alone."""

    seconds: float = 0.0
    n_distances: int = 0

    def fit(self, forest: Any, batch: tuple[Array, Array]) -> None:
        """Train from scratch."""
        self._measured(forest, forest.fit, batch)

    def update(self, forest: Any, batch: tuple[Array, Array]) -> None:
        """Add samples."""
        self._measured(forest, forest.partial_fit, batch)

    def _measured(self, forest: Any, work: Any, batch: tuple[Array, Array]) -> None:
        start = time.process_time()
        work(*batch)
        self.seconds += time.process_time() - start
        self.n_distances += forest.update_report_.n_comparisons


@dataclass(frozen=True)
class Outcome:
    """What a forest knows at some number of classes, and what training cost until then."""

    n_classes: int
    accuracy: float
    newest: float
    seconds: float
    n_distances: float
    comparisons: float

    def relative_to(self, baseline: Outcome) -> Outcome:
        """Everything as a share of the baseline's."""
        return Outcome(
            self.n_classes,
            self.accuracy / baseline.accuracy,
            self.newest / baseline.newest,
            self.seconds / baseline.seconds,
            self.n_distances / baseline.n_distances,
            self.comparisons / baseline.comparisons,
        )


@dataclass(frozen=True)
class Stage:
    """A forest after one step. The next step changes it: measure it before."""

    stream: Stream
    forest: NCMForestClassifier
    n_classes: int
    meter: Meter

    def outcome(self) -> Outcome:
        """Accuracy and cost so far."""
        n = self.n_classes
        return Outcome(
            n,
            self.stream.accuracy(self.forest, 0, n),
            self.stream.accuracy(self.forest, max(0, n - N_NEWEST), n),
            self.meter.seconds,
            self.meter.n_distances,
            self.forest.comparisons(self.stream.test_rows(n)),
        )


def grow(stream: Stream, schedule: Schedule, **parameters: Any) -> Iterator[Stage]:
    """Train on the first classes, then add the others step by step."""
    meter, known = Meter(), 0
    forest = ncm_forest(THREADS, random_state=stream.seed, **parameters)
    for end in schedule.ends(len(stream.order)):
        if known:
            meter.update(forest, stream.batch(known, end))
        else:
            meter.fit(forest, stream.batch(0, end))
        known = end
        yield Stage(stream, forest, known, meter)


def retrain(stream: Stream, schedule: Schedule) -> Iterator[Stage]:
    """Train from scratch on everything seen so far at every step: the baseline."""
    meter = Meter()
    for end in schedule.ends(len(stream.order)):
        forest = ncm_forest(THREADS, random_state=stream.seed)
        meter.fit(forest, stream.batch(0, end))
        yield Stage(stream, forest, end, meter)


def last(stages: Iterator[Stage]) -> Outcome:
    """Where it ends."""
    return deque(stages, maxlen=1).pop().outcome()


def mean_outcome(outcomes: list[Outcome]) -> Outcome:
    """Mean over class orders."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(outcome, name) for outcome in outcomes]))

    names = ("accuracy", "newest", "seconds", "n_distances", "comparisons")
    return Outcome(outcomes[0].n_classes, *(mean(name) for name in names))
