"""The data and the stream of a comparison, chosen so that it takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergrow.compare.data import Dataset
from evergrow.compare.learners import ComparedLearner
from evergrow.compare.stream import ClassStream
from evergrow.foundation.errors import InvalidInputError

_N_UPDATES = 10
# Accuracy is measured at this many points of a stream, whatever the number of updates.
_N_POINTS = 11
# Retrained learners are measured only at the first, a middle and the last point.
_N_CHECKPOINTS = 3
# Numbers in a subsample: river takes tens of milliseconds for an example of a thousand features.
_SAMPLE_VALUES, _QUICK_SAMPLE_VALUES = 256_000, 64_000
_SAMPLE_EXAMPLES, _SAMPLE_PER_CLASS = 2000, 10
_QUICK_CLASSES, _QUICK_PER_CLASS = 20, 20


@dataclass(frozen=True)
class Protocol:
    """How classes arrive: how many at a time, how mixed, and with how many examples."""

    meaning: str = ""
    """What a reader must know besides the numbers of classes, as sentences."""
    single: bool = False
    """Whether every update brings one class."""
    blur: float = 0.0
    disjoint: float = 0.0
    imbalance: float = 1.0


PROTOCOLS = {
    "batches": Protocol(),
    "single": Protocol(single=True),
    "blurry": Protocol(
        "Half of the classes came whole; of every other class 30% of the examples came with later "
        "batches. Class sizes fall geometrically: the last keeps a tenth of its training examples.",
        blur=0.3,
        disjoint=0.5,
        imbalance=10.0,
    ),
}


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
    protocol: str
    sample: Setup | None = None
    """The same for a subsample, on which slow learners are measured."""

    def stream_for(self, learner: ComparedLearner) -> ClassStream:
        """Return the stream with the points at which a learner is measured."""
        retrained = learner.way == "retrained"
        return replace(self.stream, measure_at=self.checkpoints if retrained else self.points)


def make_setup(
    data: Dataset,
    *,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    quick: bool = False,
    protocol: str = "batches",
) -> Setup:
    """Create the stream of a comparison; the parameters are those of ``compare``.

    Examples
    --------
    >>> from evergrow.compare import load_dataset
    >>> from evergrow.compare.setup import make_setup
    >>> make_setup(load_dataset("digits")).points
    (2, 3, 4, 5, 6, 7, 8, 9, 10)
    """
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {[*PROTOCOLS]}, got {protocol!r}")
    arrival = PROTOCOLS[protocol]
    if arrival.single and not (initial is None and chunk is None):
        raise InvalidInputError(
            f"the protocol {protocol!r} brings two classes and then one at a time: leave initial "
            "and chunk at None"
        )
    if quick:
        chosen = np.random.default_rng(seed).permutation(data.classes)
        some = data.of_classes(chosen[: max(_QUICK_CLASSES, initial or 0)])
        data = some.per_class(_QUICK_PER_CLASS, _QUICK_PER_CLASS)
    _check(data)
    if arrival.imbalance > 1:
        data = data.long_tailed(arrival.imbalance, random_state=seed)
    whole = _setup(data, protocol, _N_POINTS, initial, chunk, seed, repetitions)
    small = _subsample(data, seed, _QUICK_SAMPLE_VALUES if quick else _SAMPLE_VALUES)
    step = max(1, len(small.classes) // 4)
    sample = _setup(small, protocol, _N_CHECKPOINTS, None, step, seed, repetitions)
    return replace(whole, sample=sample)


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


def _setup(
    data: Dataset,
    protocol: str,
    n_points: int,
    initial: int | None,
    chunk: int | None,
    seed: int,
    repetitions: int,
) -> Setup:
    arrival, n_classes = PROTOCOLS[protocol], len(data.classes)
    share = 2 if arrival.single else max(2, n_classes // 10)
    # At least one class must come later, or there is no update to measure.
    first = min(share, n_classes - 1) if initial is None else initial
    step = max(1, -(-(n_classes - first) // _N_UPDATES)) if chunk is None else chunk
    stream = ClassStream(
        first,
        1 if arrival.single else step,
        repetitions=repetitions,
        blur=arrival.blur,
        disjoint=arrival.disjoint,
        random_state=seed,
    )
    points = _spread(stream.sizes(n_classes), n_points)
    # Most retrained learners cannot fit a single class.
    checkpoints = _spread([n for n in points if n > 1], _N_CHECKPOINTS)
    return Setup(data, stream, points, checkpoints, protocol)


def _spread(sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """Select at most ``n`` sizes, with the first and the last."""
    places = np.unique(np.linspace(0, len(sizes) - 1, min(n, len(sizes))).round().astype(int))
    return tuple(sizes[place] for place in places.tolist())
