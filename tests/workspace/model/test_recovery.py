"""After closing or a crash, opening gives the model of an undisturbed workspace."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from evergrow.workspace import Workspace, WorkspaceFullError
from evergrow.workspace.model.projection import ModelProjection
from evergrow.workspace.model.snapshot_files import newest_event
from tests.budget import budget
from tests.workspace.random_changes import (
    CHANGES,
    Step,
    answers,
    assert_same,
    live,
    new_examples,
    new_workspace,
    steps,
    take,
)

random_lives = settings(
    max_examples=budget(20),
    # To find the shortest life that fails takes minutes.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@contextmanager
def scratch() -> Iterator[Path]:
    # Hypothesis runs many lives within one test, and every step of them waits for the disk.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "workspace"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "w") as workspace:
        yield workspace


@random_lives
@given(before=steps(), after=steps())
@example(
    before=[Step("teach some", 1), Step("forest", 0), Step("assess", 0), Step("split", 1)],
    after=[Step("relabel", 3), Step("relabel", 4), Step("merge", 2), Step("forest", 0)],
)
def test_opening_gives_the_model_of_the_undisturbed_run(
    before: list[Step], after: list[Step]
) -> None:
    with scratch() as folder:
        workspace = new_workspace(folder, forest=True)
        live(workspace, before)
        workspace.save_snapshot()
        live(workspace, after)
        undisturbed = answers(workspace)
        workspace.close()
        with Workspace.open(folder) as again:
            assert_same(answers(again), undisturbed)
        with Workspace.open(folder, read_only=True) as again:
            assert_same(answers(again), undisturbed)


@random_lives
@given(life=steps())
def test_opening_without_a_snapshot_gives_the_same_model(life: list[Step]) -> None:
    with scratch() as folder:
        workspace = new_workspace(folder, forest=True)
        live(workspace, life)
        undisturbed = answers(workspace)
        workspace.close()
        shutil.rmtree(folder / "models", ignore_errors=True)
        with Workspace.open(folder) as again:
            assert_same(answers(again), undisturbed)


@random_lives
@given(life=steps(), kind=st.sampled_from(CHANGES), seed=st.integers(0, 2**16))
def test_an_undone_change_leaves_no_trace_in_the_model(
    life: list[Step], kind: str, seed: int
) -> None:
    with scratch() as folder:
        workspace = new_workspace(folder)
        live(workspace, life)
        expected, version = answers(workspace), workspace.version
        take(workspace, Step(kind, seed))
        # Every example is an event of its own.
        while (workspace.undoable().event or 0) > version:
            workspace.undo()
        assert_same(answers(workspace), expected)
        workspace.close()


@random_lives
@given(life=steps())
def test_applying_events_never_fails_and_rebuilds(life: list[Step]) -> None:
    opened: list[int] = []
    real = ModelProjection.rebuild
    with scratch() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ModelProjection, "rebuild", lambda self, history: opened.append(real(self, history))
        )
        workspace = new_workspace(folder, forest=True)
        live(workspace, life)
        workspace.close()
    assert len(opened) == 1


def test_a_damaged_snapshot_is_skipped(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path / "w")
    workspace.save_snapshot()
    workspace.teach(new_examples(np.random.default_rng(5), 3))
    workspace.save_snapshot()
    expected = answers(workspace)
    workspace.close()
    newest, older = sorted((tmp_path / "w" / "models").iterdir(), reverse=True)
    model = newest / "least_squares.evergrow"
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    with Workspace.open(tmp_path / "w") as again:
        assert_same(answers(again), expected)
    (older / "snapshot.json").write_text("{")
    with Workspace.open(tmp_path / "w") as again:
        assert_same(answers(again), expected)


def test_a_snapshot_of_other_events_is_not_used(tmp_path: Path) -> None:
    for name, seed in (("here", 1), ("there", 2)):
        with new_workspace(tmp_path / name) as workspace:
            workspace.teach(new_examples(np.random.default_rng(seed), 7))
            workspace.save_snapshot()
            expected = answers(workspace)
    shutil.rmtree(tmp_path / "there" / "models")
    shutil.copytree(tmp_path / "here" / "models", tmp_path / "there" / "models")
    with Workspace.open(tmp_path / "there") as again:
        assert_same(answers(again), expected)


def two_lives(folder: Path) -> Workspace:
    """A workspace with a snapshot of what came after a backup that is in its place again."""
    with new_workspace(folder) as workspace:
        workspace.save_snapshot()
    backup = (folder / "examples.sqlite").read_bytes()
    with Workspace.open(folder) as workspace:
        workspace.teach(new_examples(np.random.default_rng(1), 7))
        workspace.save_snapshot()
    (folder / "examples.sqlite").write_bytes(backup)
    return Workspace.open(folder)


def test_a_snapshot_from_before_a_restored_backup_is_not_used(tmp_path: Path) -> None:
    with two_lives(tmp_path / "w") as workspace:
        # The same number of examples per class as the other life had.
        workspace.teach(
            [
                type(new_example)(new_example.embedding + np.float32(1), new_example.label)
                for new_example in new_examples(np.random.default_rng(1), 7)
            ]
        )
        expected = answers(workspace)
    with Workspace.open(tmp_path / "w") as again:
        assert_same(answers(again), expected)


def test_a_reader_finds_a_snapshot_of_another_history(tmp_path: Path) -> None:
    for name in ("here", "there"):
        with new_workspace(tmp_path / name) as workspace:
            workspace.save_snapshot()
    shutil.rmtree(tmp_path / "there" / "models")
    shutil.copytree(tmp_path / "here" / "models", tmp_path / "there" / "models")
    with Workspace.open(tmp_path / "there", read_only=True) as again:
        (finding,) = again.check()
    assert finding.severity == "harmless"
    assert "belongs to another history" in finding.what


def test_a_snapshot_of_a_later_event_is_replaced(tmp_path: Path) -> None:
    with two_lives(tmp_path / "w") as workspace:
        assert workspace.status().snapshot_event == workspace.version
        workspace.teach(new_examples(np.random.default_rng(2), 2))
        assert workspace.save_snapshot()
        assert workspace.status().snapshot_event == workspace.version


def test_only_the_newest_two_snapshots_stay_on_disk(workspace: Workspace) -> None:
    events = []
    for seed in range(4):
        workspace.teach(new_examples(np.random.default_rng(seed), 1))
        assert workspace.save_snapshot()
        events.append(workspace.version)
    assert not workspace.save_snapshot()
    stored = sorted(int(path.name) for path in (workspace.layout.models).iterdir())
    assert stored == events[-2:]
    assert workspace.status().snapshot_event == events[-1]


def test_snapshots_with_erased_examples_are_deleted(workspace: Workspace) -> None:
    workspace.save_snapshot()
    workspace.forget("ant", erase=True)
    assert newest_event(workspace.layout.models) is None


def test_removed_huge_examples_leave_no_trace(workspace: Workspace) -> None:
    expected = answers(workspace)
    huge = [
        type(new_example)(new_example.embedding * np.float32(1e12), new_example.label)
        for new_example in new_examples(np.random.default_rng(1), 3)
    ]
    workspace.teach(huge)
    for _ in huge:
        workspace.undo()
    assert_same(answers(workspace), expected)


def test_a_snapshot_is_due_after_many_events(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.workspace.model.projection._SNAPSHOT_EVERY", 40)
    workspace.maintain()
    assert workspace.status().snapshot_event is None
    workspace.teach(new_examples(np.random.default_rng(1), 10))
    workspace.maintain()
    assert workspace.status().snapshot_event == workspace.version
    workspace.teach(new_examples(np.random.default_rng(2), 10))
    assert not workspace.save_snapshot(force=False)


def test_a_snapshot_on_a_full_disk_leaves_no_files(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("evergrow.workspace.model.snapshot_files.os.rename", full)
    with pytest.raises(WorkspaceFullError):
        workspace.save_snapshot()
    assert list((workspace.layout.models).iterdir()) == []
    monkeypatch.undo()
    assert workspace.save_snapshot()
