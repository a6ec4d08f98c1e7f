"""The data and the stream of a comparison, chosen so that it takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergrow.compare.data import Dataset
from evergrow.compare.learners import ComparedLearner
from evergrow.compare.stream import ClassStream
from evergrow.foundation.errors import InvalidInputError

PROTOCOLS = ("batches", "single", "blurry")
_N_UPDATES = 10
# Accuracy is measured at this many points of a stream, whatever the number of updates.
_N_POINTS = 11
# Retrained learners are measured only at the first, a middle and the last point.
_N_CHECKPOINTS = 3
# Numbers in a subsample: river takes tens of milliseconds for an example of a thousand features.
_SAMPLE_VALUES, _QUICK_SAMPLE_VALUES = 256_000, 64_000
_SAMPLE_EXAMPLES, _SAMPLE_PER_CLASS = 2000, 10
_QUICK_CLASSES, _QUICK_PER_CLASS = 20, 20
# How many times as many of its examples the first class of a blurry stream keeps as the last one.
_IMBALANCE = 10.0


@dataclass(frozen=True)
class Facts:
    """Statistics of a data set that matter for the choice of a learner."""

    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    examples_per_class: float
    """Median number of training examples per class."""
    largest_class: int
    """Number of training examples of the largest class."""
    n_single: int
    """Number of classes with one training example."""
    n_untested: int
    """Number of classes without test examples."""
    scale_ratio: float
    """Largest standard deviation of a feature divided by the median one."""

    @classmethod
    def of(cls, data: Dataset) -> Facts:
        """Compute the statistics of a data set."""
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
class Setup:
    """Data and stream of a comparison."""

    data: Dataset
    stream: ClassStream
    points: tuple[int, ...]
    """Numbers of classes at which incremental learners are measured."""
    checkpoints: tuple[int, ...]
    """Numbers of classes at which all learners are measured."""

    def stream_for(self, learner: ComparedLearner, repetition: int) -> ClassStream:
        """Return the stream in another order, with the points at which a learner is measured."""
        return replace(
            self.stream,
            measure_at=self.checkpoints if learner.way == "retrained" else self.points,
            random_state=self.stream.random_state + repetition,
        )


def make_setups(
    data: Dataset,
    *,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    quick: bool = False,
    protocol: str = "batches",
) -> tuple[Setup, Setup]:
    """Return the setup on all data, and that on a subsample for slow learners.

    The parameters are those of ``compare``.
    """
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {[*PROTOCOLS]}, got {protocol!r}")
    single, blurry = protocol == "single", protocol == "blurry"
    if single and not (initial is None and chunk is None):
        raise InvalidInputError(
            f"the protocol {protocol!r} brings two classes and then one at a time: leave initial "
            "and chunk at None"
        )
    if quick:
        chosen = np.random.default_rng(seed).permutation(data.classes)
        some = data.of_classes(chosen[: max(_QUICK_CLASSES, initial or 0)])
        data = some.per_class(_QUICK_PER_CLASS, _QUICK_PER_CLASS)
    _check(data)
    if blurry:
        data = data.long_tailed(_IMBALANCE, random_state=seed)

    def make(data: Dataset, initial: int | None, chunk: int | None, n_points: int) -> Setup:
        n_classes = len(data.classes)
        share = 2 if single else max(2, n_classes // 10)
        # At least one class must come later, or there is no update to measure.
        first = min(share, n_classes - 1) if initial is None else initial
        step = max(1, -(-(n_classes - first) // _N_UPDATES)) if chunk is None else chunk
        stream = ClassStream(
            first,
            1 if single else step,
            blur=0.3 if blurry else 0.0,
            disjoint=0.5 if blurry else 0.0,
            random_state=seed,
        )
        points = _spread(stream.sizes(n_classes), n_points)
        # Most retrained learners cannot fit a single class.
        return Setup(data, stream, points, _spread([n for n in points if n > 1], _N_CHECKPOINTS))

    small = _subsample(data, seed, _QUICK_SAMPLE_VALUES if quick else _SAMPLE_VALUES)
    step = max(1, len(small.classes) // 4)
    return make(data, initial, chunk, _N_POINTS), make(small, None, step, _N_CHECKPOINTS)


def _check(data: Dataset) -> None:
    """Raise ``InvalidInputError`` for data on which learners cannot be compared."""
    X = data.X_train
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{data.name!r} must hold a matrix of features, got {X.dtype} of shape {X.shape}; "
            "turn images into features first"
        )
    if len(data.classes) < 2:
        raise InvalidInputError(
            f"{data.name!r} has {len(data.classes)} class; at least 2 are needed"
        )
    if not np.isin(data.y_test, data.y_train).any():
        raise InvalidInputError(f"{data.name!r} has no test samples of its training classes")
    for part in ("X_train", "X_test"):
        finite = np.isfinite(getattr(data, part)).all(axis=1)
        if not finite.all():
            raise InvalidInputError(
                f"{part} of {data.name!r} has values that are not finite, first in row "
                f"{int(np.argmin(finite))}; remove such rows or fill in the values"
            )


def _subsample(data: Dataset, seed: int, n_values: int) -> Dataset:
    """Select a few classes with a few examples each, the same for all learners."""
    n_examples = int(np.clip(n_values // data.X_train.shape[1], 40, _SAMPLE_EXAMPLES))
    n_classes = min(len(data.classes), max(2, n_examples // _SAMPLE_PER_CLASS))
    # A small subsample could otherwise have only classes without test samples.
    tested = data.classes[np.isin(data.classes, data.y_test)]
    chosen = np.random.default_rng(seed).permutation(tested)[:n_classes]
    per_class = max(1, n_examples // n_classes)
    small = data.of_classes(chosen).per_class(per_class, per_class)
    return small if len(small.classes) > 1 else data.per_class(per_class, per_class)


def _spread(sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """Select at most ``n`` sizes, with the first and the last."""
    places = np.unique(np.linspace(0, len(sizes) - 1, min(n, len(sizes))).round().astype(int))
    return tuple(sizes[place] for place in places.tolist())
