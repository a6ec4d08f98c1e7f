"""Tasks whose images cannot be had do not hold up the others."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from evergrow.service.label_studio.api import LabelStudioError
from evergrow.service.label_studio.learner import EmbeddedImage
from evergrow.service.label_studio.reconciliation import Reconciler, SyncResult


class Images:
    """The images of tasks; some fail with a status."""

    def __init__(self, failing: dict[int, int | None]) -> None:
        self.failing = failing

    def embed(self, tasks: Sequence[Any]) -> dict[int, Any]:
        return {
            task.id: LabelStudioError("refused", self.failing[task.id])
            if task.id in self.failing
            else EmbeddedImage(None, None)  # type: ignore[arg-type]
            for task in tasks
        }


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(Reconciler, "_teach_one", lambda _self, key, *_: found.append(int(key)))
    return found


def make(failing: dict[int, int | None]) -> Any:
    workspace = SimpleNamespace(events=lambda **_: SimpleNamespace(items=(), next=None))
    learner = SimpleNamespace(workspace=workspace)
    return Reconciler(learner, Images(failing))  # type: ignore[arg-type]


PROJECT = SimpleNamespace(key=lambda number: number)
TASKS = [SimpleNamespace(id=number, label="cup") for number in range(1, 4)]


@pytest.mark.parametrize("status", [None, 429, 503])
def test_an_error_that_may_pass_is_raised_after_the_others_are_taught(
    taught: list[int], status: int | None
) -> None:
    made, result = make({1: status}), SyncResult()
    for _ in range(3):
        with pytest.raises(LabelStudioError):
            made._teach(PROJECT, TASKS, result)
    assert taught == [2, 3] * 3
    # From then on it is a problem of this task alone.
    made._teach(PROJECT, TASKS, result)
    assert any("task 1" in problem for problem in result.problems)


def test_a_refused_image_is_a_problem_of_its_task(taught: list[int]) -> None:
    made, result = make({2: 404}), SyncResult()
    made._teach(PROJECT, TASKS, result)
    assert taught == [1, 3]
    assert any("task 2" in problem for problem in result.problems)
