"""Checking a workspace: everything the folder claims is verified, and what can be is mended.

What is true of examples follows from their moves, and what is counted from the examples: where
these differ the moves are right. This half looks at the database; :mod:`.checking_files` looks at
the files that it names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from evergrow.workspace.records import Finding
from evergrow.workspace.store.database import Store

__all__ = ["Problem", "check_database", "settle"]

# Enough to see what is wrong without a screen full of it.
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """What was found, and what to call to mend it; None where nothing can."""

    severity: Literal["harmless", "damage"]
    what: str
    mend: str
    act: Callable[[], None] | None = None


def settle(problems: Iterator[Problem], *, mend: bool) -> list[Finding]:
    """The findings; with ``mend`` whatever can be is mended as it is found."""
    findings = []
    for problem in problems:
        mended = mend and problem.act is not None
        if mended and problem.act is not None:
            problem.act()
        findings.append(Finding(problem.severity, problem.what, problem.mend, mended))
    return findings


def check_database(store: Store, *, mendable: bool) -> Iterator[Problem]:
    """What is wrong with the database, taken for itself."""
    with store.reading() as connection:
        found = list(_unsound(connection))
    if found:
        # Nothing that is read from a damaged file means anything.
        yield from found
        return
    # Each looks anew: what one found may have been mended when the next looks.
    with store.reading() as connection:
        found = list(_wrong_states(connection, store, mendable))
    yield from found
    with store.reading() as connection:
        found = list(_wrong_order(connection))
    yield from found


def _unsound(connection: sqlite3.Connection) -> Iterator[Problem]:
    try:
        lines = [line for (line,) in connection.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        lines = [str(error)]
    if lines != ["ok"]:
        yield Problem(
            "damage",
            f"the database is damaged: {'; '.join(lines[:_MOST_SHOWN])}",
            "put a backup of the workspace in its place",
        )
        return
    strays = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_SHOWN)
    if strays:
        tables = sorted({f"{table} to {other}" for table, _, other, _ in strays})
        yield Problem(
            "damage",
            f"the database points nowhere: {', '.join(tables)}",
            "put a backup of the workspace in its place",
        )


# What must hold, as a query for whatever breaks it.
_ORDER = {
    "events are not numbered one after the other": (
        "SELECT seq FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS place FROM event)"
        " WHERE seq != place"
    ),
    "the time of events goes backwards at": (
        "SELECT seq FROM (SELECT seq, at, lag(at, 1, '') OVER (ORDER BY seq) AS before FROM event)"
        " WHERE at < before"
    ),
    "what was undone and what undid it disagree at events": (
        "SELECT e.seq FROM event e LEFT JOIN event u ON u.seq = e.undone_by"
        " WHERE e.undone_by IS NOT NULL AND u.undoes IS NOT e.seq"
        " UNION SELECT e.seq FROM event e LEFT JOIN event u ON u.seq = e.undoes"
        " WHERE e.undoes IS NOT NULL AND u.undone_by IS NOT e.seq"
    ),
    "examples are not numbered one after the other": (
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM example)"
        " WHERE id != place"
    ),
    "examples do not begin where their last move ended:": (
        "SELECT DISTINCT example FROM (SELECT example, from_class, from_fine,"
        " lag(to_class) OVER w AS last_class, lag(to_fine) OVER w AS last_fine"
        " FROM move WINDOW w AS (PARTITION BY example ORDER BY event))"
        " WHERE from_class IS NOT last_class OR from_fine IS NOT last_fine"
    ),
    "fine classes belong to another class than their examples:": (
        "SELECT e.id FROM example e JOIN class f ON f.id IN (e.fine_id, e.guess_id)"
        " WHERE f.parent IS NOT e.class_id"
    ),
}


def _wrong_order(connection: sqlite3.Connection) -> Iterator[Problem]:
    for what, query in _ORDER.items():
        numbers = [str(number) for (number,) in connection.execute(query)]
        if numbers:
            shown = ", ".join(numbers[:_MOST_SHOWN])
            more = f" and {len(numbers) - _MOST_SHOWN} more" * (len(numbers) > _MOST_SHOWN)
            yield Problem(
                "damage", f"{what} {shown}{more}", "put a backup of the workspace in its place"
            )


_LAST_MOVES = (
    "SELECT example, to_class, to_fine, max(event) FROM move GROUP BY example"  # one per example
)
_STATES = (
    "SELECT count(*) FROM example LEFT JOIN (" + _LAST_MOVES + ") ON example = id"
    " WHERE class_id IS NOT to_class OR fine_id IS NOT to_fine"
)
_COUNTS = (
    "SELECT class.id, count(e.id) AS n, count(e.image) AS pictures,"
    " count(*) FILTER (WHERE g = 1) AS guesses FROM class LEFT JOIN ("
    "SELECT id, image, class_id AS c, 0 AS g FROM example WHERE class_id IS NOT NULL"
    " UNION ALL SELECT id, image, fine_id, 0 FROM example WHERE fine_id IS NOT NULL"
    " UNION ALL SELECT NULL, NULL, guess_id, 1 FROM example WHERE guess_id IS NOT NULL"
    ") e ON e.c = class.id GROUP BY class.id"
)
_WRONG_COUNTS = (
    f"SELECT class.name FROM class JOIN ({_COUNTS}) r ON r.id = class.id"
    " WHERE n_examples != r.n OR n_pictures != r.pictures OR n_guessed != r.guesses"
)


def _wrong_states(
    connection: sqlite3.Connection, store: Store, mendable: bool
) -> Iterator[Problem]:
    (n_wrong,) = connection.execute(_STATES).fetchone()
    names = [name for (name,) in connection.execute(_WRONG_COUNTS)]

    def recount() -> None:
        with store.transaction() as writer:
            writer.execute(
                "UPDATE example SET class_id = to_class, fine_id = to_fine, guess_id = NULL,"
                f" guess_probability = NULL FROM ({_LAST_MOVES}) WHERE example = id"
                " AND (class_id IS NOT to_class OR fine_id IS NOT to_fine)"
            )
            writer.execute(
                "UPDATE class SET n_examples = r.n, n_pictures = r.pictures,"
                f" n_guessed = r.guesses FROM ({_COUNTS}) r WHERE r.id = class.id"
            )

    if n_wrong or names:
        shown = ", ".join(repr(name) for name in names[:_MOST_SHOWN])
        what = f"{n_wrong} examples are not where their moves lead" if n_wrong else ""
        counts = f"{len(names)} classes are counted wrongly ({shown})" if names else ""
        yield Problem(
            "damage",
            " and ".join(part for part in (what, counts) if part),
            "'evergrow check --mend' counts again",
            recount if mendable else None,
        )
