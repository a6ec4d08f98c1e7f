"""Which task has which example, from the audit log."""

from __future__ import annotations

from typing import Any

from evergrow.service.label_studio.claims import Claim, Claims, TaskKey
from evergrow.workspace.records import Event
from evergrow.workspace.tokens import LABEL_STUDIO

KEY, OTHER = TaskKey(1, 1_700_000_000, 7), TaskKey(1, 1_700_000_000, 8)


def event(kind: str, key: TaskKey, actor: str = LABEL_STUDIO, **body: Any) -> Event:
    return Event(1, kind, "now", actor, {**body, "action": key.action(3)}, None, None)


def test_the_newest_event_of_a_task_counts() -> None:
    claims = Claims(
        [
            event("teach", KEY, example=1, label="cup"),
            event("relabel", KEY, example=1, to={"label": "pen"}),
        ]
    )
    assert claims.get(KEY) == Claim(1, "pen")
    assert claims.projects == {(1, 1_700_000_000)}
    assert claims.with_task(7) == [KEY]


def test_a_removed_example_is_nobodys() -> None:
    claims = Claims(
        [
            event("teach", KEY, example=1, label="cup"),
            event("confirm", OTHER, examples=[1], label="cup"),
            event("remove", OTHER, example=1, label="cup"),
        ]
    )
    assert len(claims) == 0
    assert not claims.is_shared(KEY, 1)


def test_two_tasks_may_have_one_example() -> None:
    claims = Claims(
        [
            event("teach", KEY, example=1, label="cup"),
            event("confirm", OTHER, examples=[1], label="cup"),
        ]
    )
    assert claims.is_shared(KEY, 1)
    claims.drop(OTHER)
    assert not claims.is_shared(KEY, 1)
    assert KEY in claims


def test_changes_of_others_are_ignored() -> None:
    others = [
        event("teach", KEY, actor="teacher", example=1, label="cup"),
        Event(1, "teach", "now", LABEL_STUDIO, {"example": 1, "label": "cup"}, None, None),
        Event(1, "teach", "now", LABEL_STUDIO, {"example": 1, "action": "x"}, None, None),
    ]
    assert len(Claims(others)) == 0
