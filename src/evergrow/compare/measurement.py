"""Measure one learner on a stream, within a time limit."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from evergrow.compare.data import Dataset
from evergrow.compare.learners import ComparedLearner
from evergrow.compare.results import Point, Result, mean_known
from evergrow.compare.setup import Setup
from evergrow.compare.stream import (
    N_NEWEST,
    Learner,
    Measured,
    Retrained,
    follow,
    forgetting,
    model_bytes,
)
from evergrow.foundation.arrays import Array


class _OutOfTimeError(Exception):
    """Time ran out; measurements so far are valid."""


class _TimedLearner:
    """A learner that accepts no further batch after its time limit."""

    def __init__(self, learner: Learner, time_limit: float) -> None:
        self.learner = learner
        self.n_updates = -1
        self.answer_seconds = float("nan")
        self.predicted: Array = np.array([])
        self._time_limit = time_limit
        self._began = time.perf_counter()
        self._n_rows = 0
        self._trained_rows, self._training_seconds = 0, 0.0

    @property
    def _spent(self) -> float:
        return time.perf_counter() - self._began

    def partial_fit(self, X: Any, y: Any) -> _TimedLearner:
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
        self.predicted = self.learner.predict(X)
        # A single prediction is part of training.
        if len(X) > 1:
            self.answer_seconds = (time.perf_counter() - start) / len(X)
        return self.predicted

    def _train(self, row: Array) -> None:
        # Training cannot be interrupted: if it would take too long, it is not started.
        if self._trained_rows:
            expected = self._training_seconds * self._n_rows / self._trained_rows
            if self._spent + expected > self._time_limit:
                raise _OutOfTimeError
        start = time.perf_counter()
        self.learner.predict(row)
        self._training_seconds = time.perf_counter() - start
        self._trained_rows = self._n_rows


def measure(
    learner: ComparedLearner,
    setup: Setup,
    repetition: int = 0,
    *,
    n_jobs: int = -1,
    time_limit: float = float("inf"),
) -> Result:
    """Train and test a learner on one class order, whose number also changes its seed.

    Examples
    --------
    >>> from evergrow.compare import load_dataset
    >>> from evergrow.compare.learners import choose
    >>> from evergrow.compare.measurement import measure
    >>> from evergrow.compare.setup import make_setup
    >>> result = measure(choose(only=["lda"])[0], make_setup(load_dataset("digits")))
    >>> result.points[-1].n_classes, result.points[-1].accuracy > 0.9
    (10, True)
    """
    data, stream = setup.data, setup.stream_for(learner)
    seed = stream.random_state + repetition
    retrained = learner.way == "retrained"
    if retrained:
        # Import the package before the clock starts.
        learner.factory.build(seed, n_jobs)
    timed = _TimedLearner(learner.create(seed, n_jobs, data.classes), time_limit)
    ask: Literal["always", "measured"] = "measured" if retrained else "always"
    measured: list[Measured] = []
    n_updates = 0
    stopped_at = None
    with (
        threadpool_limits(joblib.effective_n_jobs(n_jobs)),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            for each in follow(timed, data, stream, repetition, ask=ask):
                measured.append(each)
                n_updates = timed.n_updates
        except _OutOfTimeError:
            stopped_at = measured[-1].n_classes if measured else 0
    whole, alone = _sizes(timed.learner, learner)
    # Retrained learners train only where they are measured, also the first time.
    count = len(measured) - 1 if retrained else n_updates
    trained = bool(measured) and (retrained or count > 0)
    # More points would raise forgetting, so that it is taken at shared ones; one point shows none.
    shared = [each for each in measured if each.n_classes in setup.checkpoints]
    compared = stopped_at is None and len(shared) > 1
    return Result(
        points=tuple(map(_point, measured)),
        answers=() if stopped_at is not None else _correct_by_class(timed.predicted, data),
        forgetting=mean_known(forgetting(shared)) if compared else float("nan"),
        seconds_per_update=_per_update([m.seconds for m in measured], count, retrained),
        cpu_seconds_per_update=_per_update([m.cpu_seconds for m in measured], count, retrained),
        last_seconds=measured[-1].last_seconds if trained else float("nan"),
        answer_seconds=timed.answer_seconds,
        n_bytes=whole,
        model_bytes=alone,
        stopped_at=stopped_at,
        time_limit=time_limit,
        remarks=tuple(sorted({_warning(str(each.message)) for each in caught})),
    )


def _point(measured: Measured) -> Point:
    each = measured.class_accuracies
    newest = mean_known(each[-N_NEWEST:])
    return Point(measured.n_classes, measured.accuracy, mean_known(each), newest)


def _warning(message: str) -> str:
    """Return the first sentence of a warning, for a table."""
    first = " ".join(message.split()).partition(". ")[0].rstrip(".")
    return f"warned: {shorten(first, 100)}"


def shorten(words: str, length: int) -> str:
    """Cut a text for a table, between two words.

    >>> shorten("the solver did not converge", 20)
    'the solver did not…'
    """
    if len(words) <= length:
        return words
    kept = words[:length].rpartition(" ")[0] or words[: length - 1]
    return kept.rstrip(" ,;:") + "\N{HORIZONTAL ELLIPSIS}"


def _correct_by_class(predicted: Array, data: Dataset) -> tuple[str, ...]:
    """Return which final predictions are correct, as :class:`Result` stores them."""
    y = data.y_test[np.isin(data.y_test, data.classes)]
    right = np.asarray(predicted) == y
    return tuple(
        "".join("01"[each] for each in right[y == label].astype(int)) for label in data.classes
    )


def _per_update(totals: list[float], count: int, retrained: bool) -> float:
    """Return the mean time after the first batch, whose size the user chose.

    A learner that was retrained only once was trained on everything.
    """
    if count > 0:
        return (totals[-1] - totals[0]) / count
    return totals[-1] if totals and retrained else float("nan")


def _sizes(learner: Any, compared: ComparedLearner) -> tuple[int, int]:
    """Return the bytes that must be stored to continue learning, and those of the model."""
    if not isinstance(learner, Retrained):
        size = _stored_bytes(getattr(learner, "model", learner))
        return size, size
    if learner.model is None:
        return model_bytes(learner), 0
    model, whole = model_bytes(learner.model), model_bytes(learner)
    # Examples inside the model need not be stored a second time.
    return (model if compared.holds_examples else whole), model


def _stored_bytes(model: Any) -> int:
    """Return the size of the model file, which has no caches, or else of the pickle."""
    if not hasattr(model, "save"):
        return model_bytes(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        return path.stat().st_size
