"""One process writes: the lock is on the folder, and proven before each write."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from evergrow import WorkspaceError, WorkspaceWarning
from evergrow.foundation import locks
from evergrow.foundation.locks import FolderLock, is_locked
from evergrow.workspace import Workspace, WorkspaceLockedError, WorkspaceLostError, check_workspace
from evergrow.workspace.store.database import Database
from tests.harness.process import bind_mount, end_if_stuck
from tests.workspace.builders import counts, labels, new_example, new_workspace, picture

pytestmark = pytest.mark.slow

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps open files in place")


@pytest.fixture
def folder(tmp_path):
    above = tmp_path / "above"
    above.mkdir()
    with new_workspace(above) as workspace:
        workspace.teach([new_example("cup", 1), new_example("pen", 2)])
    return above / "workspace"


def replace_database(folder):
    shutil.copy(folder / "examples.sqlite", folder / "copy")
    os.replace(folder / "copy", folder / "examples.sqlite")


def replace_folder(folder):
    shutil.copytree(folder, folder.with_name("copy"))
    folder.rename(folder.with_name("moved"))
    folder.with_name("copy").rename(folder)


def replace_parent(folder, put):
    folder.parent.rename(folder.parent.with_name("moved"))
    put(folder.parent)


LOSSES = {
    "the folder is moved": lambda folder: folder.rename(folder.with_name("moved")),
    "another folder takes its place": replace_folder,
    "the database is replaced": replace_database,
    "the database is removed": lambda folder: (folder / "examples.sqlite").unlink(),
    "the log is removed": lambda folder: (folder / "examples.sqlite-wal").unlink(),
    "the database is linked": lambda folder: os.link(
        folder / "examples.sqlite", folder.with_name("linked")
    ),
    "a file takes the place of the folder above": lambda folder: replace_parent(
        folder, lambda path: path.write_bytes(b"")
    ),
    "a loop of links takes the place of the folder above": lambda folder: replace_parent(
        folder, lambda path: path.symlink_to(path)
    ),
    "the index of the log is removed": lambda folder: (folder / "examples.sqlite-shm").unlink(),
}


@posix
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("written_before", [False, True])
def test_nothing_is_written_after_the_files_were_moved_or_replaced(
    folder, loss, written_before, tmp_path
):
    with Workspace.open(folder) as workspace:
        if written_before:
            workspace.teach([new_example("cup", 3)])
        LOSSES[loss](folder)
        before = sorted(path for path in tmp_path.rglob("*"))
        for change in (
            lambda: workspace.teach([new_example("mug", 4, picture=picture(4))]),
            lambda: workspace.rename("cup", "mug"),
            lambda: workspace.forget("cup", erase=True),
            workspace.save_snapshot,
        ):
            with pytest.raises(WorkspaceLostError, match="cannot be written to: "):
                change()
        assert sorted(path for path in tmp_path.rglob("*")) == before
        # The model has not learnt what was refused.
        assert set(workspace.snapshot.names.values()) == {"cup", "pen"}


@posix
def test_the_rows_of_a_folder_that_took_its_place_are_not_touched(folder):
    with Workspace.open(folder) as first:
        first.teach([new_example("cup", 3)])
        replace_folder(folder)
        with Workspace.open(folder) as second:
            second.teach([new_example("cup", n) for n in range(10, 20)])
            with pytest.raises(WorkspaceLostError):
                first.teach([new_example("mug", 4)])
            assert second.check() == []


@posix
@pytest.mark.parametrize("noticed", [False, True])
def test_closing_does_not_delete_the_log_of_a_folder_that_took_its_place(folder, noticed):
    first = Workspace.open(folder)
    first.teach([new_example("cup", 3)])
    replace_folder(folder)
    with Workspace.open(folder) as second:
        second.teach([new_example("pen", n) for n in range(10, 14)])
        if noticed:
            with pytest.raises(WorkspaceLostError):
                first.teach([new_example("cup", 4)])
        log = (folder / "examples.sqlite-wal").stat()
        first.close()
        assert (folder / "examples.sqlite-wal").stat().st_ino == log.st_ino
        second.teach([new_example("pen", 20)])
        assert second.check() == []
    with Workspace.open(folder.with_name("moved")) as moved:
        assert counts(moved) == {"cup": 2, "pen": 1}
        assert moved.check() == []


@posix
@pytest.mark.parametrize("moved", ["folder", "database"])
def test_a_move_during_a_change_takes_the_change_back(folder, monkeypatch, moved):
    with Workspace.open(folder) as workspace:
        vectors = workspace._store.vectors
        write = vectors.write

        def move_first(*values):
            write(*values)
            if moved == "folder":
                folder.rename(folder.with_name("moved"))
            else:
                replace_database(folder)

        monkeypatch.setattr(vectors, "write", move_first)
        with pytest.raises(WorkspaceLostError):
            workspace.teach([new_example("mug", 4)])
    left = folder.with_name("moved") if moved == "folder" else folder
    if moved == "database":
        assert check_workspace(left, repair=True) is not None
    with Workspace.open(left) as workspace:
        assert counts(workspace) == {"cup": 1, "pen": 1}


@posix
def test_what_is_in_a_removed_log_is_written_to_the_database(folder):
    workspace = Workspace.open(folder)
    workspace.teach([new_example("cup", n) for n in range(5, 9)])
    expected = labels(workspace)
    (folder / "examples.sqlite-wal").unlink()
    with pytest.raises(WorkspaceLostError, match=r"examples\.sqlite-wal was moved, removed"):
        workspace.teach([new_example("cup", 9)])
    # As if the process were killed now: only what is in the database file counts.
    shutil.copytree(folder, folder.with_name("killed"))
    workspace.close()
    with Workspace.open(folder.with_name("killed")) as again:
        assert labels(again) == expected


@posix
@pytest.mark.parametrize(
    "way",
    [
        "lock removed",
        *(
            pytest.param(way, marks=pytest.mark.nightly)
            for way in ("link", "bind mount", "moved", "dots")
        ),
    ],
)
def test_a_second_process_is_refused_whatever_the_way(folder, way, tmp_path):
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("cup", 3)])
        if way == "bind mount":
            try:
                with bind_mount(folder, tmp_path / "mounted") as path:
                    assert_locked(path)
            except PermissionError as error:
                pytest.skip(str(error))
            return
        path = folder
        if way == "lock removed":
            (folder / "lock").unlink()
        elif way == "link":
            path = tmp_path / "link"
            path.symlink_to(folder)
        elif way == "moved":
            path = tmp_path / "moved"
            folder.rename(path)
        else:
            path = folder / ".." / folder.name
        assert_locked(path)


def assert_locked(path):
    code = (
        "import sys; from evergrow.workspace import Workspace, WorkspaceLockedError\n"
        "try: Workspace.open(sys.argv[1])\n"
        "except WorkspaceLockedError as error: print('locked', error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("locked")
    with pytest.raises(WorkspaceLockedError):
        check_workspace(path, repair=True)


@posix
def test_files_that_another_folder_shares_by_hard_links_are_not_written_to(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy", copy_function=os.link)
    advice = "a second name, by a hard link.*: remove the other name, or copy the folder"
    for open_it in (Workspace.open, partial(check_workspace, repair=True)):
        with pytest.raises(WorkspaceLostError, match=advice):
            open_it(tmp_path / "copy")
    replace_database(tmp_path / "copy")
    (tmp_path / "copy" / "lock").unlink()
    (tmp_path / "copy" / "examples.sqlite").chmod(0o600)
    with (
        Workspace.open(tmp_path / "copy") as copy,
        # As for the database: a service answers 503, not that the request was wrong.
        pytest.raises(WorkspaceLostError, match="also a file of another folder, by a hard link"),
    ):
        copy.teach([new_example("cup", 3)])
    with Workspace.open(folder, read_only=True) as workspace:
        assert workspace.check() == []


@posix
def test_a_copy_is_a_workspace_of_its_own(folder, tmp_path):
    with Workspace.open(folder) as workspace:
        shutil.copytree(folder, tmp_path / "copy")
        with Workspace.open(tmp_path / "copy") as copy:
            copy.teach([new_example("copied", 1)])
            workspace.teach([new_example("original", 1)])
            assert counts(copy) == {"cup": 1, "pen": 1, "copied": 1}
            assert counts(workspace) == {"cup": 1, "pen": 1, "original": 1}
            assert copy.check() == workspace.check() == []


def test_of_two_writers_without_locks_only_the_last_one_writes(folder, monkeypatch):
    monkeypatch.setattr(locks, "_try_lock", lambda _: True)
    with Workspace.open(folder) as first, Workspace.open(folder) as second:
        first.teach([new_example("cup", 3)])
        taught = second.teach([new_example("pen", n) for n in range(4, 8)])
        with pytest.raises(WorkspaceLostError, match="another process has opened it"):
            first.teach([new_example("mug", 9, picture=picture(9))])
        with pytest.raises(WorkspaceLostError):
            first.forget("pen", erase=True)
        assert [one.example.id for one in taught] == [4, 5, 6, 7]
        assert second.check() == []


def test_numbers_are_reserved_within_the_transaction(folder, monkeypatch):
    """Another connection cannot commit between planning and writing."""
    with Workspace.open(folder) as workspace:
        vectors, refused = workspace._store.vectors, []
        write = vectors.write

        def write_with_a_rival(*values):
            with closing(
                sqlite3.connect(folder / "examples.sqlite", timeout=0, isolation_level=None)
            ) as rival:
                try:
                    rival.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    refused.append(str(error))
            write(*values)

        monkeypatch.setattr(vectors, "write", write_with_a_rival)
        workspace.teach([new_example("mug", 1)])
        assert refused == ["database is locked"]


def test_a_failed_example_does_not_touch_rows_of_the_process_that_took_over(folder, monkeypatch):
    monkeypatch.setattr(locks, "_try_lock", lambda _: True)
    with Workspace.open(folder) as first, Workspace.open(folder) as second:
        first.teach([new_example("cup", 3)])
        plan = first._writer._write_files

        def fail_late(*values):
            plan(*values)
            raise RuntimeError("late")

        discard = first._writer._discard

        def discard_late(*values):
            # Between the failure and the clean-up the other one commits the same row numbers.
            second.teach([new_example("pen", 5)])
            discard(*values)

        monkeypatch.setattr(first._writer, "_write_files", fail_late)
        monkeypatch.setattr(first._writer, "_discard", discard_late)
        with pytest.raises(RuntimeError, match="late"):
            first.teach([new_example("mug", 4)])
        assert second.check() == []


@posix
def test_a_replaced_database_is_refused_after_a_crash_and_accepted_on_request(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "backup")
    workspace = Workspace.open(folder)
    workspace.teach([new_example("cup", n) for n in range(3, 9)])
    expected = labels(workspace)
    os.replace(folder / "examples.sqlite", tmp_path / "former")
    shutil.copy(tmp_path / "backup" / "examples.sqlite", folder / "examples.sqlite")
    # As if it were killed: the log stays, and belongs to the former file.
    workspace._lock.release()
    workspace._lock = None
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="is not the file that was last written to"):
            Workspace.open(folder)
    shutil.copytree(folder, tmp_path / "other")
    shutil.copy(folder / "lock", tmp_path / "other" / "lock")
    os.replace(tmp_path / "former", folder / "examples.sqlite")
    with Workspace.open(folder) as again:
        assert labels(again) == expected
        assert again.check() == []
    workspace.close()


@posix
def test_repairing_accepts_a_replaced_database_without_the_log_of_the_former(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "backup")
    workspace = Workspace.open(folder)
    workspace.teach([new_example("cup", n) for n in range(3, 9)])
    os.replace(folder / "examples.sqlite", tmp_path / "former")
    shutil.copy(tmp_path / "backup" / "examples.sqlite", folder / "examples.sqlite")
    workspace._lock.release()
    workspace._lock = None
    check_workspace(folder, repair=True)
    assert (folder / "examples.sqlite-wal.unmatched").exists()
    with Workspace.open(folder) as again:
        assert counts(again) == {"cup": 1, "pen": 1}
        assert again.check() == []
    workspace.close()


def killed_after(folder, change):
    """Run a change in a process that is killed right after it, and leaves its log."""
    child = os.fork()
    if child == 0:
        try:
            end_if_stuck()
            change(Workspace.open(folder))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (folder / "examples.sqlite-wal").stat().st_size > 0


def teach_cups(*seeds):
    return lambda workspace: workspace.teach([new_example("cup", seed) for seed in seeds])


def backup(folder, target):
    with Workspace.open(folder, read_only=True) as workspace:
        workspace.backup(target)


def opened_backup(folder, target):
    backup(folder, target)
    # This switches its database to a write-ahead log.
    Workspace.open(target).close()


READING = {
    "open to read": lambda folder: Workspace.open(folder, read_only=True).close(),
    "open to write": lambda folder: Workspace.open(folder).close(),
}


@posix
@pytest.mark.parametrize("make_copy", [backup, opened_backup, shutil.copytree])
@pytest.mark.parametrize("taught_between", [False, True])
def test_a_database_overwritten_in_place_is_refused_while_the_log_of_the_former_is_there(
    folder, tmp_path, make_copy, taught_between
):
    make_copy(folder, tmp_path / "copy")
    if taught_between:
        with Workspace.open(folder) as workspace:
            workspace.teach([new_example("mug", n) for n in range(30)])
    killed_after(folder, teach_cups(3, 4))
    with Workspace.open(folder, read_only=True) as workspace:
        expected = labels(workspace)
    former = (folder / "examples.sqlite").read_bytes()
    inode = (folder / "examples.sqlite").stat().st_ino
    shutil.copyfile(tmp_path / "copy" / "examples.sqlite", folder / "examples.sqlite")
    assert (folder / "examples.sqlite").stat().st_ino == inode
    log = (folder / "examples.sqlite-wal").read_bytes()
    for open_it in READING.values():
        with pytest.raises(WorkspaceError, match="is not the file that was last written to"):
            open_it(folder)
    (found,) = check_workspace(folder)
    assert "put the former file back" in found.mend
    assert (folder / "examples.sqlite-wal").read_bytes() == log
    # With the former content it is what it was.
    shutil.copytree(folder, tmp_path / "kept")
    (folder / "examples.sqlite").write_bytes(former)
    with Workspace.open(folder, read_only=True) as workspace:
        assert labels(workspace) == expected
    shutil.copyfile(tmp_path / "copy" / "examples.sqlite", folder / "examples.sqlite")
    check_workspace(folder, repair=True)
    with Workspace.open(folder) as workspace:
        assert counts(workspace) == {"cup": 1, "pen": 1}
        workspace.teach([new_example("cup", 9)])
        assert workspace.check() == []


@posix
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_killed_process_leaves_a_database_that_opens_however_often(folder, checkpointed):
    seeds = iter(range(10, 100))

    def change(workspace):
        teach_cups(next(seeds))(workspace)
        if checkpointed:
            workspace._store.database.writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        teach_cups(next(seeds) + 100)(workspace)

    for n in range(1, 5):
        killed_after(folder, change)
        next(seeds)
        for open_it in READING.values():
            if n % 2:
                open_it(folder)
    with Workspace.open(folder) as workspace:
        assert counts(workspace)["cup"] == 9
        assert workspace.check() == []


@posix
def test_a_kill_before_the_new_generation_is_in_the_file_leaves_it_open(folder, monkeypatch):
    """A reader, or a full disk, may keep the log from being copied to the file."""
    with monkeypatch.context() as patched:
        patched.setattr(Database, "_confirm_generation", lambda *_: None)
        for n in range(3):
            killed_after(folder, teach_cups(10 + n))
            Workspace.open(folder, read_only=True).close()
    with Workspace.open(folder) as workspace:
        assert counts(workspace)["cup"] == 4


@posix
def test_without_a_log_another_content_is_a_workspace_of_its_own(folder, tmp_path):
    backup(folder, tmp_path / "copy")
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("cup", n) for n in range(3, 9)])
    shutil.copyfile(tmp_path / "copy" / "examples.sqlite", folder / "examples.sqlite")
    with Workspace.open(folder) as workspace:
        assert counts(workspace) == {"cup": 1, "pen": 1}
        workspace.teach([new_example("cup", 3)])
        assert [one for one in workspace.check() if one.severity == "damage"] == []


@posix
def test_reading_in_the_same_process_does_not_release_the_locks_of_the_database(folder):
    """The system drops all locks of a process on a file that it closes."""
    code = (
        "import sqlite3, sys\n"
        "other = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "other.execute('PRAGMA locking_mode = EXCLUSIVE')\n"
        "try: other.execute('PRAGMA journal_mode = DELETE'); print('unlocked')\n"
        "except sqlite3.OperationalError as error: print(error)\n"
    )
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("cup", 3)])
        Workspace.open(folder, read_only=True).close()
        found = subprocess.run(
            [sys.executable, "-c", code, str(folder / "examples.sqlite")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == "database is locked\n"


def test_the_directory_of_the_process_may_change_meanwhile(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder.parent)
    with Workspace.open(folder.name) as workspace:
        monkeypatch.chdir(tmp_path)
        workspace.teach([new_example("mug", 4, picture=picture(4))])
        workspace.save_snapshot()
        assert workspace.check() == []


@posix
def test_a_new_workspace_is_for_its_owner_only(tmp_path):
    before = os.umask(0o022)
    try:
        with new_workspace(tmp_path) as workspace:
            workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen", 2)])
            workspace.save_snapshot()
            workspace.backup(tmp_path / "copy")
    finally:
        os.umask(before)
    for folder in (tmp_path / "workspace", tmp_path / "copy"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        open_to_others = [
            path.relative_to(folder)
            for path in folder.rglob("*")
            if stat.S_IMODE(path.stat().st_mode) & 0o077
        ]
        assert open_to_others == []


@posix
def test_an_open_folder_is_restricted_when_it_is_opened_for_writing(folder):
    folder.chmod(0o755)
    Workspace.open(folder, read_only=True).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    Workspace.open(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize(
    ("failure", "uid", "expected"),
    [
        (
            errno.EPERM,
            1,
            r"cannot be changed \(.*\): its owner should restrict it with 'chmod 700'",
        ),
        (errno.EPERM, 0, r"cannot be changed \(.*\): restrict it by the options of the mount"),
        (errno.EROFS, 0, r"cannot be changed \(Read-only.*\): restrict it by the options"),
        (None, 0, r"ignores a change of its mode: restrict it by the options of the mount"),
    ],
)
def test_a_folder_that_cannot_be_restricted_is_opened_with_a_warning(
    folder, monkeypatch, failure, uid, expected
):
    folder.chmod(0o755)

    def refuse(*_):
        if failure is not None:
            raise OSError(failure, os.strerror(failure))

    monkeypatch.setattr("os.chmod", refuse)
    monkeypatch.setattr("os.geteuid", lambda: folder.stat().st_uid + uid)
    with pytest.warns(WorkspaceWarning, match=f"other users can read the workspace .*{expected}"):
        Workspace.open(folder).close()


@posix
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_another_user_cannot_hold_the_lock(folder):
    import fcntl

    for path in folder.parents[:4]:
        path.chmod(path.stat().st_mode | 0o111)
    child = os.fork()
    if child == 0:
        n_refused = 0
        try:
            os.setgid(65534)
            os.setuid(65534)
            for path in (folder, folder / "lock", folder / "examples.sqlite"):
                try:
                    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
                except PermissionError:
                    n_refused += 1
        finally:
            os._exit(n_refused)
    _, status = os.waitpid(child, 0)
    assert os.WEXITSTATUS(status) == 3


@posix
def test_a_process_that_holds_only_the_lock_file_is_respected(folder):
    import fcntl

    with open(folder / "lock", "w") as file:
        file.write("process 17 since 2026\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(WorkspaceLockedError, match="in use by process 17 since 2026:"):
            Workspace.open(folder)


@posix
def test_a_lock_file_that_is_a_link_is_refused(folder, tmp_path):
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match="is a link"):
        Workspace.open(folder)
    assert not (tmp_path / "elsewhere").exists()


@posix
def test_where_folders_cannot_be_locked_the_file_is(tmp_path, monkeypatch):
    try_lock = locks._try_lock

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "not open for writing")
        return try_lock(descriptor)

    monkeypatch.setattr(locks, "_try_lock", refuse_folders)
    lock = FolderLock(tmp_path, "lock")
    lock.write_note("me")
    assert lock.is_current()
    assert is_locked(tmp_path, "lock")
    with pytest.raises(BlockingIOError, match="me"):
        FolderLock(tmp_path, "lock")
    (tmp_path / "lock").unlink()
    assert not lock.is_current()
    lock.release()
    lock.release()
    assert not is_locked(tmp_path, "lock")


@posix
def test_looking_whether_a_folder_is_locked_does_not_lock_others_out(tmp_path):
    code = (
        "import sys; from evergrow.foundation.locks import is_locked\n"
        "print('ready', flush=True)\n"
        "while True: is_locked(sys.argv[1], 'lock')\n"
    )
    watcher = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        for _ in range(50):
            FolderLock(Path(tmp_path), "lock").release()
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()
