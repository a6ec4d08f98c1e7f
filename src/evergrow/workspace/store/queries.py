"""Queries for classes, examples and events, page by page.

A cursor encodes the id of the last item of a page. Items are in order of their ids, which never
change, so no item is skipped or repeated, whatever changes between two pages.
"""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.params import Integer, check_parameters
from evergrow.workspace.records import (
    ClassEntry,
    Event,
    Example,
    FineEntry,
    NoSuchClassError,
    NoSuchExampleError,
    Page,
)
from evergrow.workspace.store.trust import require_media_type

Item = TypeVar("Item")

MOST_ITEMS = 10_000
# The parent of a class that has none.
COARSE = 0

_EXAMPLE = (
    "SELECT e.id, e.event, c.name, f.name, e.fine_id, e.guess_probability, e.image, p.media_type,"
    " p.width, p.height, v.at, v.actor FROM example e JOIN class c ON c.id = e.class_id"
    " LEFT JOIN class f ON f.id = coalesce(e.fine_id, e.guess_id)"
    " LEFT JOIN picture p ON p.sha256 = e.image JOIN event v ON v.seq = e.event"
)


def make_cursor(number: int) -> str:
    """A cursor for the items after this id."""
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def parse_cursor(cursor: str | None) -> int | None:
    """The id that a cursor stands for; None for the first page."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _wrong_cursor(cursor) from error
    if (
        not (text.isascii() and text.isdigit() and len(text) <= 18)
        or make_cursor(int(text)) != cursor
    ):
        raise _wrong_cursor(cursor)
    return int(text)


def _wrong_cursor(cursor: str) -> WorkspaceError:
    return WorkspaceError(
        f"after must be what an earlier page gave as its next, got {cursor[:100]!r}"
    )


def _page(items: Sequence[Item], limit: int, number: Callable[[Item], int]) -> Page[Item]:
    """A page of the first items; one more than the limit was queried, to know if more follow."""
    shown = tuple(items[:limit])
    return Page(shown, make_cursor(number(shown[-1])) if len(items) > limit else None)


def check_limit(limit: int) -> None:
    """Raise a ``WorkspaceError`` for a page size that is not allowed."""
    try:
        check_parameters({"limit": limit}, {"limit": [Integer(1, MOST_ITEMS)]})
    except InvalidInputError as error:
        raise WorkspaceError(str(error)) from error


def live_class_id(connection: sqlite3.Connection, name: str, parent: int = COARSE) -> int:
    """The id of the class of this name; a ``NoSuchClassError`` if there is none."""
    found = connection.execute(
        "SELECT id FROM class WHERE parent = ? AND name = ? AND n_examples > 0", (parent, name)
    ).fetchone()
    if found is None:
        raise NoSuchClassError(name)
    return int(found[0])


def classes_page(
    connection: sqlite3.Connection, *, after: str | None, limit: int
) -> Page[ClassEntry]:
    """Classes in order of creation, without their accuracies."""
    check_limit(limit)
    found = connection.execute(
        "SELECT id, name, n_examples, n_pictures, split FROM class INDEXED BY class_there"
        " WHERE parent = ? AND n_examples > 0 AND id > ? ORDER BY id LIMIT ?",
        (COARSE, parse_cursor(after) or 0, limit + 1),
    ).fetchall()
    return _page(_with_fine(connection, found), limit, lambda one: one.id)


def class_existed(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a coarse class has this name, or had it when its last example was removed."""
    found = connection.execute(
        "SELECT 1 FROM class WHERE parent = ? AND name = ? LIMIT 1", (COARSE, name)
    )
    return found.fetchone() is not None


def class_entry(connection: sqlite3.Connection, name: str) -> ClassEntry:
    """One class, without its accuracy."""
    found = connection.execute(
        "SELECT id, name, n_examples, n_pictures, split FROM class WHERE id = ?",
        (live_class_id(connection, name),),
    ).fetchall()
    return _with_fine(connection, found)[0]


def _with_fine(connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> list[ClassEntry]:
    return [
        # What an assessment says is added later.
        ClassEntry(
            id=number,
            name=name,
            n_examples=n_examples,
            n_pictures=n_pictures,
            split=bool(split),
            fine=_fine_of(connection, number),
            sign="new",
            accuracy=None,
            confused_with=None,
            confused_share=None,
            n_unknown=None,
        )
        for number, name, n_examples, n_pictures, split in rows
    ]


def _fine_of(connection: sqlite3.Connection, parent: int) -> tuple[FineEntry, ...]:
    found = connection.execute(
        "SELECT id, name, n_examples, n_guessed FROM class INDEXED BY class_there"
        " WHERE parent = ? AND n_examples > 0 ORDER BY id",
        (parent,),
    )
    return tuple(FineEntry(*row) for row in found)


def example_by_id(connection: sqlite3.Connection, number: int) -> Example:
    """One example; a ``NoSuchExampleError`` if it does not exist or was removed."""
    # Ids beyond the range of the database do not exist either.
    found = None
    if 0 < number < 1 << 63:
        found = connection.execute(f"{_EXAMPLE} WHERE e.id = ?", (number,)).fetchone()
    if found is None:
        raise NoSuchExampleError(f"example {number} does not exist")
    return _example(found)


def has_image(connection: sqlite3.Connection, image: str) -> bool:
    """Whether a class has an example with this image."""
    query = "SELECT 1 FROM example WHERE image = ? AND class_id IS NOT NULL"
    return connection.execute(query, (image,)).fetchone() is not None


def examples_page(
    connection: sqlite3.Connection,
    *,
    label: str | None,
    fine: str | None,
    guessed: bool | None,
    after: str | None,
    limit: int,
    newest_first: bool = False,
) -> Page[Example]:
    """Examples in order of id, filtered by class, fine class and whether that was guessed."""
    check_limit(limit)
    filters = _filters(connection, label, fine, guessed)
    place = parse_cursor(after)
    compare, order = ("<", "DESC") if newest_first else (">", "ASC")
    if place is None:
        place = (1 << 62) if newest_first else 0
    # One query per filter, each by an index; a single query with OR would use none.
    parts = [
        f"SELECT * FROM (SELECT id FROM example WHERE {condition} AND class_id IS NOT NULL"
        f" AND id {compare} ? ORDER BY id {order} LIMIT ?)"
        for condition, _ in filters
    ]
    values = [value for _, given in filters for value in (*given, place, limit + 1)]
    numbers = connection.execute(
        f"{' UNION ALL '.join(parts)} ORDER BY id {order} LIMIT ?", (*values, limit + 1)
    ).fetchall()
    items = [example_by_id(connection, number) for (number,) in numbers]
    return _page(items, limit, lambda one: one.id)


def _filters(
    connection: sqlite3.Connection, label: str | None, fine: str | None, guessed: bool | None
) -> list[tuple[str, tuple[Any, ...]]]:
    """SQL conditions with their values; an example must satisfy at least one."""
    kinds = {None: "", True: " AND guess_id IS NOT NULL", False: " AND guess_id IS NULL"}
    class_id = None if label is None else live_class_id(connection, label)
    if fine is None and class_id is None:
        return [(f"1{kinds[guessed]}", ())]
    if fine is None:
        return [(f"class_id = ?{kinds[guessed]}", (class_id,))]
    if class_id is None:
        # Several classes may use the same fine name.
        among = f"IN (SELECT id FROM class WHERE name = ? AND parent <> {COARSE})"
        values: tuple[Any, ...] = (fine,)
    else:
        among, values = "= ?", (live_class_id(connection, fine, class_id),)
    both = {"fine_id": False, "guess_id": True}
    return [(f"{one} {among}", values) for one, kind in both.items() if guessed in (None, kind)]


def least_certain_examples(connection: sqlite3.Connection, limit: int) -> list[Example]:
    """Examples with a guessed fine class, the least certain first."""
    found = connection.execute(
        f"{_EXAMPLE} WHERE e.guess_id IS NOT NULL AND c.split = 1"
        " ORDER BY e.guess_probability, e.id LIMIT ?",
        (limit,),
    )
    return [_example(row) for row in found]


def _example(row: tuple[Any, ...]) -> Example:
    fine_kind: Literal["given", "guessed"] | None = None
    if row[3] is not None:
        fine_kind = "guessed" if row[4] is None else "given"
    return Example(
        id=row[0],
        event=row[1],
        label=row[2],
        fine=row[3],
        fine_kind=fine_kind,
        fine_probability=row[5] if fine_kind == "guessed" else None,
        image=row[6],
        media_type=None if row[7] is None else require_media_type(row[7]),
        width=row[8],
        height=row[9],
        at=row[10],
        actor=row[11],
    )


def events_page(
    connection: sqlite3.Connection, *, after: str | None, limit: int, newest_first: bool
) -> Page[Event]:
    """Events of the audit log."""
    check_limit(limit)
    compare, order = ("<", "DESC") if newest_first else (">", "ASC")
    place = parse_cursor(after)
    if place is None:
        place = (1 << 62) if newest_first else 0
    found = connection.execute(
        "SELECT seq, kind, at, actor, body, undoes, undone_by FROM event"
        f" WHERE seq {compare} ? ORDER BY seq {order} LIMIT ?",
        (place, limit + 1),
    )
    return _page([_event(row) for row in found], limit, lambda one: one.seq)


def event_by_number(connection: sqlite3.Connection, seq: int) -> Event | None:
    """One event; None if there is no such number."""
    found = connection.execute(
        "SELECT seq, kind, at, actor, body, undoes, undone_by FROM event WHERE seq = ?", (seq,)
    ).fetchone()
    return None if found is None else _event(found)


def _event(row: tuple[Any, ...]) -> Event:
    seq, kind, at, actor, body, undoes, undone_by = row
    try:
        content = json.loads(body)
    except ValueError as error:
        raise WorkspaceError(f"event {seq} is damaged: {error}; restore a backup") from error
    return Event(seq, kind, at, actor, content, undoes, undone_by)


def totals(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Number of examples, number of classes, and bytes of database and image files."""
    n_examples, n_classes = connection.execute(
        "SELECT coalesce(sum(n_examples), 0), count(*) FROM class WHERE parent = ?"
        " AND n_examples > 0",
        (COARSE,),
    ).fetchone()
    (n_bytes,) = connection.execute("SELECT coalesce(sum(n_bytes), 0) FROM picture").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return n_examples, n_classes, n_bytes + pages * page_bytes
