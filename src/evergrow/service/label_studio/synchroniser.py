"""The thread that keeps the workspace in the state of Label Studio.

Webhooks, requests and the clock say what to look at; ``reconciliation`` does the rest.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.annotations import Task
from evergrow.service.label_studio.api import (
    PAGE_SIZE,
    LabelStudioApi,
    LabelStudioError,
    updated_since,
    with_ids,
)
from evergrow.service.label_studio.labelling_config import parse_labelling_config
from evergrow.service.label_studio.learner import Learner, LearnerBusyError
from evergrow.service.label_studio.messages import Hint
from evergrow.service.label_studio.reconciliation import ConnectedProject, Reconciler, SyncResult
from evergrow.service.label_studio.task_images import TaskImages

# Where Label Studio sends webhooks to; a project without one is not connected any more.
WEBHOOK_PATH = "/v1/integrations/label-studio/webhook"
# Transactions of Label Studio may end later than others that began after them.
_OVERLAP = timedelta(seconds=30)
# All tasks are compared again after so long: deleted tasks are not in the list of changed ones.
_WHOLE_SECONDS = 3600.0
_FIRST_RETRY_SECONDS = 1.0
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

_log = logging.getLogger("evergrow.service")


class _NotSupportedError(Exception):
    """The labelling configuration of a project is not supported."""


@dataclass(frozen=True, eq=False)
class _Job:
    """A hint, or None to compare all tasks of all projects."""

    hint: Hint | None
    result: Future[SyncResult] = field(default_factory=Future)


class Synchroniser:
    """The thread that applies Label Studio's annotations to the workspace; a context manager.

    Parameters
    ----------
    api : LabelStudioApi
        Label Studio.
    learner : Learner
        The service.
    images : TaskImages
        Images of tasks.
    period : float
        Seconds between two looks for changes that no webhook announced.
    on_changed : callable
        Called with a project after its tasks, or what was learnt from them, changed.
    """

    def __init__(
        self,
        api: LabelStudioApi,
        learner: Learner,
        images: TaskImages,
        *,
        period: float,
        on_changed: Callable[[ConnectedProject], None],
    ) -> None:
        self._api = api
        self._reconciler = Reconciler(learner, images)
        self._period = period
        self._on_changed = on_changed
        self._projects: dict[int, ConnectedProject] = {}
        # Projects that were heard of and could not be read yet.
        self._wanted: set[int] = set()
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._stopping = threading.Event()
        self._whole_at = time.monotonic()
        # Whether projects of earlier runs were looked up already.
        self._recalled = False
        self._retry_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="label-studio", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop after the current change."""
        self._stopping.set()
        self._jobs.put(None)
        self._thread.join()

    def submit(self, hint: Hint | None) -> Future[SyncResult]:
        """Read tasks again, those of a hint or all; the future gives what was done."""
        job = _Job(hint)
        self._jobs.put(job)
        return job.result

    def knows(self, project: int) -> bool:
        """Whether a project is connected, so that its changes are looked for."""
        return project in self._projects

    def _run(self) -> None:
        while not self._stopping.is_set():
            jobs = self._gather(self._retry_seconds or (self._period if self._recalled else 0.0))
            if self._stopping.is_set():
                _cancel(jobs)
                return
            try:
                self._recall()
                result = self._do(jobs)
            except (LabelStudioError, LearnerBusyError) as error:
                if not self._retry_seconds:
                    _log.warning("%s; trying again", error)
                self._postpone(jobs, error)
            # The jobs get the error; the thread goes on.
            except Exception as error:  # noqa: BLE001
                _log.exception("Label Studio's annotations could not be applied; trying again")
                self._postpone(jobs, error)
            else:
                if self._retry_seconds:
                    _log.info("Label Studio can be reached again")
                self._retry_seconds = 0.0
                for job in jobs:
                    if job.result.set_running_or_notify_cancel():
                        job.result.set_result(result)

    def _gather(self, seconds: float) -> list[_Job]:
        """Wait for a job; return all that are queued, or nothing when it is time to look again."""
        jobs: list[_Job] = []
        try:
            job = self._jobs.get(timeout=seconds) if seconds else self._jobs.get_nowait()
            while True:
                if job is not None:
                    jobs.append(job)
                job = self._jobs.get_nowait()
        except queue.Empty:
            return jobs

    def _postpone(self, jobs: list[_Job], error: Exception) -> None:
        self._retry_seconds = min(self._period, 2 * self._retry_seconds or _FIRST_RETRY_SECONDS)
        # All tasks are compared next, so that what the hints were about is not forgotten.
        self._whole_at = -math.inf
        _fail(jobs, error)

    def _recall(self) -> None:
        """Connect the projects of earlier runs that are still connected."""
        if self._recalled:
            return
        for number, created in sorted(self._reconciler.claims.projects):
            try:
                if not self._api.has_webhook(number, WEBHOOK_PATH):
                    continue
                found = self._load(number)
            except LabelStudioError as error:
                if not error.is_missing:
                    raise
            except _NotSupportedError as error:
                _log.warning("project %d of Label Studio is ignored: %s", number, error)
            else:
                if found.project.created != created:
                    # Another database, whose project has the same id by chance.
                    self._projects.pop(number)
        self._recalled = True

    def _do(self, jobs: Sequence[_Job]) -> SyncResult:
        """Do the jobs at once, or look for changes if there are none."""
        hints = [job.hint for job in jobs if job.hint is not None]
        whole = len(hints) < len(jobs) or time.monotonic() > self._whole_at + _WHOLE_SECONDS
        if whole:
            self._whole_at = time.monotonic()
        result = SyncResult()
        # What one project cannot have does not hold up the others.
        failure: LabelStudioError | None = None
        named = {hint.project for hint in hints if hint.project is not None}
        for hint in hints:
            # Some messages name no project.
            if hint.project is None:
                keys = [
                    key for task in hint.tasks for key in self._reconciler.claims.with_task(task)
                ]
                named |= {key.project for key in keys}
        self._wanted |= named
        for number in self._wanted | (self._projects.keys() if whole or not jobs else set()):
            mine = [hint for hint in hints if hint.project in (number, None)]
            everything = Hint(number, whole=True)
            try:
                self._do_project(number, [everything] if whole else mine, result)
            except LabelStudioError as error:
                failure = error
                if error.status is None:
                    break
            else:
                self._wanted.discard(number)
        if failure is not None:
            raise failure
        return result

    def _do_project(self, number: int, hints: Sequence[Hint], result: SyncResult) -> None:
        tasks = frozenset[int]().union(*(hint.tasks for hint in hints))
        # A hint without tasks may mean that the configuration has changed.
        refresh = any(not hint.tasks for hint in hints)
        n_before = result.n_changes
        try:
            found = self._projects.get(number)
            if found is None or refresh:
                found = self._load(number)
            if found.seen is None or any(hint.whole for hint in hints):
                self._compare_all(found, result)
            else:
                if tasks:
                    self._compare_some(found, sorted(tasks), result)
                if refresh or not hints:
                    self._compare_changed(found, result)
        except _NotSupportedError as error:
            self._projects.pop(number, None)
            _log.warning("project %d of Label Studio is ignored: %s", number, error)
            result.add_problem(f"project {number}: {error}")
        except LabelStudioError as error:
            if not error.is_missing:
                raise
            # What a deleted project taught stays.
            self._projects.pop(number, None)
            result.add_problem(f"project {number}: {error}")
        else:
            if refresh or result.n_changes > n_before:
                self._on_changed(found)

    def _load(self, number: int) -> ConnectedProject:
        """Read a project again."""
        project = self._api.project(number)
        try:
            config = parse_labelling_config(project.label_config)
        except InvalidInputError as error:
            raise _NotSupportedError(str(error)) from error
        found = ConnectedProject(project, config)
        known = self._projects.get(number)
        if known is not None and known.project.created == project.created:
            found.seen = known.seen
        self._projects[number] = found
        return found

    def _compare_all(self, found: ConnectedProject, result: SyncResult) -> None:
        listed = self._list(found, result)
        _note_times(found, listed.values())
        claimed = self._reconciler.claims.of_project(found.project.id, found.project.created)
        # A task may be missing because pages moved while they were read.
        left = sorted(key.task for key in claimed if key.task not in listed)
        if left:
            self._compare_some(found, left, result)

    def _compare_changed(self, found: ConnectedProject, result: SyncResult) -> None:
        if found.seen is None:
            self._compare_all(found, result)
            return
        since = (found.seen - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        _note_times(found, self._list(found, result, updated_since(since)).values())

    def _compare_some(
        self, found: ConnectedProject, tasks: Sequence[int], result: SyncResult
    ) -> None:
        for first in range(0, len(tasks), PAGE_SIZE):
            some = tasks[first : first + PAGE_SIZE]
            # Their times are not noted: a task that changed before them may not be known yet.
            listed = self._list(found, result, with_ids(some))
            for number in some:
                if number not in listed:
                    self._reconciler.apply(found, Task(number, None), result)

    def _list(
        self,
        found: ConnectedProject,
        result: SyncResult,
        query: Mapping[str, Any] | None = None,
    ) -> dict[int, Task]:
        """Compare the tasks of a query with the workspace; return them by their ids."""
        tasks = self._while_running(self._api.tasks(found.project.id, query))
        return self._reconciler.compare(found, tasks, result)

    def _while_running(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if self._stopping.is_set():
                raise LearnerBusyError("the service is stopping")
            yield value


def _note_times(found: ConnectedProject, tasks: Iterable[Task]) -> None:
    """Note until when the tasks of a project are known."""
    times = [time_of for task in tasks if (time_of := _time_of(task)) is not None]
    found.seen = max([*times, found.seen or _LONG_AGO])


def _time_of(task: Task) -> datetime | None:
    try:
        found = datetime.fromisoformat(task.updated_at)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _fail(jobs: Iterable[_Job], error: Exception) -> None:
    for job in jobs:
        if job.result.set_running_or_notify_cancel():
            job.result.set_exception(error)


def _cancel(jobs: Iterable[_Job]) -> None:
    _fail(jobs, LearnerBusyError("the service is stopping"))
