"""Creating, opening and closing workspaces, and their lock."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing, contextmanager, nullcontext

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.vision import Embedder
from evergrow.workspace import (
    Workspace,
    WorkspaceFormatError,
    WorkspaceLockedError,
    check_workspace,
    is_workspace,
)
from evergrow.workspace.model import projection
from evergrow.workspace.store.creation import folder_size
from evergrow.workspace.store.layout import FORMAT
from tests.harness.process import end_if_stuck
from tests.vision.embedding.models import onnx_model
from tests.workspace.builders import counts, new_example, new_workspace


def change_manifest(folder, **values):
    path = folder / "workspace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.fixture
def folder(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1), new_example("pen", 2)])
    return tmp_path / "workspace"


def test_a_new_workspace_is_empty_and_passes_the_check(tmp_path):
    with new_workspace(tmp_path) as workspace:
        assert (workspace.version, counts(workspace), workspace.check()) == (0, {}, [])
    assert is_workspace(tmp_path / "workspace")


def test_a_workspace_is_not_created_over_another(folder):
    with pytest.raises(WorkspaceError, match="is already a workspace"):
        Workspace.create(folder, features=None)


def test_a_workspace_is_not_created_among_other_files(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(WorkspaceError, match=r"is not empty, it contains 'letter\.txt'"):
        Workspace.create(tmp_path, features=None)
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_a_workspace_is_not_created_in_place_of_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="is a file: choose a folder"):
        Workspace.create(tmp_path / "file", features=None)


def test_a_workspace_is_created_after_an_interrupted_creation(tmp_path):
    new_workspace(tmp_path).close()
    (tmp_path / "workspace" / "workspace.json").unlink()
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup")])


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_invalid_options_are_refused(tmp_path, options, message):
    with pytest.raises(WorkspaceError, match=message):
        new_workspace(tmp_path, **options)
    assert not (tmp_path / "workspace").exists()


def test_a_folder_that_is_not_a_workspace_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(
        WorkspaceError, match=r"no workspace\.json; create one with 'evergrow init'"
    ):
        Workspace.open(tmp_path)
    assert not list(tmp_path.iterdir())


@contextmanager
def elsewhere(act):
    """Another process that acts, says what came of it and waits; killed at the end."""
    message, saying = os.pipe()
    child = os.fork()
    if child == 0:
        end_if_stuck()
        try:
            os.write(saying, str(act()).encode())
            signal.pause()
        except BaseException as error:  # noqa: BLE001
            os.write(saying, repr(error).encode())
        finally:
            os._exit(0)
    os.close(saying)
    try:
        yield child, os.read(message, 1000).decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(message)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_workspace_is_refused_while_another_process_has_it(folder):
    with elsewhere(lambda: Workspace.open(folder).version) as (process, message):
        assert message == "2"
        with pytest.raises(WorkspaceLockedError, match=f"process {process}"):
            Workspace.open(folder)
        with Workspace.open(folder, read_only=True) as reading:
            assert counts(reading) == {"cup": 1, "pen": 1}
    Workspace.open(folder).close()


def test_a_closed_workspace_refuses_requests(folder):
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
        new_workspace(tmp_path) as writing,
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
def test_a_folder_without_write_permission_can_be_read(folder, tmp_path):
    for path in (*tmp_path.parents[:3], tmp_path, folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))

    def read_as_another():
        os.setgid(65534)
        os.setuid(65534)
        with Workspace.open(folder, read_only=True) as workspace:
            return workspace.status().n_examples

    with elsewhere(read_as_another) as (_, message):
        assert message == "2"


@pytest.mark.parametrize("found", [0, FORMAT + 1])
def test_a_workspace_of_another_format_is_refused(folder, found):
    words = f"has format {found}, and Evergrow .* reads format {FORMAT}: open it with the version"
    change_manifest(folder, format=found, unheard_of=True)
    for ask in (Workspace.open, check_workspace):
        with pytest.raises(WorkspaceFormatError, match=words):
            ask(folder)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_of_another_format_is_refused(folder, read_only):
    path = folder / "examples.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    with pytest.raises(WorkspaceFormatError, match=f"the database .* has format {FORMAT + 1}, and"):
        Workspace.open(folder, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [True, False])
def test_another_database_than_ours_is_refused(folder, read_only):
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 0")
    with pytest.raises(WorkspaceError, match="is not the database of a workspace"):
        Workspace.open(folder, read_only=read_only)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is damaged"),
        ("[]", "it is not a JSON object"),
        ("{}", "it has no valid format number"),
        ('{"format": true}', "it has no valid format number"),
        ('{"format": 1}', "missing fields"),
    ],
)
def test_a_damaged_manifest_is_an_error_with_a_remedy(folder, content, message):
    (folder / "workspace.json").write_text(content)
    with pytest.raises(WorkspaceError, match=f"{message}.*; restore it from a backup"):
        Workspace.open(folder)


@pytest.mark.parametrize(
    "values", [{"n_features": -1}, {"id": 3}, {"features": 3}, {"rows_per_shard": 1 << 40}]
)
def test_a_manifest_with_invalid_values_is_refused(folder, values):
    change_manifest(folder, **values)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Workspace.open(folder)


def test_a_missing_database_is_an_error_with_a_remedy(folder):
    (folder / "examples.sqlite").unlink()
    with pytest.raises(WorkspaceError, match=r"has no examples\.sqlite: restore a backup"):
        Workspace.open(folder)


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough" * 100])
def test_a_file_that_is_not_a_database_is_an_error_with_a_remedy(folder, content):
    (folder / "examples.sqlite").write_bytes(content)
    with pytest.raises(WorkspaceError, match="restore a backup"):
        Workspace.open(folder)


def test_missing_embeddings_are_an_error_with_a_remedy(folder):
    (folder / "embeddings" / "000000.npy").unlink()
    with pytest.raises(WorkspaceError, match=r"000000\.npy is missing; 'evergrow check --mend'"):
        Workspace.open(folder)


def test_the_embedder_is_stored_in_the_workspace(tmp_path):
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


def test_files_deleted_while_they_are_counted_are_ignored(folder, monkeypatch):
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
def test_a_missing_empty_folder_is_created_again(tmp_path, name):
    new_workspace(tmp_path).close()
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


def test_snapshots_left_by_an_interrupted_erasure_are_deleted_on_opening(folder, monkeypatch):
    with Workspace.open(folder) as workspace:
        workspace.save_snapshot()
        monkeypatch.setattr(projection, "delete_before", lambda *_: None)
        workspace.forget("cup", erase=True)
        monkeypatch.undo()
    (finding,) = check_workspace(folder)
    assert "it contains what was erased since" in finding.what
    Workspace.open(folder).close()
    assert not list((folder / "models").iterdir())
    assert check_workspace(folder) == []
