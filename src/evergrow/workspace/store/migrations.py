"""Creates the database, and migrates one of an earlier format to the current format.

A migration is one numbered step from a format to the next. An old workspace runs all missing steps
in one transaction. The tests keep a database of every earlier format.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.vision.embedding.networks import HEAD
from evergrow.workspace.records import NewerWorkspaceError
from evergrow.workspace.store.database import Database, translate_disk_errors
from evergrow.workspace.store.files import ImageStore
from evergrow.workspace.store.layout import FORMAT, Layout, manifest_of, read_values, write_manifest
from evergrow.workspace.store.schema import SCHEMA, clear_answers
from evergrow.workspace.store.staging import require_settled, settle


def create_database(layout: Layout) -> None:
    """Create the empty database of a new workspace."""
    flags = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with translate_disk_errors(layout.folder):
        # SQLite gives its other files the permissions of the database.
        os.close(os.open(layout.database, flags, 0o600))
    with (
        translate_disk_errors(layout.folder),
        closing(sqlite3.connect(layout.database)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")


def check_newest(layout: Layout, store: Database) -> None:
    """Raise a ``WorkspaceError`` unless manifest and database have the current format."""
    values = read_values(layout)
    with store.read_transaction() as connection:
        version = _version(connection, layout)
        require_settled(layout, connection)
    if version == FORMAT:
        store.verify(current=True)
    if version < FORMAT or values["format"] < FORMAT:
        raise WorkspaceError(
            f"the workspace {str(layout.folder)!r} has the format of an earlier version of "
            "Evergrow: open it once for writing, such as with 'evergrow check --mend'"
        )


def migrate(layout: Layout, store: Database) -> None:
    """Migrate a workspace to the current format, if it has an earlier one, and take it over.

    The database is migrated first and the manifest last, so that the next opening continues after a
    crash in between. Files of pictures that were embedded again are put in place before.
    """
    version = _version(store.writer, layout)
    store.verify(current=version == FORMAT)
    store.prove()
    settle(layout, store.writer)
    values = read_values(layout)
    if version < FORMAT:
        with store.transaction() as connection:
            for number in range(version, FORMAT):
                _TABLES[number](connection, layout)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        store.verify(current=True)
    store.take_over()
    if values["format"] < FORMAT:
        for number in range(values["format"], FORMAT):
            values = {**_MANIFEST[number](values), "format": number + 1}
        with translate_disk_errors(layout.folder):
            write_manifest(layout, manifest_of(layout, values))


def _version(connection: sqlite3.Connection, layout: Layout) -> int:
    with translate_disk_errors(layout.folder):
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > FORMAT:
        raise NewerWorkspaceError(
            f"the database of the workspace {str(layout.folder)!r} has format {version} of a "
            f"newer version of Evergrow; this version reads up to {FORMAT}: update Evergrow"
        )
    if version < 1:
        raise WorkspaceError(
            f"{str(layout.database)!r} is not the database of a workspace: restore a backup"
        )
    return version


def _tables_1_to_2(connection: sqlite3.Connection, layout: Layout) -> None:
    """Add counts of images and guesses, numbers of the last changes, and sizes of image files."""
    for column in ("n_pictures", "n_guessed", "changed_by", "guessed_by"):
        connection.execute(f"ALTER TABLE class ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE picture ADD COLUMN n_bytes INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        "CREATE INDEX example_unsure ON example (guess_probability, id) WHERE guess_id IS NOT NULL"
    )
    connection.execute(
        "CREATE INDEX event_model ON event (seq)"
        " WHERE kind IN ('split', 'unsplit', 'undo', 'choose', 'forest')"
    )
    connection.execute("CREATE INDEX event_forget ON event (seq) WHERE kind = 'forget'")
    connection.execute(
        "UPDATE class SET n_pictures = (SELECT count(image) FROM example"
        " WHERE class_id = class.id OR fine_id = class.id), n_guessed = (SELECT count(*)"
        " FROM example WHERE guess_id = class.id), changed_by = (SELECT coalesce(max(event), 0)"
        " FROM move WHERE from_class = class.id OR to_class = class.id"
        " OR from_fine = class.id OR to_fine = class.id)"
    )
    connection.execute(
        "UPDATE class SET guessed_by = changed_by WHERE split = 1 AND EXISTS"
        " (SELECT 1 FROM example WHERE class_id = class.id AND guess_id IS NOT NULL)"
    )
    images = ImageStore(layout.folder)
    for (sha256,) in connection.execute("SELECT sha256 FROM picture").fetchall():
        path = images.path(sha256)
        n_bytes = path.stat().st_size if path.exists() else 0
        connection.execute("UPDATE picture SET n_bytes = ? WHERE sha256 = ?", (n_bytes, sha256))


# Fields that a replay needs of an event that adopted an assessment.
_CHOICES_OF_2 = ("seen", "penalty", "recoding", "temperature", "measured_false_alarms")


def _tables_2_to_3(connection: sqlite3.Connection, layout: Layout) -> None:  # noqa: ARG001
    """Give every event a nonce, and keep only the newest assessment in full."""
    connection.execute("ALTER TABLE event ADD COLUMN nonce TEXT NOT NULL DEFAULT ''")
    connection.execute("UPDATE event SET nonce = hex(randomblob(8))")
    connection.execute(
        "CREATE TABLE assessment (event INTEGER PRIMARY KEY REFERENCES event (seq),"
        " body TEXT NOT NULL) STRICT"
    )
    connection.execute(
        "INSERT INTO assessment SELECT seq, body FROM event WHERE kind = 'choose'"
        " ORDER BY seq DESC LIMIT 1"
    )
    found = connection.execute("SELECT seq, body FROM event WHERE kind = 'choose'").fetchall()
    for seq, text in found:
        body = {name: value for name, value in json.loads(text).items() if name in _CHOICES_OF_2}
        connection.execute("UPDATE event SET body = ? WHERE seq = ?", (json.dumps(body), seq))


def _tables_3_to_4(connection: sqlite3.Connection, layout: Layout) -> None:  # noqa: ARG001
    """Index the events that embed all pictures again."""
    connection.execute("DROP INDEX event_model")
    connection.execute("DROP INDEX event_forget")
    connection.execute(
        "CREATE INDEX event_model ON event (seq)"
        " WHERE kind IN ('split', 'unsplit', 'undo', 'choose', 'forest', 'embed')"
    )
    connection.execute(
        "CREATE INDEX event_erasure ON event (seq) WHERE kind IN ('forget', 'embed')"
    )


def _tables_4_to_5(connection: sqlite3.Connection, layout: Layout) -> None:  # noqa: ARG001
    """Add the token of the writer, and forget answers about examples that were erased."""
    connection.execute("CREATE TABLE writer (token TEXT NOT NULL) STRICT")
    clear_answers(connection)


def _manifest_1_to_2(values: dict[str, Any]) -> dict[str, Any]:
    """Format 1 had no forest and a fixed limit of classes."""
    given = values.get("features") is not None
    return {**values, "forest": False, "max_classes": 10_000, "n_features_given": given}


def _manifest_3_to_4(values: dict[str, Any]) -> dict[str, Any]:
    """Format 3 had networks without stages."""
    is_embedded = values.get("features") is not None
    blocks = [[HEAD, values.get("n_features")]] if is_embedded else []
    return {**values, "blocks": blocks, "embedded_by": 0}


# Steps by the format that they start from.
_TABLES: dict[int, Callable[[sqlite3.Connection, Layout], None]] = {
    1: _tables_1_to_2,
    2: _tables_2_to_3,
    3: _tables_3_to_4,
    4: _tables_4_to_5,
}
_MANIFEST: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _manifest_1_to_2,
    2: dict,
    3: _manifest_3_to_4,
    4: dict,
}
