"""A process killed between any two steps leaves the state before or after the change."""

from __future__ import annotations

import os
import shutil

import pytest

from evergrow.workspace import Workspace
from tests.workspace.builders import labels, new_example, new_workspace, picture
from tests.workspace.faults import killed_at, killed_at_creation

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

ACTIONS = {
    "the first new_example": lambda w: w.teach(
        [new_example("cup", 9, picture=picture(9), fine="red")]
    ),
    "examples": lambda w: w.teach([new_example("mug", n, picture=picture(n)) for n in (7, 8)]),
    "a correction": lambda w: w.relabel(1, label="mug", fine="tall"),
    "merging": lambda w: w.merge("cup", "pen"),
    "erasing": lambda w: w.forget("cup", erase=True),
    "undoing": lambda w: w.undo(),
}


def prepared(folder, action):
    with new_workspace(folder, rows_per_shard=2) as workspace:
        if action != "the first new_example":
            workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(2)])
            workspace.teach([new_example("pen", 2, fine="red")])
    return folder / "workspace"


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_a_process_killed_at_any_step_leaves_all_or_nothing(tmp_path, action):
    folder = prepared(tmp_path, action)
    shutil.copytree(folder, tmp_path / "undisturbed")
    with Workspace.open(tmp_path / "undisturbed") as workspace:
        before = labels(workspace)
        ACTIONS[action](workspace)
        after = labels(workspace)
    finished, step, seen = False, 0, []
    while not finished:
        step += 1
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        finished = killed_at(copy, ACTIONS[action], step)
        with Workspace.open(copy) as workspace:
            seen.append(labels(workspace))
            if seen[-1] == before and step % 3 == 0:
                # Leftovers do not prevent a retry.
                ACTIONS[action](workspace)
                assert labels(workspace) == after
            findings = workspace.check()
            assert [finding for finding in findings if finding.severity == "damage"] == []
        shutil.rmtree(copy)
    assert seen[-1] == after
    # Once done it stays done, however much of the process was left to run.
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)
    assert seen.count(before) > 3


@pytest.mark.slow
def test_a_workspace_can_be_created_again_after_a_kill(tmp_path):
    for step in range(1, 200):
        target = tmp_path / f"{step}"
        finished = killed_at_creation(target, step)
        if not (target / "workspace.json").exists():
            Workspace.create(target, features=None).close()
        with Workspace.open(target) as workspace:
            workspace.teach([new_example("cup")])
            assert workspace.check(repair=True) is not None
            assert workspace.check() == []
        if finished:
            return
    raise AssertionError("making a workspace takes too many steps")
