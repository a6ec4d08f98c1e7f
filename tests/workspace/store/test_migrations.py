"""Workspaces of every earlier format are migrated to the newest."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from evergrow import WorkspaceError
from evergrow.vision import Embedder, OnnxModel
from evergrow.workspace import NewerWorkspaceError, Workspace, check_workspace
from evergrow.workspace.store import migrations
from evergrow.workspace.store.layout import FORMAT
from tests.vision.embedding.models import onnx_model
from tests.workspace.builders import new_example, new_workspace, request_with_key
from tests.workspace.formats.make import EXPECTED, HERE, expected, restore

FORMATS = list(range(1, FORMAT + 1))


@pytest.fixture(params=FORMATS)
def stored_workspace(request, tmp_path):
    """A workspace of each format, as it was when that format was the newest."""
    source = HERE / f"format{request.param}"
    restore(source, tmp_path / "stored")
    return tmp_path / "stored", json.loads((source / EXPECTED).read_text())


@pytest.fixture
def first(tmp_path):
    """A workspace of the first format."""
    restore(HERE / "format1", tmp_path / "first")
    return tmp_path / "first"


def columns_and_indices(folder):
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        columns = {
            (table, *column[1:3])
            for (table,) in tables.fetchall()
            for column in connection.execute(f"PRAGMA table_info({table})")
        }
        indices = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        return columns, set(indices.fetchall())


def newest_event_number(folder):
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_a_workspace_of_every_format_has_its_content(stored_workspace):
    folder, content = stored_workspace
    with Workspace.open(folder) as workspace:
        assert expected(workspace) == content


def test_a_migrated_workspace_of_every_format_passes_the_check(stored_workspace):
    folder, _ = stored_workspace
    with Workspace.open(folder) as workspace:
        assert workspace.check() == []


def test_a_workspace_of_every_format_can_be_changed(stored_workspace):
    folder, content = stored_workspace
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("new", 1)])
        workspace.undo()
        assert expected(workspace)["labels"] == content["labels"]
        # Earlier keys are known.
        (repeated,) = workspace.teach([new_example("cup", 4, request=request_with_key("key"))])
        assert repeated.example.id == 5


def test_a_migrated_database_has_the_tables_of_a_new_one(stored_workspace, tmp_path):
    folder, _ = stored_workspace
    Workspace.open(folder).close()
    new_workspace(tmp_path).close()
    assert columns_and_indices(folder) == columns_and_indices(tmp_path / "workspace")


def test_the_migration_adds_the_sizes_of_pictures(first):
    Workspace.open(first).close()
    with closing(sqlite3.connect(first / "examples.sqlite")) as connection:
        sizes = connection.execute("SELECT sha256, n_bytes FROM picture").fetchall()
    stored = {path.name: path.stat().st_size for path in first.glob("images/*/*")}
    assert dict(sizes) == stored


def test_only_the_last_assessment_of_the_second_format_stays_complete(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example(name, n) for name in ("cup", "pen") for n in range(12)])
        found = workspace.assess()
    restore(HERE / "format2", tmp_path / "second")
    bodies = [{**found.to_json(), "penalty": penalty} for penalty in (1.0, 2.0)]
    with closing(sqlite3.connect(tmp_path / "second" / "examples.sqlite")) as connection:
        connection.executemany(
            "INSERT INTO event (kind, at, actor, body) VALUES ('choose', '9', 'model', ?)",
            [(json.dumps(body),) for body in bodies],
        )
        connection.commit()
    with Workspace.open(tmp_path / "second") as workspace:
        assert workspace.assessment.to_json() == bodies[1]
        stored = [event.body for event in workspace.events(limit=2).items]
        assert [body["penalty"] for body in stored] == [2.0, 1.0]
        assert not any("class_counts" in body for body in stored)


def test_a_workspace_of_the_third_format_keeps_its_features(tmp_path):
    embedder = Embedder(OnnxModel(onnx_model().SerializeToString()), cache=False)
    folder = tmp_path / "third"
    Workspace.create(folder, features=embedder).close()
    values = json.loads((folder / "workspace.json").read_text())
    del values["blocks"], values["embedded_by"]
    (folder / "workspace.json").write_text(json.dumps({**values, "format": 3}))
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        connection.executescript(
            "DROP INDEX event_erasure; DROP INDEX event_model; DROP TABLE writer;"
            "PRAGMA user_version = 3;"
            "CREATE INDEX event_forget ON event (seq) WHERE kind = 'forget';"
            "CREATE INDEX event_model ON event (seq) WHERE kind IN"
            " ('split', 'unsplit', 'undo', 'choose', 'forest');"
        )
    with Workspace.open(folder) as workspace:
        assert workspace.manifest.blocks == (("head", 5),)
        assert workspace.manifest.embedded_by == 0
        assert workspace.embedder.blocks_ == {"head": 5}
        assert workspace.check() == []


def test_an_older_workspace_is_not_changed_by_reading(first):
    with pytest.raises(WorkspaceError, match="of an earlier version of Evergrow: open it once"):
        Workspace.open(first, read_only=True)
    assert newest_event_number(first) == 1


def test_repairing_migrates_an_older_workspace(first):
    assert check_workspace(first, repair=True) == []
    with Workspace.open(first, read_only=True) as workspace:
        assert workspace.manifest.format == FORMAT


def test_a_migration_that_fails_changes_nothing(first, monkeypatch):
    def fail(connection, layout):
        migrate(connection, layout)
        raise RuntimeError("power")

    migrate = migrations._TABLES[1]
    monkeypatch.setitem(migrations._TABLES, 1, fail)
    with pytest.raises(RuntimeError, match="power"):
        Workspace.open(first)
    assert newest_event_number(first) == 1
    monkeypatch.undo()
    Workspace.open(first).close()
    assert newest_event_number(first) == FORMAT


def test_a_migration_interrupted_before_the_manifest_is_continued(first, monkeypatch):
    def fail(layout, manifest):
        raise RuntimeError("power")

    monkeypatch.setattr(migrations, "write_manifest", fail)
    with pytest.raises(RuntimeError, match="power"):
        Workspace.open(first)
    assert newest_event_number(first) == FORMAT
    monkeypatch.undo()
    with Workspace.open(first) as workspace:
        assert workspace.manifest.format == FORMAT
        assert workspace.check() == []


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_of_a_newer_version_is_refused(tmp_path, read_only):
    new_workspace(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "workspace" / "examples.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerWorkspaceError, match="has format 99 of a newer version"):
        Workspace.open(tmp_path / "workspace", read_only=read_only)


def test_every_format_has_a_stored_workspace():
    assert sorted(path.name for path in HERE.glob("format*")) == [f"format{n}" for n in FORMATS]
