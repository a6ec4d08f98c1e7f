"""Which task to label next, stored as scores of predictions in Label Studio.

Label Studio asks a back end about one task at a time, after it has chosen the task. Its uncertainty
sampling chooses the task with the lowest score among the predictions whose version is the one that
the project shows, which for a connected back end is the title of the back end. So each task
without an annotation gets one prediction of that version. Its score is the place of the task among
the next ones, or 1. After lessons only the places that changed are written.

Projects with another sampling are left alone.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.curation.next_to_label import next_to_label
from evergrow.foundation.errors import EvergrowError, InvalidInputError
from evergrow.service.label_studio.annotations import Task, read_task
from evergrow.service.label_studio.api import LabelStudioApi
from evergrow.service.label_studio.learner import Learner
from evergrow.service.label_studio.predictions import (
    class_probabilities,
    predict_tasks,
)
from evergrow.service.label_studio.reconciliation import ConnectedProject
from evergrow.service.label_studio.task_images import TaskImages

# Tasks that have a place; annotators seldom do more before the order is computed again.
_N_PLACES = 20
# Tasks that are compared; those with the lowest ids, so that the others follow later.
_MAX_TASKS = 2000
# Embeddings of labelled examples that candidates are compared with, the newest ones.
_MAX_LABELLED = 2000
# Predictions that are changed in one round: all places, and some choices.
_MAX_CHANGED = 2 * _N_PLACES
# Lessons of this time are served by one round; the pause is also a multiple of its duration, so
# that Label Studio, which is one process in its simplest form, has time for annotators.
_PAUSE_SECONDS = 1.0
_PAUSE_RATIO = 4.0
_FETCH_SECONDS = 60.0
_AT_ONCE = 500
_WITHOUT_ANNOTATIONS = {
    "filters": {
        "conjunction": "and",
        "items": [
            {
                "filter": "filter:tasks:total_annotations",
                "operator": "equal",
                "type": "Number",
                "value": 0,
            }
        ],
    }
}

_log = logging.getLogger("evergrow.service")


class Ranker:
    """The thread that orders tasks by what should be labelled next; a context manager."""

    def __init__(self, api: LabelStudioApi, learner: Learner, images: TaskImages) -> None:
        self._api = api
        self._learner = learner
        self._images = images
        self._waiting: dict[int, ConnectedProject] = {}
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="label-studio-ranking", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop after the current request."""
        self._stopping.set()
        self._changed.set()
        self._thread.join()

    def notify(self, found: ConnectedProject) -> None:
        """Order the tasks of a project again, soon."""
        if found.project.ranks and found.project.model_version:
            with self._lock:
                self._waiting[found.project.id] = found
            self._changed.set()

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for found in waiting.values():
                if self._stopping.is_set():
                    return
                self._rank_logged(found)
            taken = time.monotonic() - began
            if self._stopping.wait(max(_PAUSE_SECONDS, _PAUSE_RATIO * taken)):
                return

    def _rank_logged(self, found: ConnectedProject) -> None:
        try:
            self.rank(found)
        except EvergrowError as error:
            # The next lesson, or the next look for changes, tries again.
            _log.info("tasks of Label Studio were not ordered: %s", error)
        # No request waits for it, so the log is the only place to report it.
        except Exception:  # noqa: BLE001
            _log.exception("tasks of Label Studio were not ordered")

    def rank(self, found: ConnectedProject) -> None:
        """Write the places of the next tasks of a project, where they changed."""
        project, config = found.project, found.config
        values: dict[int, Any] = {}
        tasks: list[Task] = []
        listed = self._api.tasks(project.id, _WITHOUT_ANNOTATIONS)
        for value in itertools.islice(listed, _MAX_TASKS):
            try:
                task = read_task(value, config)
            except InvalidInputError:
                continue
            values[task.id] = value
            tasks.append(task)
        rows = self._images.rows(tasks, time.monotonic() + _FETCH_SECONDS)
        tasks = [task for task in tasks if isinstance(rows.get(task.id), np.ndarray)]
        if not tasks:
            return
        snapshot = self._learner.workspace.snapshot
        answers = {one.task: one for one in predict_tasks(snapshot, config, tasks, rows)}
        matrix = np.stack([np.asarray(rows[task.id]) for task in tasks])
        places = {
            tasks[row].id: place / len(tasks)
            for place, row in enumerate(self._order(matrix).tolist())
        }
        new: list[dict[str, Any]] = []
        changed: list[tuple[int, dict[str, Any]]] = []
        for task in tasks:
            wanted = answers[task.id].to_json(config, project.model_version)
            wanted["score"] = places.get(task.id, 1.0)
            stored = _stored(values[task.id], project.model_version)
            if stored is None:
                new.append({**wanted, "task": task.id})
            elif _differs(stored, wanted):
                changed.append((stored["id"], wanted))
        for first in range(0, len(new), _AT_ONCE):
            self._api.add_predictions(project.id, new[first : first + _AT_ONCE])
        # The next tasks first, then those that lost their place, then new choices.
        changed.sort(key=lambda one: one[1]["score"])
        for number, wanted in changed[:_MAX_CHANGED]:
            if self._stopping.is_set():
                return
            self._api.change_prediction(number, wanted)

    def _order(self, matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Rows of the next tasks, the most useful first."""
        workspace = self._learner.workspace
        snapshot = workspace.snapshot
        n = min(_N_PLACES, len(matrix))
        if not len(snapshot.class_ids):
            return next_to_label(matrix, n=n)
        probabilities = class_probabilities(snapshot, matrix)
        examples = workspace.examples(limit=_MAX_LABELLED, newest_first=True).items
        known = workspace.log.rows(np.array([one.id for one in examples], dtype=np.int64))
        labels = [one.label for one in examples]
        return next_to_label(matrix, known, labels, probabilities=probabilities, n=n)


def _stored(value: Mapping[str, Any], version: str) -> Mapping[str, Any] | None:
    """The prediction of a task that has its place."""
    stored = value.get("predictions")
    for one in stored if isinstance(stored, Sequence) else ():
        if isinstance(one, Mapping) and one.get("model_version") == version:
            return one
    return None


def _differs(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a place or a choice changed; probabilities change with every lesson."""
    score = stored.get("score")
    if not isinstance(score, float) or abs(score - wanted["score"]) > 1e-9:
        return True
    return [_choice_of(one) for one in stored.get("result") or ()] != [
        _choice_of(one) for one in wanted["result"]
    ]


def _choice_of(item: Any) -> Any:
    return item.get("value") if isinstance(item, Mapping) else None
