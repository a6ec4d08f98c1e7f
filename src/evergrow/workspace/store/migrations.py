"""Making a database, and bringing one of an earlier format to the newest.

A migration is one numbered step from one format to the next; an older folder takes all that it
lacks, in one transaction. Databases of every earlier format are kept in the tests.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.errors import NewerWorkspaceError
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.images import Images
from evergrow.workspace.store.layout import FORMAT, Layout, manifest_of, read_values, write_manifest
from evergrow.workspace.store.schema import SCHEMA

__all__ = ["check_newest", "make_database", "migrate"]


def make_database(layout: Layout) -> None:
    """Make the empty database of a new workspace."""
    with telling_problems(layout.folder), closing(sqlite3.connect(layout.database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")


def check_newest(layout: Layout, store: Store) -> None:
    """Raise a ``WorkspaceError`` unless folder and database have the newest format."""
    values = read_values(layout)
    with store.reading() as connection:
        version = _version(connection, layout)
    if version < FORMAT or values["format"] < FORMAT:
        raise WorkspaceError(
            f"the workspace {str(layout.folder)!r} is of an earlier version of Evergrow: open it "
            "once for writing, such as with 'evergrow check --mend'"
        )


def migrate(layout: Layout, store: Store) -> None:
    """Bring a workspace to the newest format, if it has an earlier one.

    The database goes first and the manifest last: whatever happens in between, the next opening
    goes on from there.
    """
    values = read_values(layout)
    version = _version(store.writer, layout)
    if version < FORMAT:
        with store.transaction() as connection:
            for number in range(version, FORMAT):
                _TABLES[number](connection, layout)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
    if values["format"] < FORMAT:
        for number in range(values["format"], FORMAT):
            values = {**_MANIFEST[number](values), "format": number + 1}
        with telling_problems(layout.folder):
            write_manifest(layout, manifest_of(layout, values))


def _version(connection: sqlite3.Connection, layout: Layout) -> int:
    with telling_problems(layout.folder):
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > FORMAT:
        raise NewerWorkspaceError(
            f"the database of the workspace {str(layout.folder)!r} has format {version}, made by a "
            f"newer version of Evergrow; this one reads up to {FORMAT}: update Evergrow"
        )
    if version < 1:
        raise WorkspaceError(
            f"{str(layout.database)!r} is no database of a workspace: put a backup in its place"
        )
    return version


def _tables_1_to_2(connection: sqlite3.Connection, layout: Layout) -> None:
    """Count pictures and guesses, note what changed last, know the size of every picture."""
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
    images = Images(layout.folder)
    for (sha256,) in connection.execute("SELECT sha256 FROM picture").fetchall():
        path = images.path(sha256)
        n_bytes = path.stat().st_size if path.exists() else 0
        connection.execute("UPDATE picture SET n_bytes = ? WHERE sha256 = ?", (n_bytes, sha256))


# What a replay needs of an event that adopted an assessment.
_CHOICES_OF_2 = ("seen", "penalty", "recoding", "temperature", "measured_false_alarms")


def _tables_2_to_3(connection: sqlite3.Connection, layout: Layout) -> None:  # noqa: ARG001
    """Mark every event as its own, keep only the last assessment whole."""
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


def _manifest_1_to_2(values: dict[str, Any]) -> dict[str, Any]:
    """The first format had no forest and a fixed limit of classes."""
    given = values.get("features") is not None
    return {**values, "forest": False, "max_classes": 10_000, "n_features_given": given}


# By the format they start from.
_TABLES: dict[int, Callable[[sqlite3.Connection, Layout], None]] = {
    1: _tables_1_to_2,
    2: _tables_2_to_3,
}
_MANIFEST: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _manifest_1_to_2,
    2: dict,
}
