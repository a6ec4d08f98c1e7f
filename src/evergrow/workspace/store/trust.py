"""What must hold before anything in a folder is used: a workspace may come from a stranger.

No link is followed, and nothing but plain files and folders is opened. The database must have
exactly the tables and indexes of this package: a trigger or a view would run with each change.
Names of images become paths and media types become headers, so all of them are checked.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from evergrow.foundation.errors import EvergrowError, WorkspaceError
from evergrow.vision.images.decoder import MEDIA_TYPES
from evergrow.workspace.store.layout import Layout
from evergrow.workspace.store.schema import SCHEMA

_CAUSED_BY_ROWS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_SHA256 = re.compile("[0-9a-f]{64}")

# Tables that SQLite itself creates for ANALYZE and PRAGMA optimize, which any tool may have run.
_STATISTICS = """
CREATE TABLE sqlite_stat1(tbl,idx,stat);
CREATE TABLE sqlite_stat2(tbl,idx,sampleno,sample);
CREATE TABLE sqlite_stat3(tbl,idx,neq,nlt,ndlt,sample);
CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)
"""

# A table or index: its text up to the parentheses, the definitions in them, and what follows.
_Definition = tuple[str, frozenset[str], str]


class NotPlainError(WorkspaceError):
    """A part of a workspace is a link, a pipe or a device."""


def require_image_name(sha256: str) -> str:
    """The name of an image; a ``WorkspaceError`` unless it is 64 hexadecimal digits."""
    if not _SHA256.fullmatch(sha256):
        raise WorkspaceError(
            f"the name of an image must be 64 hexadecimal digits, got {sha256[:80]!r}"
        )
    return sha256


def require_media_type(media_type: str) -> str:
    """The media type of an image; a ``WorkspaceError`` unless it is one that is decoded."""
    if media_type not in MEDIA_TYPES:
        raise WorkspaceError(
            f"the media type of an image must be one of {', '.join(MEDIA_TYPES)}; "
            f"got {media_type[:80]!r}"
        )
    return media_type


def require_plain(root: Path, path: Path) -> Path:
    """A path within a folder; a ``WorkspaceError`` for a link or device on the way to it.

    What does not exist is plain. The folder itself may be a link.
    """
    place = root
    for part in path.relative_to(root).parts:
        place = place / part
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a link" if stat.S_ISLNK(mode) else "not a plain file"
            raise NotPlainError(
                f"{str(place)!r} is {kind}: a workspace holds only plain files and folders, and "
                "nothing else in it is opened; to place a part of it on another disk, mount it"
            )
    return path


def require_plain_layout(layout: Layout) -> None:
    """Raise a ``WorkspaceError`` if a file or folder of a workspace is a link or a device."""
    database = layout.database
    logs = (database.with_name(f"{database.name}-{name}") for name in ("wal", "shm", "journal"))
    for path in (*(path for path in vars(layout).values() if path != layout.folder), *logs):
        require_plain(layout.folder, path)


def verify_database(connection: sqlite3.Connection, database: Path) -> None:
    """Raise a ``WorkspaceError`` unless a database is intact and has our tables only."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise WorkspaceError(f"{str(database)!r} is damaged ({found}): restore a backup")
    _verify_schema(connection, database)
    for table, column in (("picture", "sha256"), ("example", "image")):
        _refuse(
            connection,
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
            f" AND (length({column}) != 64 OR {column} GLOB '*[^0-9a-f]*')",
            database,
            "a name of an image that is not 64 hexadecimal digits",
        )
    for table, column in (("event", "body"), ("request_key", "answer")):
        _refuse(
            connection,
            f"SELECT {column} FROM {table} WHERE {column} != '' AND NOT json_valid({column})",
            database,
            f"a row of the table {table!r} that is not JSON",
        )
    allowed = ", ".join(f"'{name}'" for name in MEDIA_TYPES)
    _refuse(
        connection,
        f"SELECT media_type FROM picture WHERE media_type NOT IN ({allowed})",
        database,
        "a media type that is not one of an image",
    )


def verify_references(connection: sqlite3.Connection, database: Path) -> None:
    """Raise a ``WorkspaceError`` if a row names an event, class, example or picture in vain.

    'evergrow check' lists all such rows, so it opens a database without this.
    """
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if broken is not None:
        table, row, target, _ = broken
        raise _not_ours(
            database, f"row {row} of the table {table!r} that names nothing in {target!r}"
        )


@contextmanager
def report_damage(folder: Path) -> Iterator[None]:
    """Turn errors that rows of the database cause by what they hold into a ``WorkspaceError``."""
    try:
        yield
    except _CAUSED_BY_ROWS as error:
        if isinstance(error, EvergrowError):
            raise
        raise WorkspaceError(
            f"the database of the workspace {str(folder)!r} is damaged: {error!r}; restore a "
            "backup; 'evergrow check' lists what else is wrong"
        ) from error


def _refuse(connection: sqlite3.Connection, query: str, database: Path, what: str) -> None:
    found = connection.execute(f"{query} LIMIT 1").fetchone()
    if found is not None:
        raise _not_ours(database, f"{what}, {found[0][:80]!r}")


def _verify_schema(connection: sqlite3.Connection, database: Path) -> None:
    known, statistics = _definitions(SCHEMA), _definitions(_STATISTICS)
    names = set()
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        if name == "sqlite_sequence" or (kind == "index" and text is None):
            continue
        names.add(name)
        definition = None if text is None else _parse(text)
        if kind == "table" and name in statistics and definition == statistics[name]:
            continue
        if definition is None or definition != known.get(name):
            raise _not_ours(database, f"the {kind} {name[:80]!r} that Evergrow did not create")
    missing = sorted(set(known) - names)
    if missing:
        raise _not_ours(database, f"no {missing[0]!r}")


@cache
def _definitions(schema: str) -> dict[str, _Definition]:
    """The tables and indexes of a schema by name."""
    parsed = [_parse(text) for text in schema.split(";") if text.strip()]
    # "CREATE TABLE name", and "CREATE INDEX name ON table".
    return {one[0].split()[-1 if "TABLE" in one[0] else -3]: one for one in parsed}


def _parse(text: str) -> _Definition:
    """What a table or index is defined by, whatever the spaces and the order of its columns.

    >>> start, parts, end = _parse("CREATE TABLE a (x  INT, PRIMARY KEY (x, y)) STRICT")
    >>> start, sorted(parts), end
    ('CREATE TABLE a', ['PRIMARY KEY (x, y)', 'x INT'], 'STRICT')
    """
    start, _, rest = " ".join(text.split()).partition("(")
    parts, depth, place = [""], 1, 0
    for place, letter in enumerate(rest):  # noqa: B007
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            break
        if letter == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += letter
    return start.strip(), frozenset(part.strip() for part in parts), rest[place + 1 :].strip()


def _not_ours(database: Path, what: str) -> WorkspaceError:
    return WorkspaceError(
        f"{str(database)!r} was not written by Evergrow, or is damaged: it has {what}; "
        "restore a backup"
    )
