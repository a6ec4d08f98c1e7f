"""Taking one learner through the stream, with an eye on the clock."""

from __future__ import annotations

import time
import warnings
from typing import Any, Literal

import joblib
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from evergrow.comparison.contender import Contender, Setting
from evergrow.comparison.plan import Plan
from evergrow.comparison.result import Point, Result
from evergrow.streams import Learner, Measured, Retrained, follow, forgetting, model_bytes

__all__ = ["measure"]

Array = npt.NDArray[Any]


class _OutOfTimeError(Exception):
    """Time is up; what was measured so far counts."""


class _Clocked:
    """A learner that takes no further batch once its time is up."""

    def __init__(self, learner: Learner, time_limit: float) -> None:
        self.learner = learner
        self.n_updates = -1
        self.answer_seconds = float("nan")
        self._time_limit = time_limit
        self._began = time.perf_counter()
        self._n_rows = 0
        self._trained_rows, self._training_seconds = 0, 0.0

    @property
    def _spent(self) -> float:
        return time.perf_counter() - self._began

    def partial_fit(self, X: Any, y: Any) -> _Clocked:
        if self.n_updates >= 0 and self._spent > self._time_limit:
            raise _OutOfTimeError
        self.learner.partial_fit(X, y)
        self.n_updates += 1
        self._n_rows += len(y)
        return self

    def predict(self, X: Any) -> Array:
        if isinstance(self.learner, Retrained) and self.learner.model is None:
            self._train(X[:1])
        start = time.perf_counter()
        answers: Array = self.learner.predict(X)
        # One answer is asked for as a part of training.
        if len(X) > 1:
            self.answer_seconds = (time.perf_counter() - start) / len(X)
        return answers

    def _train(self, row: Array) -> None:
        # A training cannot be stopped: one that would take too long is not begun.
        if self._trained_rows:
            expected = self._training_seconds * self._n_rows / self._trained_rows
            if self._spent + expected > self._time_limit:
                raise _OutOfTimeError
        start = time.perf_counter()
        self.learner.predict(row)
        self._training_seconds = time.perf_counter() - start
        self._trained_rows = self._n_rows


def measure(
    contender: Contender,
    plan: Plan,
    repetition: int = 0,
    *,
    n_jobs: int = -1,
    time_limit: float = float("inf"),
) -> Result:
    """Take a learner through one order of the classes.

    Parameters
    ----------
    contender : Contender
        An entry of the table of learners.
    plan : Plan
        Data and stream.
    repetition : int, default=0
        Which order of the classes; it also shifts the learner's seed.
    n_jobs : int, default=-1
        Threads, those of linear algebra included.
    time_limit : float, default=inf
        Seconds after which it is shown no further batch.

    Examples
    --------
    >>> from evergrow.comparison import choose, make_plan, measure
    >>> from evergrow.streams import digits
    >>> result = measure(choose(only=["lda"])[0], make_plan(digits()))
    >>> result.points[-1].n_classes, result.accuracy > 0.9
    (10, True)
    """
    data, stream = plan.data, plan.stream_for(contender)
    setting = Setting(stream.random_state + repetition, n_jobs, data.classes)
    clocked = _Clocked(contender.learner(setting), time_limit)
    ask: Literal["always", "measured"] = "measured" if contender.way == "retrained" else "always"
    measured: list[Measured] = []
    n_updates = 0
    stopped_at = None
    with (
        threadpool_limits(joblib.effective_n_jobs(n_jobs)),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        try:
            for each in follow(clocked, data, stream, repetition, ask=ask):
                measured.append(each)
                n_updates = clocked.n_updates
        except _OutOfTimeError:
            stopped_at = measured[-1].n_classes if measured else 0
    order = stream.ordered(data.classes, repetition)
    whole, alone = _sizes(clocked.learner, contender)
    # Those who train anew do so only where they are measured.
    count = len(measured) - 1 if contender.way == "retrained" else n_updates
    return Result(
        points=tuple(Point(m.n_classes, m.accuracy, m.newest) for m in measured),
        class_accuracies=() if stopped_at is not None else _sorted(measured[-1], order),
        forgetting=_forgotten(measured, plan) if stopped_at is None else float("nan"),
        seconds_per_update=_per_update([m.seconds for m in measured], count),
        cpu_seconds_per_update=_per_update([m.cpu_seconds for m in measured], count),
        last_seconds=measured[-1].last_seconds if len(measured) > 1 else float("nan"),
        answer_seconds=clocked.answer_seconds,
        n_bytes=whole,
        model_bytes=alone,
        stopped_at=stopped_at,
        time_limit=time_limit,
        remarks=tuple(sorted({_warning(str(each.message)) for each in said})),
    )


def _forgotten(measured: list[Measured], plan: Plan) -> float:
    """Mean over classes, from the points at which everybody is measured: more find more."""
    shared = [each for each in measured if each.n_classes in plan.checkpoints]
    return float(np.nanmean(forgetting(shared)))


def _warning(message: str) -> str:
    """The first sentence of a warning, for a table."""
    first = " ".join(message.split()).partition(". ")[0].rstrip(".")
    return f"warned: {first[:100]}"


def _sorted(last: Measured, order: Array) -> tuple[float, ...]:
    """Accuracies of the classes in sorted order, so that other orders can be set beside them."""
    return tuple(last.class_accuracies[np.argsort(order, kind="stable")].tolist())


def _per_update(totals: list[float], count: int) -> float:
    """Mean after the first batch, which is as large as the user made it."""
    return (totals[-1] - totals[0]) / count if count > 0 else float("nan")


def _sizes(learner: Any, contender: Contender) -> tuple[int, int]:
    """Bytes of all that must be kept to learn on, and of what answers."""
    if not isinstance(learner, Retrained):
        model = getattr(learner, "model", learner)
        size = model_bytes(model)
        return size, size
    if learner.model is None:
        return model_bytes(learner), 0
    model, whole = model_bytes(learner.model), model_bytes(learner)
    # Examples that the model holds itself need not be kept a second time.
    return (model if contender.holds_examples else whole), model
