"""Which task taught which example, read from the audit log of the workspace.

Every change that is made for a task has an action of its own, which names the project and the task.
The audit log therefore says for each task which example it has and which label it had when the task
was last read. No other file has to agree with it after a crash.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evergrow.workspace.records import Event
from evergrow.workspace.tokens import LABEL_STUDIO

_ACTION = re.compile(r"label-studio-([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,18})-[0-9]{1,18}")


@dataclass(frozen=True, order=True)
class TaskKey:
    """A task of a project; ``created`` tells projects of different databases apart."""

    project: int
    created: int
    task: int

    def action(self, version: int) -> str:
        """Return the action of a change for this task, made at a version of the workspace."""
        return f"label-studio-{self.project}-{self.created}-{self.task}-{version}"


@dataclass(frozen=True)
class Claim:
    """The example of a task, and the label that the task had."""

    example: int
    label: str


class Claims:
    """The examples of tasks; built from the audit log and kept up to date afterwards."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._claims: dict[TaskKey, Claim] = {}
        self._tasks_of: defaultdict[int, set[TaskKey]] = defaultdict(set)
        for event in events:
            self._replay(event)

    def __len__(self) -> int:
        return len(self._claims)

    def __contains__(self, key: TaskKey) -> bool:
        return key in self._claims

    def get(self, key: TaskKey) -> Claim | None:
        """Return the claim of a task."""
        return self._claims.get(key)

    def of_project(self, project: int, created: int) -> Iterator[TaskKey]:
        """All tasks of a project that have an example."""
        return (key for key in [*self._claims] if (key.project, key.created) == (project, created))

    def with_task(self, task: int) -> list[TaskKey]:
        """All tasks of this id, of any project."""
        return [key for key in self._claims if key.task == task]

    @property
    def projects(self) -> set[tuple[int, int]]:
        """Ids and times of creation of all projects."""
        return {(key.project, key.created) for key in self._claims}

    def is_shared(self, key: TaskKey, example: int) -> bool:
        """Whether another task has the same example."""
        return bool(self._tasks_of[example] - {key})

    def put(self, key: TaskKey, claim: Claim) -> None:
        """Note that a task has an example with a label."""
        self.drop(key)
        self._claims[key] = claim
        self._tasks_of[claim.example].add(key)

    def drop(self, key: TaskKey) -> None:
        """Note that a task has no example any more."""
        claim = self._claims.pop(key, None)
        if claim is not None:
            self._tasks_of[claim.example].discard(key)

    def _replay(self, event: Event) -> None:
        action = event.body.get("action")
        found = _ACTION.fullmatch(action) if isinstance(action, str) else None
        if event.actor != LABEL_STUDIO or found is None:
            return
        key = TaskKey(*(int(number) for number in found.groups()))
        examples = event.body.get("examples") or [event.body.get("example")]
        label = event.body.get("label")
        if event.kind == "relabel":
            label = event.body.get("to", {}).get("label")
        if event.kind == "remove":
            for other in [*self._tasks_of[examples[0]], key]:
                self.drop(other)
        elif isinstance(examples[0], int) and isinstance(label, str):
            self.put(key, Claim(examples[0], label))
