"""What Label Studio sends, read with suspicion."""

from __future__ import annotations

from typing import Any

import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.messages import Hint, project_of, read_predict, read_webhook
from tests.service.label_studio.fake import CONFIG

PROJECT = {"id": 3}


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (
            {
                "action": "ANNOTATION_CREATED",
                "project": PROJECT,
                "annotation": {"id": 1, "task": 7},
            },
            Hint(3, frozenset({7})),
        ),
        (
            {"action": "ANNOTATIONS_CREATED", "project": PROJECT, "task": [{"id": 7}, {"id": 8}]},
            Hint(3, frozenset({7, 8})),
        ),
        ({"action": "ANNOTATION_UPDATED", "project": PROJECT}, Hint(3)),
        (
            {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1}], "project": PROJECT},
            Hint(3),
        ),
        ({"action": "TASKS_DELETED", "tasks": [{"id": 7}]}, Hint(None, frozenset({7}))),
        ({"action": "START_TRAINING", "project": PROJECT}, Hint(3, whole=True)),
        ({"action": "LABEL_LINK_CREATED"}, None),
        ({"action": "ANNOTATION_CREATED", "project": "3", "task": "7"}, Hint(None)),
    ],
)
def test_webhooks_are_hints(body: Any, hint: Hint | None) -> None:
    assert read_webhook(body) == hint


@pytest.mark.parametrize("body", [None, [], "text", {}, {"action": 3}])
def test_other_bodies_are_refused(body: Any) -> None:
    with pytest.raises(InvalidInputError):
        read_webhook(body)


def test_the_id_of_a_project_comes_before_the_dot() -> None:
    assert project_of("3.1700000000") == 3
    for value in ("", "x.1", "-3.1", None, [], "0.1", "9" * 30, "٣.1"):
        with pytest.raises(InvalidInputError, match="project"):
            project_of(value)


def test_a_request_to_predict_needs_tasks() -> None:
    body = {"project": "1.2", "label_config": CONFIG, "tasks": [{"id": 1, "data": {"image": "/a"}}]}
    assert read_predict(body).tasks[0].image == "/a"
    for tasks in (None, [], [{}], [{"id": 1}] * 10_001):
        with pytest.raises(InvalidInputError):
            read_predict({**body, "tasks": tasks})
