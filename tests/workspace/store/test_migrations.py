"""Workspaces of every earlier format are brought to the newest."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import NewerWorkspaceError, Workspace, check_workspace
from evergrow.workspace.store import migrations
from evergrow.workspace.store.layout import FORMAT
from tests.workspace.builders import asked, made, new_example
from tests.workspace.formats.make import EXPECTED, HERE, expected, restore

FORMATS = list(range(1, FORMAT + 1))


@pytest.fixture(params=FORMATS)
def kept(request, tmp_path):
    """A workspace of each format, as it was when that format was the newest."""
    source = HERE / f"format{request.param}"
    restore(source, tmp_path / "kept")
    return tmp_path / "kept", json.loads((source / EXPECTED).read_text())


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


def test_a_workspace_of_every_format_says_what_it_said(kept):
    folder, said = kept
    with Workspace.open(folder) as workspace:
        assert expected(workspace) == said


def test_a_workspace_of_every_format_is_in_order_afterwards(kept):
    folder, _ = kept
    with Workspace.open(folder) as workspace:
        assert workspace.check() == []


def test_a_workspace_of_every_format_goes_on(kept):
    folder, said = kept
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("new", 1)])
        workspace.undo()
        assert expected(workspace)["labels"] == said["labels"]
        # Keys of before are known.
        assert workspace.teach([new_example("cup", 4, request=asked("key"))])[0].example.id == 5


def test_a_migrated_database_has_the_tables_of_a_new_one(kept, tmp_path):
    folder, _ = kept
    Workspace.open(folder).close()
    made(tmp_path).close()
    assert columns_and_indices(folder) == columns_and_indices(tmp_path / "workspace")


def test_the_sizes_of_pictures_are_found_out(first):
    Workspace.open(first).close()
    with closing(sqlite3.connect(first / "examples.sqlite")) as connection:
        sizes = connection.execute("SELECT sha256, n_bytes FROM picture").fetchall()
    kept = {path.name: path.stat().st_size for path in first.glob("images/*/*")}
    assert dict(sizes) == kept


def test_assessments_of_the_second_format_become_small_but_for_the_last(tmp_path):
    with made(tmp_path) as workspace:
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
        kept = [event.body for event in workspace.events(limit=2).items]
        assert [body["penalty"] for body in kept] == [2.0, 1.0]
        assert not any("class_counts" in body for body in kept)


def test_an_older_workspace_is_not_changed_by_reading(first):
    with pytest.raises(WorkspaceError, match="of an earlier version of Evergrow: open it once"):
        Workspace.open(first, read_only=True)
    assert newest_event_number(first) == 1


def test_mending_brings_an_older_workspace_to_the_newest_format(first):
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


def test_a_migration_interrupted_before_the_manifest_goes_on(first, monkeypatch):
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
    made(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "workspace" / "examples.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerWorkspaceError, match="has format 99 of a newer version"):
        Workspace.open(tmp_path / "workspace", read_only=read_only)


def test_every_format_is_kept():
    assert sorted(path.name for path in HERE.glob("format*")) == [f"format{n}" for n in FORMATS]
