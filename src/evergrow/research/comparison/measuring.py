"""Taking one learner through the stream, with an eye on the clock."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from evergrow.research.comparison.contender import Contender, Setting
from evergrow.research.comparison.plan import Plan
from evergrow.research.comparison.result import Point, Result, mean_known
from evergrow.research.comparison.wording import shortened
from evergrow.research.datasets import Dataset
from evergrow.research.streams import Learner, Measured, Retrained, follow, forgetting, model_bytes
from evergrow.research.streams.following import N_NEWEST

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
        self.answers: Array = np.array([])
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
        self.answers = answers
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
    >>> from evergrow.research import choose, digits, make_plan, measure
    >>> result = measure(choose(only=["lda"])[0], make_plan(digits()))
    >>> result.points[-1].n_classes, result.accuracy > 0.9
    (10, True)
    """
    data, stream = plan.data, plan.stream_for(contender)
    setting = Setting(stream.random_state + repetition, n_jobs, data.classes)
    if contender.way == "retrained":
        # One that is made only to be trained would import its package on the clock.
        contender.recipe.build(setting)
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
    whole, alone = _sizes(clocked.learner, contender)
    retrained = contender.way == "retrained"
    # Those who train anew do so only where they are measured, the first time included.
    count = len(measured) - 1 if retrained else n_updates
    trained = bool(measured) and (retrained or count > 0)
    return Result(
        points=tuple(map(_point, measured)),
        answers=() if stopped_at is not None else _right_by_class(clocked.answers, data),
        forgetting=_forgotten(measured, plan) if stopped_at is None else float("nan"),
        seconds_per_update=_per_update([m.seconds for m in measured], count, retrained),
        cpu_seconds_per_update=_per_update([m.cpu_seconds for m in measured], count, retrained),
        last_seconds=measured[-1].last_seconds if trained else float("nan"),
        answer_seconds=clocked.answer_seconds,
        n_bytes=whole,
        model_bytes=alone,
        stopped_at=stopped_at,
        time_limit=time_limit,
        remarks=tuple(sorted({_warning(str(each.message)) for each in said})),
    )


def _point(measured: Measured) -> Point:
    each = measured.class_accuracies
    newest = mean_known(each[-N_NEWEST:])
    return Point(measured.n_classes, measured.accuracy, mean_known(each), newest)


def _forgotten(measured: list[Measured], plan: Plan) -> float:
    """Mean over classes, from the points at which everybody is measured: more find more."""
    shared = [each for each in measured if each.n_classes in plan.checkpoints]
    # Who was looked at once cannot be said to have forgotten nothing.
    return mean_known(forgetting(shared)) if len(shared) > 1 else float("nan")


def _warning(message: str) -> str:
    """The first sentence of a warning, for a table."""
    first = " ".join(message.split()).partition(". ")[0].rstrip(".")
    return f"warned: {shortened(first)}"


def _right_by_class(answers: Array, data: Dataset) -> tuple[str, ...]:
    """The last answers, to the samples of all classes, as :class:`Result` keeps them."""
    y = data.y_test[np.isin(data.y_test, data.classes)]
    right = np.asarray(answers) == y
    return tuple(
        "".join("01"[each] for each in right[y == label].astype(int)) for label in data.classes
    )


def _per_update(totals: list[float], count: int, retrained: bool) -> float:
    """Mean after the first batch, which is as large as the user made it.

    Whoever is trained anew once only is trained with all of it.
    """
    if count > 0:
        return (totals[-1] - totals[0]) / count
    return totals[-1] if totals and retrained else float("nan")


def _sizes(learner: Any, contender: Contender) -> tuple[int, int]:
    """Bytes of all that must be kept to learn on, and of what answers."""
    if not isinstance(learner, Retrained):
        size = _kept_bytes(getattr(learner, "model", learner))
        return size, size
    if learner.model is None:
        return model_bytes(learner), 0
    model, whole = model_bytes(learner.model), model_bytes(learner)
    # Examples that the model holds itself need not be kept a second time.
    return (model if contender.holds_examples else whole), model


def _kept_bytes(model: Any) -> int:
    """The size of a model's file, which holds no caches; else of its pickled form."""
    if not hasattr(model, "save"):
        return model_bytes(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        return path.stat().st_size
