"""Learners that follow a stream, measured on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.research.datasets.dataset import Dataset
from evergrow.research.streams.measures import Measured
from evergrow.research.streams.stream import ClassStream, Step

__all__ = ["Learner", "Retrained", "follow"]

Array = npt.NDArray[Any]

# The accuracy over all classes hides how badly the latest ones are known.
N_NEWEST = 5


class Learner(Protocol):
    """What can follow a stream."""

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from a batch that may bring new classes."""

    def predict(self, X: Any) -> Any:
        """Answer with one label per sample."""


class Retrained:
    """Keeps everything it is shown and trains anew from all of it when it is asked.

    The baseline of every experiment, and how learners that cannot add classes follow a stream.

    Parameters
    ----------
    make : callable
        Gives an estimator that is not fitted yet.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from evergrow.research import Retrained
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
        """Answer, after training on everything kept if anything came since."""
        if self.model is None:
            if not self._y:
                raise ValueError("nothing was learnt yet: call partial_fit first")
            self.model = self.make().fit(np.concatenate(self._X), np.concatenate(self._y))
        answers: Array = self.model.predict(X)
        return answers

    def comparisons(self, X: Any) -> float:
        """Distance comparisons of the trained model, if it counts them."""
        count = getattr(self.model, "comparisons", None)
        return float("nan") if count is None else float(count(X))

    @property
    def update_report_(self) -> Any:
        """What the last training cost, if the model says so."""
        return getattr(self.model, "update_report_", None)

    def __getstate__(self) -> dict[str, Any]:
        # A recipe is no part of what is kept, and need not be something that can be written.
        return {**vars(self), "make": None}


@dataclass
class _Meter:
    """Time and distances of training calls alone."""

    seconds: float = 0.0
    last_seconds: float = 0.0
    cpu_seconds: float = 0.0
    last_cpu_seconds: float = 0.0
    n_distances: float = 0.0

    def train(self, learner: Learner, X: Array, y: Array, *, ask: bool) -> None:
        start, cpu_start = time.perf_counter(), time.process_time()
        learner.partial_fit(X, y)
        if ask:
            # Some solve or train only when they are asked.
            learner.predict(X[:1])
        self.last_seconds = time.perf_counter() - start
        self.last_cpu_seconds = time.process_time() - cpu_start
        self.seconds += self.last_seconds
        self.cpu_seconds += self.last_cpu_seconds
        report = getattr(learner, "update_report_", None)
        if ask or not isinstance(learner, Retrained):
            self.n_distances += getattr(report, "n_comparisons", np.nan)


def follow(
    learner: Learner,
    data: Dataset,
    stream: ClassStream,
    repetition: int = 0,
    *,
    ask: Literal["always", "measured"] = "always",
) -> Iterator[Measured]:
    """Take a learner through a stream and measure it where the stream says so.

    Parameters
    ----------
    learner : object with ``partial_fit`` and ``predict``
        It is changed. ``Retrained(make)`` makes one of any classifier.
    data : Dataset
        Where the batches and the test samples come from.
    stream : ClassStream
        Which classes come when, and when to measure.
    repetition : int, default=0
        Which of the stream's repetitions to follow.
    ask : {"always", "measured"}, default="always"
        After which steps an answer is asked for, as part of the training time. With "measured" a
        ``Retrained`` learner trains only where it is measured, which is all that its accuracy
        needs; its total time is then that of those trainings alone.

    Yields
    ------
    Measured
        The learner, at every step that is measured; accuracies are NaN as long as none of the
        classes shown has test samples.

    Examples
    --------
    >>> from evergrow import NCMClassifier
    >>> from evergrow.research import ClassStream, digits, follow
    >>> stream = ClassStream(initial=2, chunk=4, order="sorted")
    >>> for measured in follow(NCMClassifier(), digits(), stream):
    ...     print(measured.n_classes, measured.accuracy > 0.8)
    2 True
    6 True
    10 True
    """
    if ask not in ("always", "measured"):
        raise ValueError(f"ask must be 'always' or 'measured', got {ask!r}")
    meter = _Meter()
    for step in stream.steps(data.y_train, repetition):
        X, y = data.X_train[step.rows], data.y_train[step.rows]
        meter.train(learner, X, y, ask=ask == "always" or step.measured)
        if step.measured:
            yield _measured(learner, data, step, meter)


def _measured(learner: Learner, data: Dataset, step: Step, meter: _Meter) -> Measured:
    rows = np.flatnonzero(np.isin(data.y_test, step.known))
    X, y = data.X_test[rows], data.y_test[rows]
    # Classes without test samples may come first: they are learnt, and nothing is asked.
    right = np.asarray(learner.predict(X)) == y if len(rows) else np.zeros(0, bool)
    newest = right[np.isin(y, step.known[-N_NEWEST:])]
    each = [right[y == label] for label in step.known]
    count = getattr(learner, "comparisons", None) if len(rows) else None
    return Measured(
        n_classes=len(step.known),
        accuracy=float(right.mean()) if len(right) else float("nan"),
        newest=float(newest.mean()) if len(newest) else float("nan"),
        class_accuracies=np.array([e.mean() if len(e) else np.nan for e in each]),
        seconds=meter.seconds,
        last_seconds=meter.last_seconds,
        n_distances=meter.n_distances,
        comparisons=float("nan") if count is None else float(count(X)),
        cpu_seconds=meter.cpu_seconds,
        last_cpu_seconds=meter.last_cpu_seconds,
    )
