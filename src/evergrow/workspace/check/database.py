"""Checks the database of a workspace.

The state of the examples must follow from their moves, and the counts from the examples. Where they
differ, the moves are right.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from evergrow.workspace.store.database import Database


@dataclass(frozen=True)
class Finding:
    """A problem that an integrity check of a workspace found.

    Attributes
    ----------
    severity : {"harmless", "damage"}
        Whether data were lost.
    what : str
        The problem.
    mend : str
        How to repair it.
    mended : bool
        Whether it was repaired.
    """

    severity: Literal["harmless", "damage"]
    what: str
    mend: str
    mended: bool = False


def check_database(database: Database, *, repairable: bool) -> Iterator[Problem]:
    """Problems within the database itself."""
    with database.read_transaction() as connection:
        found = list(_damage(connection))
    if found:
        # Nothing that is read from a damaged file can be trusted.
        yield from found
        return
    # Each check reads again, because the one before may have repaired something.
    with database.read_transaction() as connection:
        found = list(_wrong_state(connection, database, repairable))
    yield from found
    with database.read_transaction() as connection:
        found = list(_violations(connection))
    yield from found


def _damage(connection: sqlite3.Connection) -> Iterator[Problem]:
    try:
        lines = [line for (line,) in connection.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        lines = [str(error)]
    if lines != ["ok"]:
        yield Problem(
            "damage",
            f"the database is damaged: {'; '.join(lines[:MOST_SHOWN])}",
            RESTORE,
        )
        return
    strays = connection.execute("PRAGMA foreign_key_check").fetchmany(MOST_SHOWN)
    if strays:
        tables = sorted({f"{table} to {other}" for table, _, other, _ in strays})
        yield Problem(
            "damage",
            f"the database has broken references: {', '.join(tables)}",
            RESTORE,
        )


# Invariants, each with a query for the rows that violate it.
_INVARIANTS = {
    "events are not numbered consecutively:": (
        "SELECT seq FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS place FROM event)"
        " WHERE seq != place"
    ),
    "the time goes backwards at events": (
        "SELECT seq FROM (SELECT seq, at, lag(at, 1, '') OVER (ORDER BY seq) AS before FROM event)"
        " WHERE at < before"
    ),
    "an undo and the undone change disagree at events": (
        "SELECT e.seq FROM event e LEFT JOIN event u ON u.seq = e.undone_by"
        " WHERE e.undone_by IS NOT NULL AND u.undoes IS NOT e.seq"
        " UNION SELECT e.seq FROM event e LEFT JOIN event u ON u.seq = e.undoes"
        " WHERE e.undoes IS NOT NULL AND u.undone_by IS NOT e.seq"
    ),
    "examples are not numbered consecutively:": (
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM example)"
        " WHERE id != place"
    ),
    "moves do not start where the previous one ended, of examples": (
        "SELECT DISTINCT example FROM (SELECT example, from_class, from_fine,"
        " lag(to_class) OVER w AS last_class, lag(to_fine) OVER w AS last_fine"
        " FROM move WINDOW w AS (PARTITION BY example ORDER BY event))"
        " WHERE from_class IS NOT last_class OR from_fine IS NOT last_fine"
    ),
    "fine classes belong to another class than their examples": (
        "SELECT e.id FROM example e JOIN class f ON f.id IN (e.fine_id, e.guess_id)"
        " WHERE f.parent IS NOT e.class_id"
    ),
}


def _violations(connection: sqlite3.Connection) -> Iterator[Problem]:
    for what, query in _INVARIANTS.items():
        numbers = [str(number) for (number,) in connection.execute(query)]
        if numbers:
            yield Problem("damage", f"{what} {first_few(numbers)}", RESTORE)


_LAST_MOVES = "SELECT example, to_class, to_fine, max(event) FROM move GROUP BY example"
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


def _wrong_state(
    connection: sqlite3.Connection, database: Database, repairable: bool
) -> Iterator[Problem]:
    (n_wrong,) = connection.execute(_STATES).fetchone()
    names = [name for (name,) in connection.execute(_WRONG_COUNTS)]

    def recount() -> None:
        with database.transaction() as writer:
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
        shown = ", ".join(repr(name) for name in names[:MOST_SHOWN])
        what = f"{n_wrong} examples are not in the class of their last move" if n_wrong else ""
        counts = f"{len(names)} classes have wrong counts ({shown})" if names else ""
        yield Problem(
            "damage",
            " and ".join(part for part in (what, counts) if part),
            "'evergrow check --mend' corrects them",
            recount if repairable else None,
        )


RESTORE = "restore a backup of the workspace"
# Items named in a message, so that it stays readable.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """A problem and what repairs it; ``repair`` is None if nothing can, or nothing may."""

    severity: Literal["harmless", "damage"]
    message: str
    remedy: str
    repair: Callable[[], None] | None = None


def repair_and_report(problems: Iterator[Problem], *, repair: bool) -> list[Finding]:
    """The problems as findings; with ``repair`` each is repaired as soon as it is found."""
    findings = []
    for problem in problems:
        repaired = False
        if repair and problem.repair is not None:
            problem.repair()
            repaired = True
        findings.append(Finding(problem.severity, problem.message, problem.remedy, repaired))
    return findings


def first_few(items: Iterable[object]) -> str:
    """The first few items as text, and the number of the others."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - MOST_SHOWN} more" * (len(texts) > MOST_SHOWN)
    return ", ".join(texts[:MOST_SHOWN]) + more
