"""Checking a workspace, repairing it, and backups, also while it is in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.vision import Embedder
from evergrow.workspace import (
    NewExample,
    Picture,
    Workspace,
    WorkspaceFullError,
    WorkspaceLockedError,
    check_workspace,
)
from evergrow.workspace.check import backup, integrity
from evergrow.workspace.check.files import FileCheck
from evergrow.workspace.tokens import Tokens
from tests.vision.embedding.models import onnx_model
from tests.workspace.builders import Mirror, counts, labels, new_example, new_workspace, picture

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    with new_workspace(tmp_path, rows_per_shard=4) as workspace:
        workspace.teach([new_example("cup", n, fine="red", picture=picture(n)) for n in range(3)])
        workspace.teach([new_example("pen", n) for n in range(3)])
        workspace.remove(6)
    return tmp_path / "workspace"


def damage(folder, statement):
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def found(folder, **options):
    return [(one.severity, one.what) for one in check_workspace(folder, **options)]


def images(folder):
    return sorted(path for path in (folder / "images").rglob("*") if path.is_file())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows restricts links")
@pytest.mark.parametrize("name", ["tokens.json", "embeddings", "examples.sqlite-wal"])
def test_a_link_is_called_a_link(folder, tmp_path, name):
    path = folder / name
    if path.exists():
        path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    (one,) = check_workspace(folder)
    assert f"{name}' is a link" in one.what
    assert one.mend.startswith("put the file or folder itself in the place of the link")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows restricts links")
@pytest.mark.parametrize("place", ["file", "folder", "pipe"])
def test_an_image_behind_a_link_is_not_called_damaged(folder, tmp_path, place):
    path = images(folder)[0]
    linked = path.parent if place == "folder" else path
    linked.rename(tmp_path / "elsewhere")
    if place == "pipe":
        os.mkfifo(linked)
    else:
        linked.symlink_to(tmp_path / "elsewhere")
    damages = [one for one in check_workspace(folder) if one.severity == "damage"]
    assert len(damages) == 1
    assert "image file that cannot be read, behind a link or not a plain file" in damages[0].what
    assert path.name in damages[0].what
    assert damages[0].mend.startswith("put the file or folder itself in the place of the link")


def test_an_intact_workspace_has_no_findings(folder):
    assert check_workspace(folder) == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE class SET n_examples = 7 WHERE name = 'pen'", "1 classes have wrong counts"),
        ("UPDATE class SET n_pictures = 0 WHERE name = 'cup'", "have wrong counts ('cup')"),
        ("UPDATE class SET n_guessed = 1 WHERE name = 'red'", "have wrong counts ('red')"),
        ("UPDATE example SET class_id = 3 WHERE id = 1", "not in the class of their last move"),
        ("UPDATE example SET class_id = NULL WHERE id = 1", "not in the class of their last move"),
        ("UPDATE example SET class_id = 3 WHERE id = 6", "not in the class of their last move"),
    ],
)
def test_wrong_counts_and_classes_are_found_and_repaired(folder, statement, message):
    damage(folder, statement)
    assert any(kind == "damage" and message in what for kind, what in found(folder))
    assert all(one.mended for one in check_workspace(folder, repair=True))
    assert check_workspace(folder) == []
    with Workspace.open(folder) as workspace:
        assert counts(workspace) == {"cup": 3, "pen": 2}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE event SET at = '2000' WHERE seq = 5", "time goes backwards at events 5"),
        ("UPDATE event SET undone_by = 7 WHERE seq = 5", "the undone change disagree at events 5"),
        ("UPDATE event SET undoes = 5 WHERE seq = 7", "the undone change disagree at events 7"),
        (
            "INSERT INTO event (seq, kind, at, actor, body, nonce)"
            " VALUES (70, 'choose', '9', '', '{}', '')",
            "events are not numbered",
        ),
        ("UPDATE event SET seq = 70 WHERE seq = 7", "broken references: move to event"),
        ("UPDATE move SET from_class = 3 WHERE event = 1", "moves do not start where"),
        ("UPDATE example SET fine_id = 3, class_id = 1 WHERE id = 1", "belong to another class"),
        ("DELETE FROM class WHERE name = 'pen'", "broken references"),
        ("DELETE FROM picture", "broken references: example to picture"),
    ],
)
def test_violated_invariants_are_found(folder, statement, message):
    damage(folder, statement)
    assert any(kind == "damage" and message in what for kind, what in found(folder))


def test_a_damaged_embedding_is_found_and_its_example_erased(folder):
    flip(folder / "embeddings" / "000000.npy", 128 + 12 + 3)
    message = ("damage", "the embeddings of 1 example are lost (2)")
    assert found(folder) == [message]
    assert check_workspace(folder)[0].mended is False
    assert check_workspace(folder, repair=True)[0].mended is True
    assert check_workspace(folder) == []
    with Workspace.open(folder) as workspace:
        assert 2 not in labels(workspace)
        assert counts(workspace) == {"cup": 2, "pen": 2}
        # The picture stays: it is not what was lost.
        assert len(images(folder)) == 3
        assert workspace.undoable().event is None


@pytest.mark.parametrize("how", ["missing", "cut", "another header"])
def test_a_damaged_file_of_embeddings_is_found_and_repaired(folder, how):
    path = folder / "embeddings" / "000000.npy"
    if how == "missing":
        path.unlink()
    elif how == "cut":
        os.truncate(path, 150)
    else:
        flip(path, 20)
    assert "000000.npy" in found(folder)[0][1]
    assert "are lost (1, 2, 3, 4)" in found(folder)[1][1]
    check_workspace(folder, repair=True)
    assert check_workspace(folder) == []
    with Workspace.open(folder) as workspace:
        assert labels(workspace) == {5: ("pen", None)}


def test_a_damaged_embedding_is_recomputed_from_its_image(tmp_path):
    network = tmp_path / "network.onnx"
    network.write_bytes(onnx_model().SerializeToString())
    embedder = Embedder(network, cache=False)
    content = _png(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))
    folder = tmp_path / "w"
    with Workspace.create(folder, features=embedder) as workspace:
        row = embedder.transform([content])[0]
        workspace.teach([NewExample(row, "cup", picture=Picture(content, "image/png", 8, 8))])
    flip(folder / "embeddings" / "000000.npy", 130)
    assert "1 example are damaged (1); their images are intact" in found(folder, repair=True)[0][1]
    assert check_workspace(folder) == []
    with Workspace.open(folder) as workspace:
        assert np.allclose(workspace.embedding(1), row, atol=1e-6)


def _png(pixels):
    from io import BytesIO

    from PIL import Image

    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_the_model_is_rebuilt_after_a_repair(folder):
    flip(folder / "embeddings" / "000000.npy", 128 + 12 + 3)
    with Workspace.open(folder) as workspace:
        workspace._writer.publisher.projection = Mirror()
        workspace.check(repair=True)
        assert sorted(workspace._writer.publisher.projection.places) == [1, 3, 4, 5]


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_missing_and_damaged_images_are_found(folder, how):
    path = images(folder)[0]
    if how == "missing":
        path.unlink()
    else:
        flip(path, 0)
    (finding,) = check_workspace(folder)
    assert finding.what == f"1 image file {how}: {path.name}"
    assert "restore them from a backup" in finding.mend


def test_leftovers_are_harmless_and_removed(folder):
    for path in (
        folder / "images" / "ab" / ("ab" * 32),
        folder / "images" / "ab" / ".evergrow-1.tmp",
        folder / "thumbnails" / "ab" / f"{'ab' * 32}.jpg",
        folder / "embeddings" / "000007.npy",
        folder / "embeddings" / "000001.tmp",
        folder / ".evergrow-2.tmp",
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
    findings = check_workspace(folder)
    assert {one.severity for one in findings} == {"harmless"}
    assert len(findings) == 5
    check_workspace(folder, repair=True)
    assert check_workspace(folder) == []
    assert len(images(folder)) == 3


def test_embeddings_of_interrupted_examples_are_harmless(folder):
    flip(folder / "embeddings" / "000001.npy", 128 + 2 * 12)
    assert found(folder) == [("harmless", "1 embedding of examples that were not taught")]
    check_workspace(folder, repair=True)
    assert check_workspace(folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_tokens_that_others_can_read_are_found_and_repaired(folder):
    Tokens(folder).add("robot", "teach")
    assert check_workspace(folder) == []
    (folder / "tokens.json").chmod(0o644)
    assert found(folder) == [("damage", "tokens.json can be read by other users")]
    check_workspace(folder, repair=True)
    assert check_workspace(folder) == []


def test_damaged_tokens_are_found(folder):
    (folder / "tokens.json").write_text("{")
    assert "tokens.json' is damaged" in found(folder)[0][1]


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"\xff" * 5000, b"", None])
def test_a_damaged_database_is_found_with_a_remedy(folder, content):
    path = folder / "examples.sqlite"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    (finding,) = check_workspace(folder)
    assert finding.severity == "damage"
    assert finding.mend == "restore a backup of the workspace"


def test_a_damaged_page_of_the_database_is_found(folder):
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("pen", f"more {n}") for n in range(200)])
    path = folder / "examples.sqlite"
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096 - 1):
        content[page * 4096 : page * 4096 + 16] = b"\xff" * 16
    path.write_bytes(content)
    assert check_workspace(folder)[0].severity == "damage"


@pytest.mark.parametrize("how", ["damaged", "of the future", "interrupted"])
def test_snapshots_that_cannot_be_used_are_harmless_and_removed(folder, how):
    with Workspace.open(folder) as workspace:
        workspace.save_snapshot()
    assert check_workspace(folder) == []
    (snapshot,) = (folder / "models").iterdir()
    if how == "damaged":
        flip(snapshot / "least_squares.evergrow", -1)
    else:
        snapshot.rename(folder / "models" / {"of the future": "99"}.get(how, ".aside-1"))
    ((severity, what),) = found(folder)
    assert severity == "harmless"
    assert "of the model cannot be used" in what
    check_workspace(folder, repair=True)
    assert check_workspace(folder) == []


def test_a_folder_that_is_not_a_workspace_cannot_be_checked(tmp_path):
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        check_workspace(tmp_path)


def test_a_workspace_in_use_can_be_checked_but_not_repaired(folder):
    with Workspace.open(folder):
        assert check_workspace(folder) == []
        with pytest.raises(WorkspaceLockedError):
            check_workspace(folder, repair=True)


class Served:
    """Another process writes to the workspace as soon as the check has read the database."""

    def __init__(self, monkeypatch, act):
        self._acts = iter([act])
        read = FileCheck._examples

        def read_and_act(check):
            found = read(check)
            next(self._acts, lambda: None)()
            return found

        monkeypatch.setattr(FileCheck, "_examples", read_and_act)


def test_examples_taught_during_a_check_are_not_leftovers(folder, monkeypatch):
    with Workspace.open(folder) as workspace:
        Served(monkeypatch, lambda: workspace.teach([new_example("pen", n) for n in range(10, 20)]))
        assert check_workspace(folder) == []


def test_examples_erased_during_a_check_are_not_damage(folder, monkeypatch):
    with Workspace.open(folder) as workspace:
        Served(monkeypatch, lambda: workspace.forget("cup", erase=True))
        assert check_workspace(folder) == []


def test_files_that_another_process_is_writing_are_not_leftovers(folder):
    with Workspace.open(folder):
        stray = folder / "images" / "ab" / ("ab" * 32)
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"soon an example")
        (folder / "models" / ".aside-1").mkdir()
        assert check_workspace(folder) == []
    assert len(check_workspace(folder)) == 2


def test_snapshots_written_during_a_check_are_usable(folder, monkeypatch):
    with Workspace.open(folder) as workspace:
        acts = iter(
            [lambda: workspace.teach([new_example("pen", 9)]) and workspace.save_snapshot()]
        )
        look = integrity.find_unusable

        def act_and_look(*values, **options):
            next(acts, lambda: None)()
            return look(*values, **options)

        monkeypatch.setattr(integrity, "find_unusable", act_and_look)
        assert check_workspace(folder) == []
        assert workspace.status().snapshot_event == workspace.version


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
