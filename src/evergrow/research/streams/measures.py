"""What is said of a learner that follows a stream."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Measured", "forgetting", "model_bytes", "relative_accuracy"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Measured:
    """A learner at one point of a stream."""

    n_classes: int
    """Classes shown so far."""
    accuracy: float
    """Share of right answers on the test samples of all classes shown so far."""
    newest: float
    """The same over the latest classes, which the accuracy over all of them hides."""
    class_accuracies: Array
    """The same of each class, in the order in which the classes came; NaN without test samples."""
    seconds: float
    """Wall-clock time of all training so far."""
    last_seconds: float
    """Wall-clock time of the latest update."""
    n_distances: float
    """Distances computed by all training so far; NaN of learners that do not count them."""
    comparisons: float
    """Distance comparisons per tree and test sample; NaN of learners that do not count them."""
    cpu_seconds: float = float("nan")
    """Processor time of all threads in all training so far; other work hardly changes it."""
    last_cpu_seconds: float = float("nan")
    """The same of the latest update."""


def relative_accuracy(measured: Sequence[Measured], baseline: Sequence[Measured]) -> Array:
    """Accuracy as a share of the baseline's at the same numbers of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import Measured, relative_accuracy
    >>> half, whole = (
    ...     Measured(2, share, share, np.full(2, share), 1.0, 1.0, np.nan, np.nan)
    ...     for share in (0.4, 0.8)
    ... )
    >>> relative_accuracy([half], [whole]).tolist()
    [0.5]
    """
    ours, theirs = ([m.n_classes for m in each] for each in (measured, baseline))
    if ours != theirs:
        raise ValueError(
            f"the learner was measured at {ours} classes, the baseline at {theirs}; "
            "both must follow the same stream"
        )
    pairs = zip(measured, baseline, strict=True)
    return np.array([m.accuracy / b.accuracy if b.accuracy else np.nan for m, b in pairs])


def forgetting(measured: Sequence[Measured]) -> Array:
    """How far each class has fallen from the best it ever was, in the order of the stream.

    Returns an array of shape (n_classes,), of classes without test samples NaN. A class that was
    measured once only has forgotten nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import Measured, forgetting
    >>> at = [
    ...     Measured(len(each), 0.0, 0.0, np.array(each), 0.0, 0.0, np.nan, np.nan)
    ...     for each in ([1.0, 0.5], [0.75, 0.5, 1.0])
    ... ]
    >>> forgetting(at).tolist()
    [0.25, 0.0, 0.0]
    """
    if not measured:
        raise ValueError("there is nothing measured to speak of")
    last = measured[-1].class_accuracies
    best = last.copy()
    for m in measured:
        n = len(m.class_accuracies)
        best[:n] = np.maximum(best[:n], m.class_accuracies)
    return np.asarray(best - last)


class _Counter:
    """Counts what is written to it."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, data: Any) -> int:
        self.n_bytes += memoryview(data).nbytes
        return memoryview(data).nbytes


def model_bytes(learner: Any) -> int:
    """Bytes of a learner with all it keeps, counted the same way for everybody's.

    It is the length of the learner's pickled form; nothing is written, and nothing is ever read
    back.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import model_bytes
    >>> model_bytes(np.zeros(1000)) // 1000
    8
    """
    counter = _Counter()
    pickle.Pickler(counter, protocol=5).dump(learner)
    return counter.n_bytes
