"""The back end as a whole: what the routes call."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from evergrow.service.label_studio.api import LabelStudioApi
from evergrow.service.label_studio.learner import Learner
from evergrow.service.label_studio.messages import Hint, PredictRequest, read_setup
from evergrow.service.label_studio.predictions import model_version, predict_tasks
from evergrow.service.label_studio.ranking import Ranker
from evergrow.service.label_studio.reconciliation import SyncResult
from evergrow.service.label_studio.synchroniser import Synchroniser
from evergrow.service.label_studio.task_images import TaskImages

# Requests to predict at a time: each may wait for images.
_N_PREDICTING = 4
# Label Studio waits for 100 seconds.
_PREDICT_SECONDS = 80.0


class BackEnd:
    """A machine-learning back end of one Label Studio; a context manager.

    Parameters
    ----------
    api : LabelStudioApi
        Label Studio.
    learner : Learner
        The service that the back end is part of.
    period : float, default=30
        Seconds between two looks for changes that no webhook announced.
    """

    def __init__(self, api: LabelStudioApi, learner: Learner, *, period: float = 30.0) -> None:
        self._api = api
        self._learner = learner
        self._images = TaskImages(api, learner)
        self._ranker = Ranker(api, learner, self._images)
        self._synchroniser = Synchroniser(
            api, learner, self._images, period=period, on_changed=self._ranker.notify
        )
        self._threads = ThreadPoolExecutor(_N_PREDICTING, thread_name_prefix="label-studio-predict")
        # What webhooks announced and is not learnt yet.
        self._announced: set[Future[SyncResult]] = set()
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Start all threads; the first thing they do is to catch up with Label Studio."""
        self._stack.callback(self._api.close)
        self._stack.enter_context(self._images)
        self._stack.enter_context(self._ranker)
        self._stack.enter_context(self._synchroniser)
        self._stack.callback(self._threads.shutdown, cancel_futures=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all threads after what they are doing."""
        self._stack.close()

    @property
    def model_version(self) -> str:
        """The version of the current model."""
        return model_version(self._learner.workspace.snapshot)

    def set_up(self, value: Any) -> None:
        """Connect a project, whose configuration must be supported."""
        number, _ = read_setup(value)
        if not self._synchroniser.knows(number):
            self._synchroniser.submit(Hint(number))

    def predict(self, request: PredictRequest) -> Future[list[dict[str, Any]]]:
        """Predict tasks in another thread; their images are fetched if they are not known."""
        return self._threads.submit(self._predict, request)

    def _predict(self, request: PredictRequest) -> list[dict[str, Any]]:
        rows = self._images.rows(request.tasks, time.monotonic() + _PREDICT_SECONDS)
        # Read after the images were fetched: lessons of the meantime count.
        snapshot = self._learner.workspace.snapshot
        answers = predict_tasks(snapshot, request.config, request.tasks, rows)
        version = model_version(snapshot)
        return [one.to_json(request.config, version) for one in answers]

    def announce(self, hint: Hint) -> Future[SyncResult]:
        """Read the tasks of a webhook again; the future gives what was done."""
        done = self._synchroniser.submit(hint)
        with self._lock:
            self._announced.add(done)
        done.add_done_callback(self._forget)
        return done

    def _forget(self, done: Future[SyncResult]) -> None:
        with self._lock:
            self._announced.discard(done)

    @property
    def announced(self) -> list[Future[SyncResult]]:
        """What webhooks announced and is not learnt yet."""
        with self._lock:
            return list(self._announced)

    def synchronise(self) -> Future[SyncResult]:
        """Compare all tasks of all connected projects; the future gives what was done."""
        return self._synchroniser.submit(None)
