"""A folder from a stranger: nothing in it leads outside, and the database has only our tables."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from evergrow import InvalidInputError, WorkspaceError
from evergrow.vision.images.decoder import MEDIA_TYPES
from evergrow.workspace import Picture, Workspace, check_workspace
from evergrow.workspace.store.files import ImageStore
from tests.workspace.builders import (
    counts,
    labels,
    new_example,
    new_workspace,
    picture,
    request_with_key,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows restricts links")

IMAGE = hashlib.sha256(picture(1).content).hexdigest()


@pytest.fixture
def folder(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen", 2)])
        workspace.save_snapshot()
    return tmp_path / "workspace"


@pytest.fixture
def precious(tmp_path):
    """A file outside, which must be neither read nor changed."""
    path = tmp_path / "precious.txt"
    path.write_text("TOP SECRET")
    yield path
    assert path.read_text() == "TOP SECRET"


def change_database(folder, script):
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        connection.executescript(script)


def refused(folder, match):
    """Neither reading nor writing nor repairing opens the folder."""
    for open_it in (
        lambda: Workspace.open(folder, read_only=True),
        lambda: Workspace.open(folder),
    ):
        with pytest.raises(WorkspaceError, match=match):
            open_it()
    for repair in (False, True):
        (finding,) = check_workspace(folder, repair=repair)
        assert finding.severity == "damage"
        assert not finding.mended


@pytest.mark.parametrize(
    "name",
    ["../../precious.txt", "/etc/passwd", "", "a" * 63, "A" * 64, "g" * 64, "0" * 65, "é" * 64],
)
def test_a_name_of_an_image_that_is_not_a_hash_is_refused(folder, precious, name):
    for method in ("path", "thumbnail_path", "content", "delete"):
        with pytest.raises(WorkspaceError, match="must be 64 hexadecimal digits"):
            getattr(ImageStore(folder), method)(name)
    change_database(
        folder,
        f"UPDATE picture SET sha256 = '{name}'; UPDATE example SET image = '{name}'"
        " WHERE image IS NOT NULL;",
    )
    refused(folder, "a name of an image that is not 64 hexadecimal digits")


def test_an_image_name_of_an_example_alone_is_checked_too(folder, precious):
    change_database(folder, "UPDATE example SET image = '../../precious.txt';")
    refused(folder, "a name of an image that is not 64 hexadecimal digits")


@pytest.mark.parametrize("media_type", ["text/html", "image/svg+xml", "", "image/png\nX-Evil: 1"])
def test_a_media_type_that_is_not_one_of_an_image_is_refused(folder, media_type):
    with (
        Workspace.open(folder) as workspace,
        pytest.raises(WorkspaceError, match="the media type of an image must be one of"),
    ):
        workspace.teach([new_example("cup", 3, picture=Picture(b"x", media_type, 1, 1))])
    change_database(folder, f"UPDATE picture SET media_type = '{media_type}';")
    refused(folder, "a media type that is not one of an image")


@pytest.mark.parametrize(
    "script", ["UPDATE event SET body = 'x';", "UPDATE request_key SET answer = '[';"]
)
def test_rows_that_are_not_json_are_refused(folder, script):
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("cup", 7, request=request_with_key("k"))])
    change_database(folder, script)
    refused(folder, "that is not JSON")


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_every_media_type_that_is_decoded_is_stored(workspace, media_type):
    workspace.teach([new_example("cup", 3, picture=Picture(b"x", media_type, 1, 1))])
    assert workspace.example(1).media_type == media_type


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM example; END;",
        "CREATE VIEW v AS SELECT * FROM event;",
        "CREATE TABLE mine (x);",
        "CREATE INDEX more ON event (actor);",
        "CREATE VIRTUAL TABLE search USING fts5(x);",
        "ALTER TABLE class ADD COLUMN more TEXT;",
        "ALTER TABLE class ADD COLUMN more TEXT AS (upper(name));",
        "DROP INDEX event_standing;",
        "DROP INDEX event_standing; CREATE INDEX event_standing ON event (length(body));",
        "ALTER TABLE writer RENAME TO writer2; CREATE VIEW writer AS SELECT token FROM writer2;",
        "ALTER TABLE picture RENAME TO p; CREATE TABLE picture (sha256 TEXT PRIMARY KEY,"
        " media_type TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,"
        " n_bytes INTEGER NOT NULL CHECK (n_bytes > abs(-1) - 99));"
        " INSERT INTO picture SELECT * FROM p; DROP TABLE p;",
    ],
)
def test_a_database_with_other_tables_is_refused(folder, script):
    change_database(folder, script)
    refused(folder, "was not written by Evergrow, or is damaged")


def test_statistics_that_a_tool_of_sqlite_collected_are_accepted(folder):
    with Workspace.open(folder) as workspace:
        workspace.teach([new_example("cup", seed) for seed in range(10, 90)])
        expected = labels(workspace)
    change_database(folder, "ANALYZE;")
    with closing(sqlite3.connect(folder / "examples.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_stat1").fetchone()[0] > 0
    with Workspace.open(folder) as workspace:
        assert labels(workspace) == expected
        workspace.teach([new_example("cup", 99)])
        assert workspace.check() == []


@pytest.mark.parametrize(
    "row",
    [
        "'trigger', 'sqlite_stat1', 'event', 0,"
        " 'CREATE TRIGGER sqlite_stat1 AFTER INSERT ON event BEGIN DELETE FROM example; END'",
        "'view', 'sqlite_stat1', 'sqlite_stat1', 0,"
        " 'CREATE VIEW sqlite_stat1 AS SELECT 1 AS tbl, 2 AS idx, 3 AS stat'",
        "'table', 'sqlite_stat1', 'sqlite_stat1', 2,"
        " 'CREATE TABLE sqlite_stat1(tbl,idx,stat CHECK (abs(1)))'",
    ],
)
def test_something_else_by_the_name_of_statistics_is_refused(folder, row):
    change_database(
        folder,
        "PRAGMA writable_schema = ON;"
        f" INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ({row});",
    )
    with pytest.raises(WorkspaceError, match="damaged"):
        Workspace.open(folder)


def test_the_database_is_not_trusted(workspace):
    workspace.teach([new_example("cup")])
    database = workspace._store.database
    with database.read_transaction() as reader:
        for connection in (reader, database.writer):
            assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
            assert connection.execute("PRAGMA cell_size_check").fetchone() == (1,)


def test_a_damaged_page_is_found_on_opening(folder):
    path = folder / "examples.sqlite"
    content = bytearray(path.read_bytes())
    content[2 * 4096 : 2 * 4096 + 200] = os.urandom(200)
    path.write_bytes(content)
    with pytest.raises(WorkspaceError, match="damaged"):
        Workspace.open(folder)


ENTRIES = (
    "workspace.json",
    "examples.sqlite",
    "examples.sqlite-wal",
    "lock",
    "tokens.json",
    "features.evergrow",
    "images",
    "thumbnails",
    "embeddings",
    "models",
    "re-embedding",
)


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_a_link_or_pipe_in_the_folder_is_refused(folder, tmp_path, name, kind):
    path, outside = folder / name, tmp_path / "outside"
    if path.exists():
        os.replace(path, outside)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside if kind == "link" else tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    for read_only in (True, False):
        with pytest.raises(WorkspaceError, match=r"holds only plain files|is not a workspace"):
            Workspace.open(folder, read_only=read_only)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_link_in_place_of_an_image_is_not_followed(folder, precious, tmp_path, place):
    path = folder / "images" / IMAGE[:2] / IMAGE
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / IMAGE).write_text("TOP SECRET")
    if place == "file":
        path.unlink()
        path.symlink_to(precious)
    else:
        shutil.rmtree(path.parent)
        path.parent.symlink_to(elsewhere)
    with Workspace.open(folder) as workspace:
        with pytest.raises(WorkspaceError, match="is a link"):
            workspace.picture(1)
        assert any("behind a link" in one.what for one in workspace.check())
        with pytest.raises(WorkspaceError, match="is a link"):
            workspace.teach([new_example("cup", 1, picture=picture(1))])
        with pytest.raises(WorkspaceError, match="is a link"):
            workspace.forget("cup", erase=True)
    assert (elsewhere / IMAGE).read_text() == "TOP SECRET"
    # The class is forgotten; its files are erased once the link is gone.
    (path if place == "file" else path.parent).unlink()
    with Workspace.open(folder) as workspace:
        assert counts(workspace) == {"pen": 1}
        assert workspace.check() == []


def test_links_in_place_of_thumbnails_embeddings_and_snapshots_are_not_followed(
    folder, precious, tmp_path
):
    thumbnail = folder / "thumbnails" / IMAGE[:2] / f"{IMAGE}.jpg"
    thumbnail.unlink()
    thumbnail.symlink_to(precious)
    (snapshot,) = (folder / "models").iterdir()
    (snapshot / "snapshot.json").unlink()
    (snapshot / "snapshot.json").symlink_to(precious)
    with Workspace.open(folder) as workspace:
        with pytest.raises(WorkspaceError, match="is a link"):
            workspace.thumbnail(1)
        assert counts(workspace) == {"cup": 1, "pen": 1}
    shard = folder / "embeddings" / "000000.npy"
    os.replace(shard, tmp_path / "outside.npy")
    shard.symlink_to(tmp_path / "outside.npy")
    content = (tmp_path / "outside.npy").read_bytes()
    with pytest.raises(WorkspaceError, match="is a link"):
        Workspace.open(folder)
    assert (tmp_path / "outside.npy").read_bytes() == content


def test_a_backup_copies_nothing_from_outside(folder, precious, tmp_path):
    (snapshot,) = (folder / "models").iterdir()
    (snapshot / "more").symlink_to(precious)
    with Workspace.open(folder, read_only=True) as workspace:
        workspace.backup(tmp_path / "backup")
    for path in (tmp_path / "backup").rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or b"TOP SECRET" not in path.read_bytes()


def test_every_refusal_is_an_error_of_ours(folder):
    """Garbage in any file is a ``WorkspaceError``, or is found by the check."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for garbage in (b"", b"\0" * 64, os.urandom(300), b"[" * 100_000):
            content = path.read_bytes()
            path.write_bytes(garbage)
            for ask in (
                lambda: Workspace.open(folder, read_only=True).close(),
                lambda: Workspace.open(folder).close(),
                lambda: check_workspace(folder),
            ):
                with contextlib.suppress(InvalidInputError):
                    ask()
            path.write_bytes(content)
