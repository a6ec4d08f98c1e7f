"""Streams of classes: which arrive when, learners on them, and what is measured."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from evergrow.compare.data import Array, Dataset
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer, Nothing, Number, Rule, Satisfies, check_parameters

_ORDERS = ("shuffled", "sorted")
_RULES: dict[str, tuple[Rule, ...]] = {
    "initial": (Integer(1),),
    "chunk": (Integer(1),),
    "n_classes": (Integer(1), Nothing()),
    "order": (
        Satisfies(
            "'shuffled', 'sorted' or a sequence of labels",
            lambda order: order in _ORDERS if isinstance(order, str) else _is_list(order),
        ),
    ),
    "measure_at": (
        Satisfies(
            "numbers of classes, each an integer of at least 1",
            lambda sizes: _is_list(sizes) and all(map(Integer(1).admits, sizes)),
        ),
        Nothing(),
    ),
    "blur": (Number(0.0, 1.0),),
    "disjoint": (Number(0.0, 1.0),),
    "random_state": (Integer(0),),
}
# The accuracy over all classes can hide a low accuracy of the newest ones.
N_NEWEST = 5


def _is_list(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str)


@dataclass(frozen=True, eq=False)
class Step:
    """One batch of a stream; classes are in order of arrival."""

    classes: Array
    """The new classes."""
    known: Array
    """All classes so far, including the new ones."""
    rows: Array
    """Indices of the training rows; in a blurry stream, also of classes known before."""
    measured: bool
    """Whether the learner is measured after this step."""


@dataclass(frozen=True)
class ClassStream:
    """A stream that starts with a few classes and adds the others in batches.

    Parameters
    ----------
    initial : int
        Number of classes in the first batch.
    chunk : int, default=1
        Number of classes in every later batch; the last may have fewer. Larger batches are faster.
    n_classes : int, default=None
        Number of classes of the data to use. None uses all.
    order : {"shuffled", "sorted"} or sequence, default="shuffled"
        Order of the classes. A sequence of labels names all classes to use.
    measure_at : sequence of int, default=None
        Numbers of known classes at which to measure; None measures after every step.
    blur : float in [0, 1], default=0
        Share of the examples of a class that arrive in a random later batch, so that old and new
        classes are mixed. At least one example arrives with its class, and all examples of the last
        classes do.
    disjoint : float in [0, 1], default=0
        Share of the classes, chosen at random, that are not blurred. For such streams see Koh et
        al., ICLR 2022.
    random_state : int, default=0
        Seed of the order.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.compare import ClassStream
    >>> y = np.repeat(["ant", "bee", "cow", "dog"], 2)
    >>> for step in ClassStream(initial=2, order="sorted").steps(y):
    ...     print(step.classes.tolist(), step.rows.tolist(), len(step.known))
    ['ant', 'bee'] [0, 1, 2, 3] 2
    ['cow'] [4, 5] 3
    ['dog'] [6, 7] 4
    """

    initial: int
    chunk: int = 1
    n_classes: int | None = None
    order: Literal["shuffled", "sorted"] | Sequence[Any] = "shuffled"
    measure_at: Sequence[int] | None = None
    blur: float = 0.0
    disjoint: float = 0.0
    random_state: int = 0

    def __post_init__(self) -> None:
        check_parameters(vars(self), _RULES)

    def sizes(self, n_classes: int) -> list[int]:
        """Return the number of known classes after each step, given the number in the data."""
        end = n_classes if self.n_classes is None else self.n_classes
        if end > n_classes:
            raise InvalidInputError(f"the stream asks for {end} classes, the data have {n_classes}")
        if self.initial > end:
            raise InvalidInputError(
                f"the stream begins with {self.initial} classes, but there are only {end}: "
                "reduce initial"
            )
        return [*range(self.initial, end, self.chunk), end]

    def ordered(self, classes: Array) -> Array:
        """Return the classes in order of arrival."""
        if not isinstance(self.order, str):
            named = np.asarray(self.order)
            unknown = sorted(set(named.tolist()) - set(classes.tolist()), key=str)
            if unknown:
                raise InvalidInputError(
                    f"order names classes that are not in the data: {unknown[:5]}"
                )
            if len(np.unique(named)) != len(named):
                raise InvalidInputError("order names a class twice")
            return named.astype(classes.dtype)
        if self.order == "sorted":
            return np.sort(classes)
        rng = np.random.default_rng(self.random_state)
        return rng.permutation(np.sort(classes))

    def steps(self, y: npt.ArrayLike) -> Iterator[Step]:
        """Yield the batches, given the training labels ``y``."""
        labels = np.asarray(y)
        order = self.ordered(np.unique(labels))
        sizes = self.sizes(len(order))
        measured = set(sizes if self.measure_at is None else self.measure_at)
        unreachable = measured - set(sizes)
        if unreachable:
            raise InvalidInputError(
                f"measure_at asks for {sorted(unreachable)} classes, "
                f"but the stream passes through {sizes}"
            )
        batch_of_row = self._batches(labels, order, sizes)
        first = 0
        for batch, end in enumerate(sizes):
            rows = np.flatnonzero(batch_of_row == batch)
            yield Step(order[first:end], order[:end], rows, end in measured)
            first = end

    def _batches(self, labels: Array, order: Array, sizes: Sequence[int]) -> Array:
        """Return the number of the batch of each row, -1 for classes that are left out."""
        # Another generator than that of the order, which a blurry stream leaves as it is.
        rng = np.random.default_rng((self.random_state, 1))
        batch_of_class = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
        whole = rng.permutation(len(batch_of_class)) < self.disjoint * len(batch_of_class)
        last = len(sizes) - 1
        batches = np.full(len(labels), -1)
        for label, batch, is_whole in zip(order, batch_of_class, whole, strict=False):
            rows = np.flatnonzero(labels == label)
            batches[rows] = batch
            if self.blur and not is_whole and batch < last:
                n_late = min(round(self.blur * len(rows)), len(rows) - 1)
                late = rng.permutation(rows)[:n_late]
                batches[late] = rng.integers(batch + 1, last, n_late, endpoint=True)
        return batches


class Learner(Protocol):
    """An estimator that can learn from a stream."""

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from a batch that may have new classes."""

    def predict(self, X: Any) -> Any:
        """Return one label per sample."""


class Retrained:
    """Stores all examples and retrains on all of them at the next prediction.

    The baseline of experiments, and a wrapper for estimators that cannot add classes.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from evergrow.compare import Retrained
    >>> learner = Retrained(lambda: KNeighborsClassifier(1))
    >>> learner.partial_fit([[0.0], [1.0]], ["a", "b"]).partial_fit([[2.0]], ["c"]).predict([[1.9]])
    array(['c'], dtype='<U1')
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.model: Any = None
        self._X: list[Array] = []
        self._y: list[Array] = []

    def partial_fit(self, X: Any, y: Any) -> Retrained:
        """Keep a batch; what was trained before no longer holds."""
        self._X.append(np.asarray(X))
        self._y.append(np.asarray(y))
        self.model = None
        return self

    def predict(self, X: Any) -> Array:
        """Predict, after retraining if there are new examples."""
        if self.model is None:
            if not self._y:
                raise InvalidInputError("the learner has no examples yet: call partial_fit first")
            self.model = self.make().fit(np.concatenate(self._X), np.concatenate(self._y))
        return cast(Array, self.model.predict(X))

    def comparisons(self, X: Any) -> float:
        """Return the distance comparisons of the trained model, if it counts them."""
        count = getattr(self.model, "comparisons", None)
        return float("nan") if count is None else float(count(X))

    @property
    def update_report_(self) -> Any:
        """The report on the last training, if the model has one."""
        return getattr(self.model, "update_report_", None)

    def __getstate__(self) -> dict[str, Any]:
        # The factory is not part of the state, and often cannot be pickled.
        return {**vars(self), "make": None}


@dataclass
class _Meter:
    """Time and distances of training calls only, by the names that :class:`Measured` has."""

    seconds: float = 0.0
    last_seconds: float = 0.0
    n_distances: float = 0.0
    cpu_seconds: float = 0.0

    def train(self, learner: Learner, X: Array, y: Array, *, ask: bool) -> None:
        start, cpu_start = time.perf_counter(), time.process_time()
        learner.partial_fit(X, y)
        if ask:
            # Some learners solve or train only when they predict.
            learner.predict(X[:1])
        self.cpu_seconds += time.process_time() - cpu_start
        self.last_seconds = time.perf_counter() - start
        self.seconds += self.last_seconds
        report = getattr(learner, "update_report_", None)
        if ask or not isinstance(learner, Retrained):
            self.n_distances += getattr(report, "n_comparisons", np.nan)


def follow(
    learner: Learner,
    data: Dataset,
    stream: ClassStream,
    *,
    ask: Literal["always", "measured"] = "always",
) -> Iterator[Measured]:
    """Train a learner on a stream of classes, and measure it on the way.

    Parameters
    ----------
    learner : object with ``partial_fit`` and ``predict``
        The learner, which is trained in place. ``Retrained(make)`` wraps any classifier.
    data : Dataset
        Training and test samples.
    stream : ClassStream
        Which classes arrive when, and when to measure.
    ask : {"always", "measured"}, default="always"
        After which steps the learner must predict, as part of the training time. With "measured", a
        :class:`Retrained` learner trains only where it is measured. Its accuracy is the same, but
        its total time covers only these trainings.

    Yields
    ------
    measured : Measured
        The measurements at each measured step. Accuracies are NaN as long as no class has test
        samples.

    Examples
    --------
    >>> from evergrow import NCMClassifier
    >>> from evergrow.compare import ClassStream, follow, load_dataset
    >>> stream = ClassStream(initial=2, chunk=4, order="sorted")
    >>> for measured in follow(NCMClassifier(), load_dataset("digits"), stream):
    ...     print(measured.n_classes, measured.accuracy > 0.8)
    2 True
    6 True
    10 True
    """
    meter = _Meter()
    for step in stream.steps(data.y_train):
        X, y = data.X_train[step.rows], data.y_train[step.rows]
        meter.train(learner, X, y, ask=ask == "always" or step.measured)
        if step.measured:
            yield _measured(learner, data, step, meter)


def _measured(learner: Learner, data: Dataset, step: Step, meter: _Meter) -> Measured:
    rows = np.flatnonzero(np.isin(data.y_test, step.known))
    X, y = data.X_test[rows], data.y_test[rows]
    # The first classes may have no test samples.
    right = np.asarray(learner.predict(X)) == y if len(rows) else np.zeros(0, bool)
    newest = right[np.isin(y, step.known[-N_NEWEST:])]
    each = [right[y == label] for label in step.known]
    count = getattr(learner, "comparisons", None) if len(rows) else None
    return Measured(
        n_classes=len(step.known),
        accuracy=float(right.mean()) if len(right) else float("nan"),
        newest=float(newest.mean()) if len(newest) else float("nan"),
        class_accuracies=np.array([e.mean() if len(e) else np.nan for e in each]),
        comparisons=float("nan") if count is None else float(count(X)),
        **vars(meter),
    )


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of a learner at one point of a stream."""

    n_classes: int
    """Number of classes so far."""
    accuracy: float
    """Accuracy on the test samples of all classes so far."""
    newest: float
    """Accuracy on the newest classes."""
    class_accuracies: Array
    """Accuracy of each class, in order of arrival; NaN without test samples."""
    seconds: float
    """Wall-clock time of all training so far."""
    last_seconds: float
    """Wall-clock time of the latest update."""
    n_distances: float
    """Number of distances computed in training so far; NaN if the learner does not count them."""
    comparisons: float
    """Number of comparisons per tree and test sample; NaN if the learner does not count them."""
    cpu_seconds: float = float("nan")
    """Processor time of all threads in all training so far."""


def forgetting(measured: Sequence[Measured]) -> Array:
    """Return the drop of each class from its best accuracy to its last one, in order of arrival.

    The array has shape (n_classes,), with NaN for classes without test samples and 0 for a class
    that was measured only once.

    Examples
    --------
    >>> from evergrow import NCMClassifier
    >>> from evergrow.compare import ClassStream, follow, forgetting, load_dataset
    >>> forgetting([*follow(NCMClassifier(), load_dataset("digits"), ClassStream(2, 4))]).shape
    (10,)
    """
    if not measured:
        raise InvalidInputError("forgetting needs at least one measurement")
    last = measured[-1].class_accuracies
    best = last.copy()
    for m in measured:
        n = len(m.class_accuracies)
        best[:n] = np.maximum(best[:n], m.class_accuracies)
    return np.asarray(best - last)


def model_bytes(learner: Any) -> int:
    """Return the length of the pickled learner, comparable between packages.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.compare import model_bytes
    >>> model_bytes(np.zeros(1000)) // 1000
    8
    """
    n_bytes = 0

    def write(data: Any) -> None:
        nonlocal n_bytes
        n_bytes += memoryview(data).nbytes

    # A file that only counts.
    pickle.Pickler(SimpleNamespace(write=write), protocol=5).dump(learner)
    return n_bytes
