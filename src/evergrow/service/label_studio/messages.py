"""What Label Studio sends to a back end: requests to predict, and webhooks.

Only ids, addresses of images and the labelling configuration are read. Everything else, such as
older predictions, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.annotations import Task, is_id, read_task
from evergrow.service.label_studio.labelling_config import LabellingConfig, parse_labelling_config

# The connector sends all tasks that lack a prediction in one request.
MAX_TASKS = 10_000
# Webhooks that say what happened to annotations, and which of their members have tasks.
_CHANGED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
_TASKS_DELETED = "TASKS_DELETED"
# Of these webhooks only the project is of interest: what changed in it is read again.
_PROJECT_CHANGED = ("ANNOTATIONS_DELETED", "PROJECT_UPDATED", "TASKS_CREATED")
# Sent by a button of Label Studio. There is nothing to train, but all tasks are compared.
_START_TRAINING = "START_TRAINING"


@dataclass(frozen=True)
class PredictRequest:
    """Tasks to predict, and the configuration of their project."""

    project: int
    config: LabellingConfig
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Hint:
    """What may have changed: these tasks, or anything in the project if there are none.

    ``project`` is None if the message does not say it. ``whole`` asks to compare all tasks.
    """

    project: int | None
    tasks: frozenset[int] = frozenset()
    whole: bool = False


def read_setup(value: Any) -> tuple[int, LabellingConfig]:
    """Read the project and its configuration, as sent when a back end is connected."""
    members = _members(value)
    return project_of(members.get("project")), _config(members.get("schema"))


def read_predict(value: Any) -> PredictRequest:
    """Read a request to predict."""
    members = _members(value)
    config = _config(members.get("label_config"))
    sent = members.get("tasks")
    if not isinstance(sent, list) or not 0 < len(sent) <= MAX_TASKS:
        raise InvalidInputError(f"tasks must be a list of 1 to {MAX_TASKS} tasks")
    tasks = tuple(read_task(one, config) for one in sent)
    if len({task.id for task in tasks}) < len(tasks):
        raise InvalidInputError("tasks: two have the same id")
    return PredictRequest(project_of(members.get("project")), config, tasks)


def read_webhook(value: Any) -> Hint | None:
    """Read which tasks a webhook is about; None if it does not concern annotations."""
    members = _members(value)
    action = members.get("action")
    if not isinstance(action, str):
        raise InvalidInputError("action: a text is required")
    project = _id_of(members.get("project"))
    if action in _CHANGED:
        tasks = (*_ids(members.get("annotation"), "task"), *_ids(members.get("task"), "id"))
        return Hint(project, frozenset(tasks))
    if action == _TASKS_DELETED:
        return Hint(project, frozenset(_ids(members.get("tasks"), "id")))
    if action == _START_TRAINING:
        return Hint(project, whole=True)
    return Hint(project) if action in _PROJECT_CHANGED else None


def project_of(value: Any) -> int:
    """Return the id of a project of what the connector sends, such as "3.1700000000"."""
    text = str(value).partition(".")[0] if isinstance(value, str | int | float) else ""
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or int(text) == 0:
        raise InvalidInputError("project: an id followed by a dot and a time is required")
    return int(text)


def _members(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError("the body must be a JSON object")
    return value


def _config(value: Any) -> LabellingConfig:
    if not isinstance(value, str):
        raise InvalidInputError("the labelling configuration is missing")
    return parse_labelling_config(value)


def _id_of(value: Any, member: str = "id") -> int | None:
    found = value.get(member) if isinstance(value, Mapping) else None
    return found if is_id(found) else None


def _ids(value: Any, member: str) -> Iterator[int]:
    """The ids of one object or of a list of objects."""
    many = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    for one in many[:MAX_TASKS]:
        found = _id_of(one, member)
        if found is not None:
            yield found
