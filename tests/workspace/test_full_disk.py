"""A full disk: nothing is changed, nothing is left behind, and it works again with space."""

from __future__ import annotations

import errno
import pickle
import sqlite3

import numpy as np
import pytest

from evergrow import DiskFullError, RLSClassifier, WorkspaceError, write_shards
from evergrow.workspace import Workspace, WorkspaceFullError
from evergrow.workspace.changes import writer
from evergrow.workspace.store.database import translate_disk_errors
from tests.harness.full_disk import FullDisk
from tests.harness.process import small_disk
from tests.workspace.builders import counts, labels, new_example, new_workspace, picture
from tests.workspace.faults import FaultInjector, full, inject_faults


def new_examples(step):
    return [new_example("mug", n, picture=picture((step, n)), fine="tall") for n in range(3)]


def files(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("examples.sqlite-")
    )


@pytest.mark.slow
@pytest.mark.parametrize("taught_before", [0, 2])
def test_a_full_disk_at_any_write_is_an_error_and_teaches_nothing(tmp_path, taught_before):
    with new_workspace(tmp_path, rows_per_shard=2) as workspace:
        if taught_before:
            workspace.teach([new_example("cup", n) for n in range(taught_before)])
        before, there = counts(workspace), files(tmp_path)
        refused = 0
        for step in range(1, 200):
            injector = FaultInjector(step, full)
            try:
                with inject_faults(injector):
                    workspace.teach(new_examples(step))
            except WorkspaceFullError:
                assert counts(workspace) == before
                left = set(files(tmp_path)) - set(there)
                # A file of embeddings is taken by the next example; thumbnails can be made again.
                assert not [name for name in left if "images" in name or "tmp" in name]
                assert [f for f in workspace.check() if f.severity == "damage"] == []
                refused += 1
                continue
            if injector.n_done < step:
                break
            # Where only a thumbnail was lost, the example counts.
            workspace.forget("mug")
            there = files(tmp_path)
        assert refused > 5
        assert counts(workspace) == {**before, "mug": 3}
        workspace.check(repair=True)
        assert workspace.check() == []


CHANGES = {
    "relabel": lambda w: w.relabel(1, label="x" * 200),
    "merge": lambda w: w.merge("cup", "pen"),
    "forget": lambda w: w.forget("cup"),
    "teach": lambda w: w.teach([new_example("y" * 200, n) for n in range(50)]),
    "undo": lambda w: w.undo(),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_full_database_changes_nothing_and_works_again_with_free_space(workspace, kind):
    workspace.teach([new_example("cup", n) for n in range(120)])
    workspace.teach([new_example("pen", n) for n in range(120)])
    workspace.merge("pen", "cup")
    workspace.undo()
    before, version = labels(workspace), workspace.version
    writer = workspace._store.database.writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    changed = 0
    try:
        while True:
            CHANGES[kind](workspace)
            changed += 1
            before, version = labels(workspace), workspace.version
            workspace.teach([new_example("pen", f"filling {changed}")])
            before, version = labels(workspace), workspace.version
    except WorkspaceFullError:
        pass
    assert (labels(workspace), workspace.version) == (before, version)
    writer.execute(f"PRAGMA max_page_count = {pages + 1000}")
    workspace.teach([new_example("new", 1)])
    assert workspace.check() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_quota_is_a_full_disk(workspace, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "no space")

    monkeypatch.setattr("os.pwrite", refuse)
    with pytest.raises(WorkspaceFullError, match="is full: nothing was changed; free some space"):
        workspace.teach([new_example("cup")])


def test_a_class_is_erased_although_the_disk_is_full(workspace, monkeypatch):
    def refuse(store):
        finish(store)
        raise WorkspaceFullError("full")

    finish = writer.finish_erasure

    workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen")])
    monkeypatch.setattr(writer, "finish_erasure", refuse)
    workspace.forget("cup", erase=True)
    assert counts(workspace) == {"pen": 1}


def test_snapshots_are_deleted_to_free_space_for_an_erasure(workspace, monkeypatch):
    workspace.teach([new_example("cup"), new_example("pen")])
    workspace.save_snapshot()
    begin = type(workspace._store.database).transaction

    def begin_with_room(store):
        if list(workspace.layout.models.iterdir()):
            raise WorkspaceFullError("full")
        return begin(store)

    monkeypatch.setattr(type(workspace._store.database), "transaction", begin_with_room)
    with pytest.raises(WorkspaceFullError):
        workspace.forget("cup")
    workspace.forget("cup", erase=True)
    assert counts(workspace) == {"pen": 1}


def test_an_export_to_a_full_disk_is_an_error_and_leaves_no_file(workspace, tmp_path, monkeypatch):
    workspace.teach([new_example(label, n) for label in ("cup", "pen") for n in range(3)])
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("os.fsync", lambda _: full())
    with pytest.raises(
        WorkspaceFullError,
        match=r"out/model\.evergrow' \(mounted at '/.*'\) is full: nothing was changed",
    ):
        workspace.export(tmp_path / "out" / "model.evergrow")
    assert not list((tmp_path / "out").iterdir())


def test_another_disk_error_is_not_reported_as_a_full_disk(workspace, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("os.pwrite", refuse)
    with pytest.raises(OSError, match="broken"):
        workspace.teach([new_example("cup")])
    monkeypatch.undo()
    workspace.teach([new_example("cup")])
    assert counts(workspace) == {"cup": 1}


def test_no_workspace_is_left_where_the_disk_was_full_from_the_start(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(WorkspaceFullError):
        new_workspace(tmp_path)
    monkeypatch.undo()
    new_workspace(tmp_path).close()


def test_an_io_error_of_the_database_on_a_nearly_full_disk_means_full(monkeypatch, tmp_path):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    monkeypatch.setattr("evergrow.workspace.store.database._is_nearly_full", lambda _: True)
    with pytest.raises(WorkspaceFullError), translate_disk_errors(tmp_path):
        raise error
    monkeypatch.setattr("evergrow.workspace.store.database._is_nearly_full", lambda _: False)
    with (
        pytest.raises(WorkspaceError, match="cannot be used: disk I/O error"),
        translate_disk_errors(tmp_path),
    ):
        raise error


def test_the_length_of_embeddings_is_not_fixed_by_a_failed_example(tmp_path):
    with new_workspace(tmp_path) as workspace:
        with pytest.raises(WorkspaceFullError), inject_faults(FaultInjector(8, full)):
            workspace.teach([new_example("cup")])
        assert workspace.n_features is None
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert workspace.n_features is None


@pytest.fixture
def full_disk(tmp_path):
    """A small disk with a few pages left."""
    try:
        with small_disk(tmp_path / "disk", 4 << 20) as disk:
            filler = FullDisk(disk)
            filler.leave(3 * 4096)
            yield disk
    except PermissionError as error:
        pytest.skip(str(error))


def test_a_backup_to_a_full_disk_names_the_disk_of_the_copy(tmp_path, full_disk):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(20)])
        for target in (full_disk / "copy", full_disk):
            with pytest.raises(WorkspaceFullError) as caught:
                workspace.backup(target / "here")
            assert f"(mounted at {str(full_disk)!r}) is full" in str(caught.value)
            assert str(tmp_path / "workspace") not in str(caught.value)


def test_a_model_file_on_a_full_disk_is_named(full_disk):
    X, y = np.eye(400), np.arange(400) % 3
    model = RLSClassifier().fit(X, y)
    with pytest.raises(DiskFullError) as caught:
        model.save(full_disk / "model.evergrow")
    assert str(caught.value) == (
        f"the disk of {str(full_disk / 'model.evergrow')!r} (mounted at {str(full_disk)!r}) "
        "is full: free some space"
    )
    assert caught.value.errno == errno.ENOSPC
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert [path.name for path in full_disk.iterdir()] == ["filler"]


def test_shards_on_a_full_disk_name_it(full_disk):
    with pytest.raises(DiskFullError, match="is full: free some space"):
        write_shards(full_disk / "shards", [np.eye(400)])


def test_sorting_on_a_full_temporary_disk_names_that_disk(tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(full_disk))
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    with (
        pytest.raises(WorkspaceFullError, match=f"mounted at {str(full_disk)!r}"),
        translate_disk_errors(tmp_path),
    ):
        raise error
