"""Backups of a workspace, also while it is in use."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import threading

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import Workspace, WorkspaceFullError, check_workspace
from evergrow.workspace.check import backup
from evergrow.workspace.tokens import Tokens
from tests.workspace.builders import counts, labels, new_example, new_workspace, picture


@pytest.fixture
def workspace(tmp_path):
    with new_workspace(tmp_path, rows_per_shard=4) as workspace:
        workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(6)])
        yield workspace


def test_a_copy_has_the_same_content_and_passes_the_check(workspace, tmp_path):
    backup = workspace.backup(tmp_path / "copy")
    assert (backup.event, backup.n_examples, backup.n_images, backup.lacking) == (6, 6, 6, ())
    assert check_workspace(tmp_path / "copy") == []
    with Workspace.open(tmp_path / "copy") as copy:
        assert labels(copy) == labels(workspace)
        assert copy.picture(3) == workspace.picture(3)
        assert copy.manifest == workspace.manifest


def test_a_copy_can_be_changed_on_its_own(workspace, tmp_path):
    workspace.backup(tmp_path / "copy")
    with Workspace.open(tmp_path / "copy") as copy:
        copy.teach([new_example("pen")])
        assert counts(copy) == {"cup": 6, "pen": 1}
    assert counts(workspace) == {"cup": 6}


def test_changes_can_be_undone_in_a_copy(workspace, tmp_path):
    workspace.remove(1)
    workspace.backup(tmp_path / "copy")
    with Workspace.open(tmp_path / "copy") as copy:
        copy.undo()
        assert counts(copy) == {"cup": 6}
        assert copy.check() == []


def test_a_copy_made_while_another_thread_teaches_is_whole(workspace, tmp_path):
    stop = threading.Event()

    def teach():
        number = 0
        while not stop.is_set():
            number += 1
            workspace.teach([new_example("pen", number, picture=picture(("more", number)))])

    thread = threading.Thread(target=teach)
    thread.start()
    try:
        for number in range(3):
            backup = workspace.backup(tmp_path / f"copy{number}")
            assert check_workspace(backup.path) == []
            with Workspace.open(backup.path) as copy:
                assert copy.version == backup.event
                assert len(labels(copy)) == backup.n_examples
    finally:
        stop.set()
        thread.join()


def test_a_copy_can_be_made_by_a_reader(workspace, tmp_path):
    with Workspace.open(workspace.layout.folder, read_only=True) as reader:
        reader.backup(tmp_path / "copy")
    assert check_workspace(tmp_path / "copy") == []


def test_examples_erased_during_a_backup_are_not_in_it(workspace, tmp_path, monkeypatch):
    workspace.teach([new_example("pen", picture=picture("pen"))])
    copy_database = backup._copy_database
    erase = iter([lambda: workspace.forget("cup", erase=True)])

    def copy_and_erase(store, target):
        copy_database(store, target)
        next(erase, lambda: None)()

    monkeypatch.setattr(backup, "_copy_database", copy_and_erase)
    workspace.backup(tmp_path / "copy")
    assert check_workspace(tmp_path / "copy") == []
    with Workspace.open(tmp_path / "copy") as copy:
        assert counts(copy) == {"pen": 1}


def test_images_that_were_missing_before_are_listed(workspace, tmp_path):
    name = workspace.example(2).image
    (workspace.layout.images / name[:2] / name).unlink()
    assert workspace.backup(tmp_path / "copy").lacking == (name,)


def test_the_model_is_copied_with_its_examples(workspace, tmp_path):
    workspace.save_snapshot()
    workspace.backup(tmp_path / "copy")
    with Workspace.open(tmp_path / "copy") as copy:
        assert copy.status().snapshot_event == 6


def test_tokens_are_copied_for_their_owner_only(workspace, tmp_path):
    Tokens(workspace.layout.folder).add("robot", "read")
    workspace.backup(tmp_path / "copy")
    assert [one.name for one in Tokens(tmp_path / "copy").list()] == ["robot"]
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "copy" / "tokens.json").stat().st_mode) == 0o600


def test_the_database_of_a_copy_is_one_file(workspace, tmp_path):
    workspace.backup(tmp_path / "copy")
    names = [path.name for path in (tmp_path / "copy").iterdir()]
    assert [name for name in names if name.startswith("examples")] == ["examples.sqlite"]


def test_a_folder_with_other_files_is_refused(workspace, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "letter.txt").write_text("dear")
    with pytest.raises(WorkspaceError, match="is not empty: choose a new folder"):
        workspace.backup(tmp_path / "copy")


def test_a_backup_to_a_full_disk_leaves_no_files(workspace, tmp_path, monkeypatch):
    def refuse(source, target):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(backup, "_copy_file", refuse)
    with pytest.raises(WorkspaceFullError):
        workspace.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("inside", ["", "copy", "models/copy", "../workspace/copy"])
def test_a_folder_inside_the_workspace_is_refused(workspace, inside):
    folder = workspace.layout.folder
    with pytest.raises(WorkspaceError, match="is inside the workspace itself"):
        workspace.backup(folder / inside)
    assert not (folder / "copy").exists()


def test_missing_embeddings_stop_a_backup_with_a_remedy(workspace, tmp_path):
    shutil.rmtree(workspace.layout.embeddings)
    with pytest.raises(WorkspaceError, match=r"000000\.npy is missing; 'evergrow check --mend'"):
        workspace.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
