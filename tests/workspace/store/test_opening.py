"""Making, opening and closing workspaces; who may have one open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.vision import Embedder
from evergrow.workspace import (
    NewerWorkspaceError,
    Workspace,
    WorkspaceLockedError,
    check_workspace,
    is_workspace,
)
from evergrow.workspace.model import projection
from evergrow.workspace.store.creation import folder_size
from tests.vision.embedding.models import onnx_model
from tests.workspace.builders import counts, made, new_example


def change_manifest(folder, **values):
    path = folder / "workspace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.fixture
def folder(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1), new_example("pen", 2)])
    return tmp_path / "workspace"


def test_a_new_workspace_is_empty_and_in_order(tmp_path):
    with made(tmp_path) as workspace:
        assert (workspace.version, counts(workspace), workspace.check()) == (0, {}, [])
    assert is_workspace(tmp_path / "workspace")


def test_a_workspace_is_made_in_an_empty_folder(tmp_path):
    Workspace.create(tmp_path, features=None).close()
    assert is_workspace(tmp_path)


def test_a_workspace_is_not_made_over_another(folder):
    with pytest.raises(WorkspaceError, match="is already a workspace"):
        Workspace.create(folder, features=None)


def test_a_workspace_is_not_made_among_other_files(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(WorkspaceError, match=r"is not empty, it contains 'letter\.txt'"):
        Workspace.create(tmp_path, features=None)
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_a_workspace_is_not_made_in_place_of_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="is a file: choose a folder"):
        Workspace.create(tmp_path / "file", features=None)


def test_a_workspace_is_made_where_making_one_was_interrupted(tmp_path):
    made(tmp_path).close()
    (tmp_path / "workspace" / "workspace.json").unlink()
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"false_alarms": 0.0}, "false_alarms must be"),
        ({"false_alarms": 0.9}, "false_alarms must be"),
        ({"max_classes": 0}, "max_classes must be"),
        ({"rows_per_shard": 0}, "rows_per_shard must be"),
        ({"seed": -1}, "seed must be"),
        ({"forest": "yes"}, "forest must be True or False"),
        ({"n_features": 0}, "n_features must be"),
    ],
)
def test_wrong_options_stop_at_the_door(tmp_path, options, said):
    with pytest.raises(WorkspaceError, match=said):
        made(tmp_path, **options)
    assert not (tmp_path / "workspace").exists()


def test_a_folder_that_is_no_workspace_says_how_to_make_one(tmp_path):
    with pytest.raises(
        WorkspaceError, match=r"no workspace\.json; create one with 'evergrow init'"
    ):
        Workspace.open(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_workspace_opened_twice_is_refused_and_says_by_whom(folder):
    with (
        Workspace.open(folder),
        pytest.raises(WorkspaceLockedError, match=f"is in use by process {os.getpid()} since 20"),
    ):
        Workspace.open(folder)


@contextmanager
def elsewhere(act):
    """Another process that acts, says what came of it and waits; killed at the end."""
    said, saying = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(saying, str(act()).encode())
            signal.pause()
        except BaseException as error:  # noqa: BLE001
            os.write(saying, repr(error).encode())
        finally:
            os._exit(0)
    os.close(saying)
    try:
        yield child, os.read(said, 1000).decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(said)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_workspace_is_refused_while_another_process_has_it(folder):
    with elsewhere(lambda: Workspace.open(folder).version) as (process, said):
        assert said == "2"
        with pytest.raises(WorkspaceLockedError, match=f"process {process}"):
            Workspace.open(folder)
        with Workspace.open(folder, read_only=True) as reading:
            assert counts(reading) == {"cup": 1, "pen": 1}
    Workspace.open(folder).close()


def test_a_workspace_can_be_opened_again_once_closed(folder):
    Workspace.open(folder).close()
    Workspace.open(folder).close()


def test_closing_twice_is_closing_once(folder):
    workspace = Workspace.open(folder)
    workspace.close()
    workspace.close()


def test_a_closed_workspace_says_that_it_is_closed(folder):
    workspace = Workspace.open(folder)
    workspace.close()
    for ask in (workspace.classes, lambda: workspace.teach([new_example("cup")])):
        with pytest.raises(WorkspaceError, match="is closed"):
            ask()


def test_a_reader_sees_what_is_taught_meanwhile(folder):
    with Workspace.open(folder) as writing, Workspace.open(folder, read_only=True) as reading:
        assert reading.read_only
        writing.teach([new_example("cup", 3)])
        assert counts(reading) == {"cup": 2, "pen": 1}
        assert reading.version == 3


def test_a_reader_from_before_the_first_example_sees_it(tmp_path):
    with (
        made(tmp_path) as writing,
        Workspace.open(tmp_path / "workspace", read_only=True) as reading,
    ):
        assert reading.n_features is None
        writing.teach([new_example("cup")])
        assert reading.embedding(1).tobytes() == writing.embedding(1).tobytes()
        assert reading.status().n_features == 3


def test_a_reader_changes_nothing(folder):
    with (
        Workspace.open(folder, read_only=True) as workspace,
        pytest.raises(WorkspaceError, match="open for reading only"),
    ):
        workspace.forget("cup")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_a_folder_that_one_may_not_write_to_can_be_read(folder, tmp_path):
    for path in (*tmp_path.parents[:3], tmp_path, folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))

    def read_as_another():
        os.setgid(65534)
        os.setuid(65534)
        with Workspace.open(folder, read_only=True) as workspace:
            return workspace.status().n_examples

    with elsewhere(read_as_another) as (_, said):
        assert said == "2"


def test_a_workspace_of_a_newer_version_is_refused(folder):
    change_manifest(folder, format=99, unheard_of=True)
    for ask in (Workspace.open, check_workspace):
        with pytest.raises(NewerWorkspaceError, match="has format 99 of a newer version"):
            ask(folder)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is damaged"),
        ("[]", "it is not a JSON object"),
        ("{}", "it has no valid format number"),
        ('{"format": 0}', "it has no valid format number"),
        ('{"format": true}', "it has no valid format number"),
        ('{"format": 2}', "missing fields"),
    ],
)
def test_a_damaged_manifest_says_to_take_that_of_a_backup(folder, content, said):
    (folder / "workspace.json").write_text(content)
    with pytest.raises(WorkspaceError, match=f"{said}.*; restore it from a backup"):
        Workspace.open(folder)


@pytest.mark.parametrize(
    "values", [{"n_features": -1}, {"id": 3}, {"features": 3}, {"rows_per_shard": 1 << 40}]
)
def test_a_manifest_with_values_that_cannot_be_is_refused(folder, values):
    change_manifest(folder, **values)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)


def test_a_lock_is_not_kept_by_an_opening_that_fails(folder):
    content = (folder / "workspace.json").read_text()
    change_manifest(folder, n_features=-1)
    with pytest.raises(WorkspaceError):
        Workspace.open(folder)
    (folder / "workspace.json").write_text(content)
    Workspace.open(folder).close()


def test_a_missing_database_says_to_take_that_of_a_backup(folder):
    (folder / "examples.sqlite").unlink()
    with pytest.raises(WorkspaceError, match=r"has no examples\.sqlite: restore a backup"):
        Workspace.open(folder)


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough" * 100])
def test_a_database_that_is_none_says_to_take_that_of_a_backup(folder, content):
    (folder / "examples.sqlite").write_bytes(content)
    with pytest.raises(WorkspaceError, match="restore a backup"):
        Workspace.open(folder)


def test_missing_embeddings_say_how_to_mend(folder):
    (folder / "embeddings" / "000000.npy").unlink()
    with pytest.raises(WorkspaceError, match=r"000000\.npy is missing; 'evergrow check --mend'"):
        Workspace.open(folder)


def test_an_embedder_is_kept_with_the_workspace(tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(onnx_model().SerializeToString())
    with Workspace.create(tmp_path / "w", features=Embedder(path, cache=False)) as workspace:
        assert workspace.status().takes_images
        width = workspace.n_features
    path.unlink()
    with Workspace.open(tmp_path / "w") as workspace:
        image = np.zeros((8, 8, 3), dtype=np.uint8)
        assert workspace.embedder.transform([image]).shape == (1, width)
        assert workspace.check() == []


def test_the_state_can_be_asked_for_while_snapshots_come_and_go(folder):
    with Workspace.open(folder) as workspace:
        stop = threading.Event()

        def write():
            while not stop.is_set():
                workspace.teach([new_example("cup", workspace.version)])
                workspace.save_snapshot()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(300):
                assert workspace.status().n_bytes > 0
        finally:
            stop.set()
            thread.join()


def test_files_that_go_while_they_are_counted_do_not_matter(folder, monkeypatch):
    scan = os.scandir

    def scan_and_remove(path):
        with scan(path) as found:
            entries = list(found)
        for entry in entries:
            os.unlink(entry)
        return nullcontext(entries)

    monkeypatch.setattr("os.scandir", scan_and_remove)
    assert folder_size(folder / "embeddings") == 0


@pytest.mark.parametrize("name", ["embeddings", "models", "images", "thumbnails"])
def test_an_empty_folder_that_is_missing_is_made_again(tmp_path, name):
    made(tmp_path).close()
    folder = tmp_path / "workspace"
    (folder / name).rmdir()
    assert check_workspace(folder) == []
    with Workspace.open(folder, read_only=True) as workspace:
        assert workspace.backup(tmp_path / "copy").n_examples == 0
        assert workspace.status().n_examples == 0
    with Workspace.open(folder) as workspace:
        assert (folder / name).is_dir()
        workspace.teach([new_example("cup")])
        assert workspace.check() == []


def test_missing_folders_are_found_and_mended(folder, tmp_path):
    shutil.rmtree(folder / "embeddings")
    shutil.rmtree(folder / "models")
    with pytest.raises(WorkspaceError, match=r"000000\.npy is missing; 'evergrow check --mend'"):
        Workspace.open(folder)
    assert "000000.npy is missing" in check_workspace(folder)[0].what
    assert all(one.mended for one in check_workspace(folder, repair=True))
    assert check_workspace(folder) == []


def test_snapshots_that_an_erasing_left_when_it_was_interrupted_go_on_opening(folder, monkeypatch):
    with Workspace.open(folder) as workspace:
        workspace.save_snapshot()
        monkeypatch.setattr(projection, "delete_before", lambda *_: None)
        workspace.forget("cup", erase=True)
        monkeypatch.undo()
    (finding,) = check_workspace(folder)
    assert "it contains erased examples" in finding.what
    Workspace.open(folder).close()
    assert not list((folder / "models").iterdir())
    assert check_workspace(folder) == []
