"""Compares tasks of Label Studio with the workspace, and teaches, moves or takes back examples.

A task is compared with its claim (see ``claims``). If its label is the one it had when it was last
read, nothing happens, whatever was done to the example in the workspace since. A change of the
workspace is one transaction, which also records the claim; the process may end at any moment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.service.label_studio.annotations import Task, read_task
from evergrow.service.label_studio.api import LabelStudioError, Project
from evergrow.service.label_studio.claims import Claim, Claims, TaskKey
from evergrow.service.label_studio.labelling_config import LabellingConfig
from evergrow.service.label_studio.learner import EmbeddedImage, Learner, LearnerBusyError
from evergrow.service.label_studio.task_images import TaskImages
from evergrow.workspace.records import (
    Event,
    NewExample,
    NoSuchExampleError,
    Request,
    WorkspaceFullError,
)
from evergrow.workspace.tokens import LABEL_STUDIO
from evergrow.workspace.workspace import Workspace

_MAX_PROBLEMS = 20
# Answers of Label Studio, or of a proxy before it, that may be others later.
_PASSING = frozenset((408, 429, 500, 502, 503, 504))
_MAX_TRIES = 3
_EVENTS_AT_ONCE = 500
# Tasks whose images are held in memory at a time.
_BATCH = 16

_log = logging.getLogger("evergrow.service")


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


class Reconciler:
    """Brings examples of the workspace to the labels of tasks."""

    def __init__(self, learner: Learner, images: TaskImages) -> None:
        self._learner = learner
        self._images = images
        self.claims = Claims(_all_events(learner.workspace))
        # How often an image could not be had for a reason that may pass, by task.
        self._n_failures: Counter[int] = Counter()

    def compare(
        self, found: ConnectedProject, values: Iterable[Any], result: SyncResult
    ) -> dict[int, Task]:
        """Compare tasks that Label Studio lists with their claims; return them by their ids."""
        listed: dict[int, Task] = {}
        new: list[Task] = []
        for value in values:
            try:
                task = read_task(value, found.config)
            except InvalidInputError as error:
                result.add_problem(str(error))
                continue
            listed[task.id] = task
            result.n_tasks += 1
            if not self._is_new(found, task):
                self.apply(found, task, result)
                continue
            new.append(task)
            if len(new) == _BATCH:
                self._teach(found, new, result)
                new = []
        self._teach(found, new, result)
        return listed

    def apply(self, found: ConnectedProject, task: Task, result: SyncResult) -> None:
        """Move the example of a task, or take it back."""
        key = found.key(task.id)
        claim = self.claims.get(key)
        if claim is None or claim.label == task.label:
            return
        try:
            if task.label is None:
                result.n_removed += self._take_back(key, claim)
            else:
                self._relabel(key, claim.example, task.label)
                result.n_moved += 1
        except WorkspaceFullError:
            raise
        except WorkspaceError as error:
            _report(task, error, result)

    def _is_new(self, found: ConnectedProject, task: Task) -> bool:
        """Whether the image of a task must be fetched to teach it."""
        claim = self.claims.get(found.key(task.id))
        if task.label is None or (claim is not None and claim.label == task.label):
            return False
        return claim is None or not self._exists(claim.example)

    def _exists(self, example: int) -> bool:
        try:
            self._learner.workspace.example(example)
        except NoSuchExampleError:
            return False
        return True

    def _relabel(self, key: TaskKey, example: int, label: str) -> None:
        workspace = self._learner.workspace
        request = self._request(key)
        self._learner.change(partial(workspace.relabel, example, label=label, request=request))
        self.claims.put(key, Claim(example, label))

    def _take_back(self, key: TaskKey, claim: Claim) -> int:
        """Remove the example of a task; return how many were removed.

        One that another task has too, or that was first taught by other means, stays.
        """
        workspace = self._learner.workspace
        try:
            ours = workspace.example(claim.example).actor == LABEL_STUDIO
        except NoSuchExampleError:
            ours = False
        if ours and not self.claims.is_shared(key, claim.example):
            request = self._request(key)
            self._learner.change(partial(workspace.remove, claim.example, request=request))
            self.claims.drop(key)
            return 1
        self.claims.drop(key)
        return 0

    def _teach(self, found: ConnectedProject, tasks: Sequence[Task], result: SyncResult) -> None:
        """Fetch the images of tasks and teach them.

        The first error that may pass is raised once all others are taught. A task that fails so
        again and again is reported instead, so that it does not hold up the others.
        """
        images = self._images.embed(tasks)
        failure: Exception | None = None
        for task in tasks:
            image = images[task.id]
            if isinstance(image, EmbeddedImage) and task.label is not None:
                self._n_failures.pop(task.id, None)
                try:
                    self._teach_one(found.key(task.id), task.label, image, result)
                except WorkspaceFullError:
                    raise
                except WorkspaceError as error:
                    _report(task, error, result)
            elif isinstance(image, Exception):
                self._n_failures[task.id] += 1
                if _is_passing(image) and self._n_failures[task.id] <= _MAX_TRIES:
                    failure = failure or image
                else:
                    _report(task, image, result)
        if failure is not None:
            raise failure

    def _teach_one(
        self, key: TaskKey, label: str, image: EmbeddedImage, result: SyncResult
    ) -> None:
        request = self._request(key)
        # Label Studio decides: an image that another class has moves.
        example = NewExample(image.row, label, None, image.picture, request, move=True)
        taught = self._learner.teach(example)
        if taught.duplicate:
            # Teaching wrote nothing, so the claim is recorded by confirming the label.
            self._relabel(key, taught.example.id, label)
        self.claims.put(key, Claim(taught.example.id, label))
        if taught.moved_from is not None:
            result.n_moved += 1
        elif not taught.duplicate:
            result.n_taught += 1

    def _request(self, key: TaskKey) -> Request:
        return Request(LABEL_STUDIO, action=key.action(self._learner.workspace.version))


def _report(task: Task, error: Exception, result: SyncResult) -> None:
    _log.warning("task %d of Label Studio was not learnt: %s", task.id, error)
    result.add_problem(f"task {task.id}: {error}")


def _is_passing(error: object) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, LabelStudioError):
        return error.status is None or error.status in _PASSING
    return isinstance(error, LearnerBusyError)


def _all_events(workspace: Workspace) -> Iterable[Event]:
    """All events of the audit log, the oldest first."""
    after: str | None = None
    while True:
        page = workspace.events(after=after, limit=_EVENTS_AT_ONCE, newest_first=False)
        yield from page.items
        after = page.next
        if after is None:
            return
