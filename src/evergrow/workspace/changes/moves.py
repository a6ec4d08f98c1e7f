"""Moves of examples: into a class, from one class to another, or out of a class.

A change first inserts its event and its moves; then :func:`apply_moves` updates the current state
from them, in the same way for every kind of change. An undo inserts the reversed moves.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from evergrow.workspace.events import ClassNamed


def add_event(
    connection: sqlite3.Connection,
    kind: str,
    body: Mapping[str, Any],
    *,
    at: str,
    actor: str,
    undoes: int | None = None,
) -> int:
    """Insert an event and return its number."""
    connection.execute(
        "INSERT INTO event (kind, at, actor, body, undoes, nonce)"
        " VALUES (?, ?, ?, ?, ?, hex(randomblob(8)))",
        (kind, at, actor, json.dumps(body), undoes),
    )
    return int(connection.execute("SELECT last_insert_rowid()").fetchone()[0])


def move_example(
    connection: sqlite3.Connection, seq: int, example: int, to: tuple[int | None, int | None]
) -> None:
    """Insert the move of one example to a class and fine class, or out of its class."""
    connection.execute(
        "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
        " SELECT ?, id, class_id, fine_id, ?, ? FROM example WHERE id = ?",
        (seq, *to, example),
    )


def move_class(
    connection: sqlite3.Connection,
    seq: int,
    class_id: int,
    to_class: int | None,
    fine_to_fine: Mapping[int, int] | None = None,
) -> int:
    """Insert moves of all examples of a class to another one, or out; return how many."""
    pairs: list[tuple[int | None, int | None]] = [(None, None), *(fine_to_fine or {}).items()]
    for before, after in pairs:
        # Without a mapping, the examples of all fine classes move together.
        condition = "" if fine_to_fine is None else " AND fine_id IS ?"
        values = (seq, to_class, after, class_id) + (() if fine_to_fine is None else (before,))
        connection.execute(
            "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
            " SELECT ?, id, class_id, fine_id, ?, ? FROM example"
            f" WHERE class_id = ?{condition}",
            values,
        )
    found = connection.execute("SELECT count(*) FROM move WHERE event = ?", (seq,))
    return int(found.fetchone()[0])


def reverse_moves(connection: sqlite3.Connection, seq: int, undone: int) -> int:
    """Insert the reversed moves of an event; return how many."""
    return connection.execute(
        "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
        " SELECT ?, example, to_class, to_fine, from_class, from_fine FROM move WHERE event = ?",
        (seq, undone),
    ).rowcount


def apply_moves(connection: sqlite3.Connection, seq: int) -> list[ClassNamed]:
    """Update examples and classes by the moves of an event; return the classes that appeared."""
    _uncount_guesses(connection, seq)
    connection.execute(
        "UPDATE example SET class_id = m.to_class, fine_id = m.to_fine, guess_id = NULL,"
        " guess_probability = NULL FROM move m WHERE m.event = ? AND m.example = example.id",
        (seq,),
    )
    parts = [
        f"SELECT {column} AS class, {sign} AS n, {sign} * (image IS NOT NULL) AS pictures"
        f" FROM move JOIN example ON id = example WHERE move.event = :seq AND {column} IS NOT NULL"
        for column, sign in (("from_class", -1), ("from_fine", -1), ("to_class", 1), ("to_fine", 1))
    ]
    counted = connection.execute(
        "SELECT class, name, parent, n_examples, sum(n), sum(pictures) FROM"
        f" ({' UNION ALL '.join(parts)}) JOIN class ON class.id = class GROUP BY class"
        # Emptied classes first: another class may take a name that becomes free.
        " ORDER BY sum(n), class",
        {"seq": seq},
    ).fetchall()
    named = []
    for class_id, name, parent, n_before, n_more, n_pictures in counted:
        connection.execute(
            "UPDATE class SET n_examples = n_examples + ?, n_pictures = n_pictures + ?,"
            " changed_by = ? WHERE id = ?",
            (n_more, n_pictures, seq, class_id),
        )
        if n_before + n_more == 0:
            clear_guesses(connection, "guess_id", class_id)
        elif n_before == 0:
            named.append(ClassNamed(seq, class_id, name, parent or None))
    return sorted(named, key=lambda one: one.class_id)


def _uncount_guesses(connection: sqlite3.Connection, seq: int) -> None:
    found = connection.execute(
        "SELECT guess_id, count(*) FROM move JOIN example ON id = example"
        " WHERE move.event = ? AND guess_id IS NOT NULL GROUP BY guess_id",
        (seq,),
    ).fetchall()
    connection.executemany(
        "UPDATE class SET n_guessed = n_guessed - ? WHERE id = ?",
        [(number, class_id) for class_id, number in found],
    )


def clear_guesses(connection: sqlite3.Connection, column: str, class_id: int) -> None:
    """Delete the guesses of a fine class (``guess_id``) or within a class (``class_id``)."""
    connection.execute(
        "UPDATE class SET n_guessed = 0 WHERE n_guessed > 0 AND (id = :id OR parent = :id)",
        {"id": class_id},
    )
    connection.execute(
        f"UPDATE example SET guess_id = NULL, guess_probability = NULL"
        f" WHERE {column} = ? AND guess_id IS NOT NULL",
        (class_id,),
    )
