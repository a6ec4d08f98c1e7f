"""Which stream to follow and on which data, so that a comparison ends in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.comparison.contender import Contender
from evergrow.research.datasets import Dataset
from evergrow.research.streams import ClassStream

__all__ = ["Facts", "Plan", "check_data", "make_plan"]

Array = npt.NDArray[Any]

_N_UPDATES = 10
# Accuracy is measured at so many points of a stream, however many updates it has.
_N_POINTS = 11
# Those who train anew are measured at the first, a middle and the last point only.
_N_CHECKPOINTS = 3
# A subsample holds so many numbers: river takes tens of milliseconds for an example of a thousand.
_SAMPLE_VALUES, _QUICK_SAMPLE_VALUES = 256_000, 64_000
_SAMPLE_EXAMPLES, _SAMPLE_PER_CLASS = 2000, 10
_QUICK_CLASSES, _QUICK_PER_CLASS = 20, 20


@dataclass(frozen=True)
class Facts:
    """What is worth knowing of data before anybody learns them."""

    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    examples_per_class: float
    """The middle class's number of training examples."""
    largest_class: int
    """The largest class's number of them."""
    n_single: int
    """Classes with one training example."""
    n_untested: int
    """Classes without test examples."""
    scale_ratio: float
    """Standard deviation of the feature that varies most, over that of the middle one."""

    @classmethod
    def of(cls, data: Dataset) -> Facts:
        """Count."""
        _, counts = np.unique(data.y_train, return_counts=True)
        deviations = data.X_train.std(axis=0, dtype=np.float64)
        varying = deviations[deviations > 0]
        return cls(
            n_train=len(data.y_train),
            n_test=len(data.y_test),
            n_features=data.X_train.shape[1],
            n_classes=len(counts),
            examples_per_class=float(np.median(counts)),
            largest_class=int(counts.max()),
            n_single=int((counts == 1).sum()),
            n_untested=int((~np.isin(data.classes, data.y_test)).sum()),
            scale_ratio=float(varying.max() / np.median(varying)) if len(varying) else 1.0,
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """Data and stream of the comparison, and those of the one on a subsample."""

    data: Dataset
    stream: ClassStream
    points: tuple[int, ...]
    """Numbers of classes at which learners that grow are measured."""
    checkpoints: tuple[int, ...]
    """Those of them at which everybody is."""
    sample: Plan | None = None

    @property
    def n_classes(self) -> int:
        """Classes that are known in the end."""
        return self.points[-1]

    @property
    def has_updates(self) -> bool:
        """Whether anything comes after the first batch."""
        return len(self.points) > 1

    @property
    def test_counts(self) -> list[int]:
        """Test samples of each class, classes sorted."""
        return [int((self.data.y_test == label).sum()) for label in self.data.classes]

    def stream_for(self, contender: Contender) -> ClassStream:
        """The stream, measured where this learner is."""
        seldom = contender.way == "retrained"
        return replace(self.stream, measure_at=self.checkpoints if seldom else self.points)


def check_data(data: Dataset) -> None:
    """Refuse data on which nobody could be compared, saying why."""
    X, y = data.X_train, data.y_train
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{data.name!r} holds no matrix of features but {X.dtype} of shape {X.shape}; "
            "turn images into features first"
        )
    if len(data.classes) < 2:
        raise ValueError(f"{data.name!r} has {len(data.classes)} class; at least 2 are needed")
    if not np.isin(data.y_test, y).any():
        raise ValueError(f"{data.name!r} has no test samples of the classes it trains")
    for part in ("X_train", "X_test"):
        finite = np.isfinite(getattr(data, part)).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(
                f"{part} of {data.name!r} has values that are not finite, first in row {row}; "
                "leave such rows out or fill them in"
            )


def make_plan(
    data: Dataset,
    *,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    quick: bool = False,
) -> Plan:
    """Choose stream and subsample for some data.

    Parameters
    ----------
    data : Dataset
        Features and labels.
    initial : int, default=None
        Classes of the first batch; None for a tenth of them, at least 2, and 1 if there are but 2.
    chunk : int, default=None
        Classes of every later batch; None for about ten updates.
    seed : int, default=0
        Seed of the order of the classes.
    repetitions : int, default=1
        How many orders of the classes.
    quick : bool, default=False
        Take some classes and some examples of each only.

    Examples
    --------
    >>> from evergrow.research import digits, make_plan
    >>> make_plan(digits()).points
    (2, 3, 4, 5, 6, 7, 8, 9, 10)
    """
    if quick:
        chosen = np.random.default_rng(seed).permutation(data.classes)
        some = data.of_classes(chosen[: max(_QUICK_CLASSES, initial or 0)])
        data = some.per_class(_QUICK_PER_CLASS, _QUICK_PER_CLASS)
    check_data(data)
    stream = _stream(len(data.classes), initial, chunk, seed, repetitions)
    points = _spread(stream.sizes(len(data.classes)), _N_POINTS)
    plan = Plan(data, stream, points, _checkpoints(points))
    return replace(plan, sample=_sample_plan(data, seed, repetitions, quick))


def _sample_plan(data: Dataset, seed: int, repetitions: int, quick: bool) -> Plan:
    """A few classes with a few examples each, the same for everybody who is shown them."""
    values = _QUICK_SAMPLE_VALUES if quick else _SAMPLE_VALUES
    n_examples = int(np.clip(values // data.X_train.shape[1], 40, _SAMPLE_EXAMPLES))
    n_classes = min(len(data.classes), max(2, n_examples // _SAMPLE_PER_CLASS))
    # Classes without test samples say nothing, and few classes of a subsample may be all of them.
    tested = data.classes[np.isin(data.classes, data.y_test)]
    chosen = np.random.default_rng(seed).permutation(tested)[:n_classes]
    per_class = max(1, n_examples // n_classes)
    small = data.of_classes(chosen).per_class(per_class, per_class)
    if len(small.classes) < 2:
        small = data.per_class(per_class, per_class)
    n = len(small.classes)
    stream = _stream(n, None, max(1, n // 4), seed, repetitions)
    points = _spread(stream.sizes(n), _N_CHECKPOINTS)
    return Plan(small, stream, points, _checkpoints(points))


def _checkpoints(points: Sequence[int]) -> tuple[int, ...]:
    """Where everybody is measured: most who train anew cannot tell one class from nothing."""
    return _spread([n for n in points if n > 1], _N_CHECKPOINTS)


def _stream(
    n_classes: int, initial: int | None, chunk: int | None, seed: int, repetitions: int
) -> ClassStream:
    # Something must be left to come, or nobody could be seen to learn it.
    first = min(max(2, n_classes // 10), n_classes - 1) if initial is None else initial
    step = max(1, -(-(n_classes - first) // _N_UPDATES)) if chunk is None else chunk
    return ClassStream(first, step, repetitions=repetitions, random_state=seed)


def _spread(sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """At most ``n`` of some sizes, the first and the last among them."""
    places = np.unique(np.linspace(0, len(sizes) - 1, min(n, len(sizes))).round().astype(int))
    return tuple(sizes[place] for place in places.tolist())
