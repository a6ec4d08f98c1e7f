"""The stream and the data of a comparison, chosen so that it takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.comparison.learners import ComparedLearner
from evergrow.research.datasets import Dataset
from evergrow.research.streams import ClassStream

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
    """Statistics of a data set that matter for the choice of a learner.

    Attributes
    ----------
    n_train : int
        Number of training examples.
    n_test : int
        Number of test examples.
    n_features : int
        Number of features.
    n_classes : int
        Number of classes.
    examples_per_class : float
        Median number of training examples per class.
    largest_class : int
        Number of training examples of the largest class.
    n_single : int
        Number of classes with one training example.
    n_untested : int
        Number of classes without test examples.
    scale_ratio : float
        Largest standard deviation of a feature divided by the median one.
    """

    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    examples_per_class: float
    largest_class: int
    n_single: int
    n_untested: int
    scale_ratio: float

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
class ComparisonSetup:
    """Data and stream of a comparison; :func:`make_setup` creates it.

    Attributes
    ----------
    data : Dataset
        The data set.
    stream : ClassStream
        The stream of classes.
    points : tuple of int
        Numbers of classes at which incremental learners are measured.
    checkpoints : tuple of int
        Numbers of classes at which all learners are measured.
    protocol : str
        Name of the protocol.
    sample : ComparisonSetup or None
        The same for a subsample, on which slow learners are measured.
    """

    data: Dataset
    stream: ClassStream
    points: tuple[int, ...]
    checkpoints: tuple[int, ...]
    protocol: str = "batches"
    sample: ComparisonSetup | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes at the end."""
        return self.points[-1]

    @property
    def has_updates(self) -> bool:
        """Whether any batch follows the first one."""
        return len(self.points) > 1

    @property
    def test_counts(self) -> list[int]:
        """Number of test samples of each class, sorted by class."""
        return [int((self.data.y_test == label).sum()) for label in self.data.classes]

    def stream_for(self, learner: ComparedLearner) -> ClassStream:
        """Return the stream with the points at which a learner is measured."""
        retrained = learner.way == "retrained"
        return replace(self.stream, measure_at=self.checkpoints if retrained else self.points)


def check_data(data: Dataset) -> None:
    """Raise ``InvalidInputError`` for data on which learners cannot be compared."""
    X, y = data.X_train, data.y_train
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{data.name!r} must hold a matrix of features, got {X.dtype} of shape {X.shape}; "
            "turn images into features first"
        )
    if len(data.classes) < 2:
        raise InvalidInputError(
            f"{data.name!r} has {len(data.classes)} class; at least 2 are needed"
        )
    if not np.isin(data.y_test, y).any():
        raise InvalidInputError(f"{data.name!r} has no test samples of its training classes")
    for part in ("X_train", "X_test"):
        finite = np.isfinite(getattr(data, part)).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InvalidInputError(
                f"{part} of {data.name!r} has values that are not finite, first in row {row}; "
                "remove such rows or fill in the values"
            )


def make_setup(
    data: Dataset,
    *,
    initial: int | None = None,
    chunk: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    quick: bool = False,
    protocol: str = "batches",
) -> ComparisonSetup:
    """Create the stream of a comparison for a data set.

    Parameters
    ----------
    data : Dataset
        Features and labels.
    initial : int, default=None
        Number of classes in the first batch. None is a tenth, and at least 2, or 1 if there are
        only 2.
    chunk : int, default=None
        Number of classes in every later batch. None makes about ten updates.
    seed : int, default=0
        Random seed of the class order.
    repetitions : int, default=1
        Number of class orders.
    quick : bool, default=False
        Whether to use only some classes and some examples of each.
    protocol : {"batches", "single", "blurry"}, default="batches"
        How classes arrive: several at a time, one at a time, or several at a time with old and new
        classes mixed and of unequal sizes.

    Returns
    -------
    setup : ComparisonSetup
        The data and the stream, for :func:`measure`.

    Examples
    --------
    >>> from evergrow.research import digits, make_setup
    >>> make_setup(digits()).points
    (2, 3, 4, 5, 6, 7, 8, 9, 10)
    """
    chosen_protocol = _find_protocol(protocol, initial, chunk)
    if quick:
        chosen = np.random.default_rng(seed).permutation(data.classes)
        some = data.of_classes(chosen[: max(_QUICK_CLASSES, initial or 0)])
        data = some.per_class(_QUICK_PER_CLASS, _QUICK_PER_CLASS)
    check_data(data)
    if chosen_protocol.imbalance > 1:
        data = data.long_tailed(chosen_protocol.imbalance, random_state=seed)
    stream = _stream(len(data.classes), initial, chunk, seed, repetitions, chosen_protocol)
    points = _spread(stream.sizes(len(data.classes)), _N_POINTS)
    setup = ComparisonSetup(data, stream, points, _checkpoints(points), protocol)
    return replace(setup, sample=_sample_setup(setup, seed, repetitions, quick))


def _find_protocol(name: str, initial: int | None, chunk: int | None) -> Protocol:
    if name not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {[*PROTOCOLS]}, got {name!r}")
    found = PROTOCOLS[name]
    if found.single and not (initial is None and chunk is None):
        raise InvalidInputError(
            f"the protocol {name!r} brings two classes and then one at a time: leave initial and "
            "chunk at None"
        )
    return found


def _sample_setup(
    whole: ComparisonSetup, seed: int, repetitions: int, quick: bool
) -> ComparisonSetup:
    """Select a few classes with a few examples each, the same for all learners."""
    data, protocol = whole.data, PROTOCOLS[whole.protocol]
    values = _QUICK_SAMPLE_VALUES if quick else _SAMPLE_VALUES
    n_examples = int(np.clip(values // data.X_train.shape[1], 40, _SAMPLE_EXAMPLES))
    n_classes = min(len(data.classes), max(2, n_examples // _SAMPLE_PER_CLASS))
    # A small subsample could otherwise have only classes without test samples.
    tested = data.classes[np.isin(data.classes, data.y_test)]
    chosen = np.random.default_rng(seed).permutation(tested)[:n_classes]
    per_class = max(1, n_examples // n_classes)
    small = data.of_classes(chosen).per_class(per_class, per_class)
    if len(small.classes) < 2:
        small = data.per_class(per_class, per_class)
    n = len(small.classes)
    stream = _stream(n, None, max(1, n // 4), seed, repetitions, protocol)
    points = _spread(stream.sizes(n), _N_CHECKPOINTS)
    return ComparisonSetup(small, stream, points, _checkpoints(points), whole.protocol)


def _checkpoints(points: Sequence[int]) -> tuple[int, ...]:
    """Select where all learners are measured: most retrained ones cannot fit a single class."""
    return _spread([n for n in points if n > 1], _N_CHECKPOINTS)


def _stream(
    n_classes: int,
    initial: int | None,
    chunk: int | None,
    seed: int,
    repetitions: int,
    protocol: Protocol,
) -> ClassStream:
    share = 2 if protocol.single else max(2, n_classes // 10)
    # At least one class must come later, or there is no update to measure.
    first = min(share, n_classes - 1) if initial is None else initial
    step = max(1, -(-(n_classes - first) // _N_UPDATES)) if chunk is None else chunk
    return ClassStream(
        first,
        1 if protocol.single else step,
        repetitions=repetitions,
        blur=protocol.blur,
        disjoint=protocol.disjoint,
        random_state=seed,
    )


def _spread(sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """Select at most ``n`` sizes, with the first and the last."""
    places = np.unique(np.linspace(0, len(sizes) - 1, min(n, len(sizes))).round().astype(int))
    return tuple(sizes[place] for place in places.tolist())
