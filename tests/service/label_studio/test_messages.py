"""What Label Studio sends, read with suspicion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.label_studio.annotations import read_task
from evergrow.service.label_studio.labelling_config import parse_labelling_config
from evergrow.service.label_studio.messages import (
    Hint,
    project_of,
    read_predict,
    read_setup,
    read_webhook,
)
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
    for tasks in (None, [], [{}], [{"id": 1}] * 10_001, body["tasks"] * 2):
        with pytest.raises(InvalidInputError):
            read_predict({**body, "tasks": tasks})


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
NAMES = st.sampled_from(
    [
        "action",
        "annotation",
        "annotations",
        "choices",
        "completed_by",
        "data",
        "from_name",
        "id",
        "image",
        "label_config",
        "project",
        "result",
        "schema",
        "task",
        "tasks",
        "value",
    ]
)
ANYTHING = st.recursive(
    SCALARS | st.sampled_from(["class", "cup", "ANNOTATION_CREATED", "TASKS_DELETED", CONFIG]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
)


@given(ANYTHING)
def test_any_json_is_read_or_refused(value: Any) -> None:
    for read in (read_webhook, read_predict, read_setup):
        try:
            read(value)
        except InvalidInputError:
            continue


@given(st.lists(ANYTHING, max_size=3))
def test_any_annotations_are_a_label_or_none(annotations: list[Any]) -> None:
    task = read_task({"id": 1, "annotations": annotations}, parse_labelling_config(CONFIG))
    assert task.label in (None, "cup", "pen", "watch")


@given(st.text(max_size=50))
def test_any_text_is_a_configuration_or_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_labelling_config(text)
