"""Brings the workspace to the state of Label Studio, whatever messages were lost or repeated.

A task is compared with its claim (see ``claims``). If its label is the one it had when it was last
read, nothing happens, whatever was done to the example in the workspace since. Otherwise the
example is taught, moved or taken back. A change of the workspace is one transaction, which also
records the claim; the process may end at any moment.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self, TypeGuard

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.service.label_studio.annotations import Task, read_task
from evergrow.service.label_studio.api import (
    PAGE_SIZE,
    LabelStudioApi,
    LabelStudioError,
    Project,
    updated_since,
    with_ids,
)
from evergrow.service.label_studio.claims import Claim, Claims, TaskKey
from evergrow.service.label_studio.labelling_config import LabellingConfig, parse_labelling_config
from evergrow.service.label_studio.learner import EmbeddedImage, Learner, LearnerBusyError
from evergrow.service.label_studio.messages import Hint
from evergrow.service.label_studio.task_images import TaskImages
from evergrow.workspace.records import (
    NewExample,
    NoSuchExampleError,
    Request,
    TeachResult,
    WorkspaceFullError,
)
from evergrow.workspace.tokens import LABEL_STUDIO
from evergrow.workspace.workspace import Workspace

# Where Label Studio sends webhooks to; a project without one is not connected any more.
WEBHOOK_PATH = "/v1/integrations/label-studio/webhook"
# Transactions of Label Studio may end later than others that began after them.
_OVERLAP = timedelta(seconds=30)
# All tasks are compared again after so long: deleted tasks are not in the list of changed ones.
_WHOLE_SECONDS = 3600.0
_FIRST_RETRY_SECONDS = 1.0
_MAX_PROBLEMS = 20
_EVENTS_AT_ONCE = 500
# Tasks whose images are held in memory at a time.
_BATCH = 16

_log = logging.getLogger("evergrow.service")


class _NotSupportedError(Exception):
    """The labelling configuration of a project is not supported."""


@dataclass
class SyncResult:
    """What a synchronisation did: numbers of tasks, and why some of them failed."""

    n_tasks: int = 0
    n_taught: int = 0
    n_moved: int = 0
    n_removed: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def n_changes(self) -> int:
        """Number of changes of the workspace."""
        return self.n_taught + self.n_moved + self.n_removed

    def add_problem(self, text: str) -> None:
        """Note why something failed; a few are enough."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)


@dataclass
class ConnectedProject:
    """A project as it was last read."""

    project: Project
    config: LabellingConfig
    # Newest time of change of its tasks, by the clock of Label Studio; None before the first pass.
    seen: datetime | None = None

    def key(self, task: int) -> TaskKey:
        """Return the key of a task of this project."""
        return TaskKey(self.project.id, self.project.created, task)


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
        self._learner = learner
        self._images = images
        self._period = period
        self._on_changed = on_changed
        self._claims = Claims()
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
        """Read the claims and start the thread."""
        self._claims = Claims(_all_events(self._learner.workspace))
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

    def _run(self) -> None:
        while not self._stopping.is_set():
            jobs = self._gather(self._retry_seconds or (self._period if self._recalled else 0.0))
            if self._stopping.is_set():
                _cancel(jobs)
                return
            try:
                self._recall()
                report = self._do(jobs)
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
                        job.result.set_result(report)

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
        # What the hints were about is found later, in the list of changed tasks.
        _fail(jobs, error)

    def _recall(self) -> None:
        """Connect the projects of earlier runs that are still connected."""
        if self._recalled:
            return
        for number, created in sorted(self._claims.projects):
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
        report = SyncResult()
        named = {hint.project for hint in hints if hint.project is not None}
        for hint in hints:
            # Some messages name no project.
            if hint.project is None:
                keys = [key for task in hint.tasks for key in self._claims.with_task(task)]
                named |= {key.project for key in keys}
        self._wanted |= named
        for number in self._wanted | (self._projects.keys() if whole or not jobs else set()):
            mine = [hint for hint in hints if hint.project in (number, None)]
            everything = Hint(number, whole=True)
            self._do_project(number, [everything] if whole else mine, report)
            self._wanted.discard(number)
        return report

    def _do_project(self, number: int, hints: Sequence[Hint], report: SyncResult) -> None:
        tasks = frozenset[int]().union(*(hint.tasks for hint in hints))
        # A hint without tasks may mean that the configuration has changed.
        refresh = any(not hint.tasks for hint in hints)
        n_before = report.n_changes
        try:
            found = self._projects.get(number)
            if found is None or refresh:
                found = self._load(number)
            if found.seen is None or any(hint.whole for hint in hints):
                self._compare_all(found, report)
            else:
                if tasks:
                    self._compare_some(found, sorted(tasks), report)
                if refresh or not hints:
                    self._compare_changed(found, report)
        except _NotSupportedError as error:
            self._projects.pop(number, None)
            _log.warning("project %d of Label Studio is ignored: %s", number, error)
            report.add_problem(f"project {number}: {error}")
        except LabelStudioError as error:
            if not error.is_missing:
                raise
            # What a deleted project taught stays.
            self._projects.pop(number, None)
            report.add_problem(f"project {number}: {error}")
        else:
            if refresh or report.n_changes > n_before:
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

    def _compare_all(self, found: ConnectedProject, report: SyncResult) -> None:
        listed = self._compare(found, self._api.tasks(found.project.id), report)
        claimed = self._claims.of_project(found.project.id, found.project.created)
        # A task may be missing because pages moved while they were read.
        left = sorted(key.task for key in claimed if key.task not in listed)
        if left:
            self._compare_some(found, left, report)

    def _compare_changed(self, found: ConnectedProject, report: SyncResult) -> None:
        if found.seen is None:
            self._compare_all(found, report)
            return
        since = (found.seen - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self._compare(found, self._api.tasks(found.project.id, updated_since(since)), report)

    def _compare_some(
        self, found: ConnectedProject, tasks: Sequence[int], report: SyncResult
    ) -> None:
        for first in range(0, len(tasks), PAGE_SIZE):
            some = tasks[first : first + PAGE_SIZE]
            listed = self._compare(
                found, self._api.tasks(found.project.id, with_ids(some)), report, partial_list=True
            )
            for number in some:
                if number not in listed:
                    self._apply(found, Task(number, None), report)

    def _compare(
        self,
        found: ConnectedProject,
        values: Iterable[Any],
        report: SyncResult,
        *,
        partial_list: bool = False,
    ) -> set[int]:
        """Compare tasks that Label Studio lists with their claims; return their ids."""
        listed: set[int] = set()
        newest = found.seen
        new: list[Task] = []
        for value in values:
            try:
                task = read_task(value, found.config)
            except InvalidInputError as error:
                report.add_problem(str(error))
                continue
            listed.add(task.id)
            report.n_tasks += 1
            newest = max(filter(None, (newest, _time_of(task))), default=None)
            if self._stopping.is_set():
                raise LearnerBusyError("the service is stopping")
            if self._is_new(found, task):
                new.append(task)
                if len(new) == _BATCH:
                    self._teach(found, new, report)
                    new = []
            else:
                self._apply(found, task, report)
        self._teach(found, new, report)
        # Some tasks say nothing about the others: one that changed before them may be missing.
        if not partial_list:
            found.seen = newest or datetime.fromisoformat("2000-01-01T00:00:00+00:00")
        return listed

    def _is_new(self, found: ConnectedProject, task: Task) -> bool:
        """Whether the image of a task must be fetched to teach it."""
        claim = self._claims.get(found.key(task.id))
        if task.label is None or (claim is not None and claim.label == task.label):
            return False
        return claim is None or not self._exists(claim.example)

    def _exists(self, example: int) -> bool:
        try:
            self._learner.workspace.example(example)
        except NoSuchExampleError:
            return False
        return True

    def _apply(self, found: ConnectedProject, task: Task, report: SyncResult) -> None:
        """Move the example of a task, or take it back."""
        key = found.key(task.id)
        claim = self._claims.get(key)
        if claim is None or claim.label == task.label:
            return
        if task.label is None:
            report.n_removed += self._take_back(key, claim)
            return
        self._relabel(key, claim.example, task.label)
        report.n_moved += 1

    def _relabel(self, key: TaskKey, example: int, label: str) -> None:
        workspace = self._learner.workspace
        request = self._request(key)
        self._learner.change(partial(workspace.relabel, example, label=label, request=request))
        self._claims.put(key, Claim(example, label))

    def _take_back(self, key: TaskKey, claim: Claim) -> int:
        """Remove the example of a task; return how many were removed.

        One that another task has too, or that was first taught by other means, stays.
        """
        workspace = self._learner.workspace
        try:
            ours = workspace.example(claim.example).actor == LABEL_STUDIO
        except NoSuchExampleError:
            ours = False
        if ours and not self._claims.is_shared(key, claim.example):
            request = self._request(key)
            self._learner.change(partial(workspace.remove, claim.example, request=request))
            self._claims.drop(key)
            return 1
        self._claims.drop(key)
        return 0

    def _teach(self, found: ConnectedProject, tasks: Sequence[Task], report: SyncResult) -> None:
        """Fetch the images of tasks and teach them."""
        if not tasks:
            return
        images = self._images.embed(tasks)
        for task in tasks:
            image = images[task.id]
            if isinstance(image, EmbeddedImage) and task.label is not None:
                try:
                    self._teach_one(found.key(task.id), task.label, image, report)
                except WorkspaceFullError:
                    raise
                except WorkspaceError as error:
                    image = error
            if isinstance(image, LearnerBusyError) or _is_unreachable(image):
                raise image
            if isinstance(image, Exception):
                _log.warning("task %d of Label Studio was not learnt: %s", task.id, image)
                report.add_problem(f"task {task.id}: {image}")

    def _teach_one(
        self, key: TaskKey, label: str, image: EmbeddedImage, report: SyncResult
    ) -> None:
        request = self._request(key)
        # Label Studio decides: an image that another class has moves.
        example = NewExample(image.row, label, None, image.picture, request, move=True)
        result: TeachResult = self._learner.teach(example)
        if result.duplicate:
            # Teaching wrote nothing, so the claim is recorded by confirming the label.
            self._relabel(key, result.example.id, label)
        self._claims.put(key, Claim(result.example.id, label))
        if result.moved_from is not None:
            report.n_moved += 1
        elif not result.duplicate:
            report.n_taught += 1

    def _request(self, key: TaskKey) -> Request:
        return Request(LABEL_STUDIO, action=key.action(self._learner.workspace.version))


def _is_unreachable(image: object) -> TypeGuard[LabelStudioError]:
    return isinstance(image, LabelStudioError) and image.status is None


def _time_of(task: Task) -> datetime | None:
    try:
        found = datetime.fromisoformat(task.updated_at)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _all_events(workspace: Workspace) -> Iterable[Any]:
    """All events of the audit log, the oldest first."""
    after: str | None = None
    while True:
        page = workspace.events(after=after, limit=_EVENTS_AT_ONCE, newest_first=False)
        yield from page.items
        after = page.next
        if after is None:
            return


def _fail(jobs: Iterable[_Job], error: Exception) -> None:
    for job in jobs:
        if job.result.set_running_or_notify_cancel():
            job.result.set_exception(error)


def _cancel(jobs: Iterable[_Job]) -> None:
    _fail(jobs, LearnerBusyError("the service is stopping"))
