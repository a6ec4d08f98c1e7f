"""What a change does within its transaction: events, moves of examples, and classes.

A change first inserts its event and its moves; then :func:`apply_moves` updates the current state
from them, in the same way for every kind of change. An undo inserts the reversed moves.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.events import ClassNamed
from evergrow.workspace.records import Change, ConflictError, NoSuchClassError
from evergrow.workspace.store.queries import COARSE, example_by_id

# Examples that one change may name: enough for a selection by hand, and quick to apply.
MAX_EXAMPLES_PER_CHANGE = 500

_MOVE = (
    "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
    " SELECT ?, id, class_id, fine_id, ?, ? FROM example"
)


def next_id(connection: sqlite3.Connection, table: str) -> int:
    """The id of the next row of a table; ids are never used twice."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
    return 1 + int((found.fetchone() or (0,))[0])


def event_body(body: Mapping[str, Any], action: str | None) -> str:
    """The body of an event as JSON; the action that it belongs to is its last member."""
    return json.dumps(body if action is None else {**body, "action": action})


def action_ending(action: str) -> str:
    """How the body of an event of this action ends.

    No other body ends so: quotes within a text are escaped.
    """
    return json.dumps({"action": action})[1:]


@dataclass
class PendingClass:
    """A class as it will be once the change is written."""

    id: int
    name: str
    parent: int
    n_examples: int
    split: bool = False
    is_new: bool = False
    # What the change adds.
    n_added: int = 0
    n_pictures_added: int = 0
    changed_by: int = 0

    def add(self, event: int, *, picture: bool) -> None:
        """Count one more example."""
        self.n_examples += 1
        self.n_added += 1
        self.n_pictures_added += picture
        self.changed_by = event


class PendingClasses:
    """Finds classes by name and creates missing ones, in memory until :meth:`write`.

    There may be ``max_classes`` classes, and as many fine classes within each.
    """

    def __init__(self, connection: sqlite3.Connection, max_classes: int) -> None:
        self._connection = connection
        self._max_classes = max_classes
        self._classes: dict[tuple[int, str], PendingClass] = {}
        self._n_existing: dict[int, int] = {}
        self._next_id = next_id(connection, "class")

    def find(self, name: str, parent: int = COARSE) -> PendingClass | None:
        """The class of this name; None if there is none."""
        known = self._classes.get((parent, name))
        if known is None:
            found = self._connection.execute(
                "SELECT id, n_examples, split FROM class"
                " WHERE parent = ? AND name = ? AND n_examples > 0",
                (parent, name),
            ).fetchone()
            if found is None:
                return None
            known = PendingClass(found[0], name, parent, found[1], bool(found[2]))
            self._classes[parent, name] = known
        return known

    def require(self, name: str, parent: int = COARSE) -> PendingClass:
        """The class of this name; a ``NoSuchClassError`` if there is none."""
        known = self.find(name, parent)
        if known is None:
            raise NoSuchClassError(name)
        return known

    def find_or_create(self, name: str, parent: int = COARSE) -> PendingClass:
        """The class of this name, created if there is none."""
        known = self.find(name, parent)
        if known is None:
            self._check_limit(parent)
            known = PendingClass(self._next_id, name, parent, 0, is_new=True)
            self._classes[parent, name] = known
            self._next_id += 1
            self._n_existing[parent] += 1
        return known

    def created_events(self, seq: int) -> list[ClassNamed]:
        """The domain events of the new classes, in order of creation."""
        new = sorted((one for one in self._classes.values() if one.is_new), key=lambda one: one.id)
        return [ClassNamed(seq, one.id, one.name, one.parent or None) for one in new]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write new classes and counts, within a transaction."""
        for one in sorted(self._classes.values(), key=lambda one: one.id):
            if one.is_new:
                connection.execute(
                    "INSERT INTO class (id, name, parent) VALUES (?, ?, ?)",
                    (one.id, one.name, one.parent),
                )
            if one.n_added:
                connection.execute(
                    "UPDATE class SET n_examples = n_examples + ?, n_pictures = n_pictures + ?,"
                    " changed_by = ? WHERE id = ?",
                    (one.n_added, one.n_pictures_added, one.changed_by, one.id),
                )

    def _check_limit(self, parent: int) -> None:
        if parent not in self._n_existing:
            found = self._connection.execute(
                "SELECT count(*) FROM class WHERE parent = ? AND n_examples > 0", (parent,)
            )
            self._n_existing[parent] = found.fetchone()[0]
        if self._n_existing[parent] >= self._max_classes:
            raise ConflictError(
                f"there are {self._n_existing[parent]} classes already, the most that this "
                "workspace allows: merge or forget some, or create a workspace with a larger "
                "max_classes"
            )


@dataclass(frozen=True)
class LabelledExample:
    """An example with its class and fine class."""

    example: int
    class_id: int
    label: str
    fine_id: int | None

    def to_json(self) -> dict[str, Any]:
        """The class and fine class, as events hold them."""
        return {"class": self.class_id, "label": self.label, "fine": self.fine_id}


@dataclass
class ChangeTransaction:
    """An open write transaction for one change, made by ``actor`` at the time ``at``."""

    connection: sqlite3.Connection
    at: str
    actor: str
    max_classes: int
    # What the user did: see ``Request``.
    action: str | None = None
    # Domain events of the classes that it created, restored or renamed.
    class_events: list[ClassNamed] = field(default_factory=list)

    def classes(self) -> PendingClasses:
        """The classes, to look up and to add to."""
        return PendingClasses(self.connection, self.max_classes)

    def labelled_examples(self, examples: Sequence[int]) -> list[LabelledExample]:
        """Current classes of examples, each once; an error if one does not exist."""
        numbers = list(dict.fromkeys(examples))
        if not 0 < len(numbers) <= MAX_EXAMPLES_PER_CHANGE:
            raise WorkspaceError(
                f"a change must name 1 to {MAX_EXAMPLES_PER_CHANGE} examples, got {len(numbers)}"
            )
        found = []
        for number in numbers:
            label = example_by_id(self.connection, number).label
            class_id, fine_id = self.connection.execute(
                "SELECT class_id, fine_id FROM example WHERE id = ?", (number,)
            ).fetchone()
            found.append(LabelledExample(number, class_id, label, fine_id))
        return found

    def add_event(self, kind: str, body: Mapping[str, Any], *, undoes: int | None = None) -> int:
        """Append an event to the log and return its number."""
        found = self.connection.execute(
            "INSERT INTO event (kind, at, actor, body, undoes, nonce)"
            " VALUES (?, ?, ?, ?, ?, hex(randomblob(8)))",
            (kind, self.at, self.actor, event_body(body, self.action), undoes),
        )
        return int(found.lastrowid or 0)

    def move_example(self, seq: int, example: int, to: tuple[int | None, int | None]) -> None:
        """Insert the move of one example to a class and fine class, or out of its class."""
        self.connection.execute(f"{_MOVE} WHERE id = ?", (seq, *to, example))

    def move_class(
        self,
        seq: int,
        class_id: int,
        to_class: int | None,
        fine_to_fine: Mapping[int, int] | None = None,
    ) -> int:
        """Insert moves of all examples of a class to another one, or out; return how many."""
        if fine_to_fine is None:
            # The examples of all fine classes move together.
            moved = self.connection.execute(
                f"{_MOVE} WHERE class_id = ?", (seq, to_class, None, class_id)
            )
            return moved.rowcount
        pairs: list[tuple[int | None, int | None]] = [(None, None), *fine_to_fine.items()]
        return sum(
            self.connection.execute(
                f"{_MOVE} WHERE class_id = ? AND fine_id IS ?",
                (seq, to_class, after, class_id, before),
            ).rowcount
            for before, after in pairs
        )

    def apply_moves(self, seq: int, last: int | None = None) -> None:
        """Update the current state by the moves of an event, or of all until the ``last``."""
        self.class_events += apply_moves(self.connection, seq, last)

    def last_event(self) -> int:
        """The number of the newest event."""
        found = self.connection.execute("SELECT coalesce(max(seq), 0) FROM event")
        return int(found.fetchone()[0])

    def unchanged(self, kind: str, summary: str) -> Change:
        """The result of a request that changes nothing."""
        return Change(self.last_event(), kind, summary, 0)

    def set_name(self, seq: int, class_id: int, name: str) -> None:
        """Change the name of a class, without an event."""
        self.connection.execute("UPDATE class SET name = ? WHERE id = ?", (name, class_id))
        (parent,) = self.connection.execute(
            "SELECT parent FROM class WHERE id = ?", (class_id,)
        ).fetchone()
        self.class_events.append(ClassNamed(seq, class_id, name, parent or None))

    def set_split(self, class_id: int, split: bool) -> None:
        """Change whether a class is split, without an event."""
        self.connection.execute("UPDATE class SET split = ? WHERE id = ?", (split, class_id))
        if not split:
            clear_guesses(self.connection, "class_id", class_id)

    def record_guesses(self, class_id: int, guesses: Sequence[tuple[int, int, float]]) -> int:
        """Replace the guesses within a class: example, fine class and probability of each."""
        seq = self.add_event("guess", {"class": class_id, "n_examples": len(guesses)})
        clear_guesses(self.connection, "class_id", class_id)
        self.connection.executemany(
            "UPDATE example SET guess_id = ?, guess_probability = ?"
            " WHERE id = ? AND class_id = ? AND fine_id IS NULL",
            [(fine, chance, example, class_id) for example, fine, chance in guesses],
        )
        self.connection.execute(
            "UPDATE class SET n_guessed = (SELECT count(*) FROM example WHERE guess_id = class.id)"
            " WHERE parent = ?",
            (class_id,),
        )
        self.connection.execute("UPDATE class SET guessed_by = ? WHERE id = ?", (seq, class_id))
        return seq


def apply_moves(
    connection: sqlite3.Connection, seq: int, last: int | None = None
) -> list[ClassNamed]:
    """Update examples and classes by the moves of an event, or of all until the ``last``.

    Returns the classes that appeared.
    """
    last = seq if last is None else last
    bounds = {"seq": seq, "last": last}
    _uncount_guesses(connection, bounds)
    connection.execute(
        "UPDATE example SET class_id = m.to_class, fine_id = m.to_fine, guess_id = NULL,"
        # An example that was moved several times is where the last of them put it.
        " guess_probability = NULL FROM (SELECT example, to_class, to_fine, max(event) FROM move"
        " WHERE event >= :seq AND event <= :last GROUP BY example) m WHERE m.example = example.id",
        bounds,
    )
    parts = [
        f"SELECT {column} AS class, {sign} AS n, {sign} * (image IS NOT NULL) AS pictures"
        " FROM move JOIN example ON id = example"
        f" WHERE move.event >= :seq AND move.event <= :last AND {column} IS NOT NULL"
        for column, sign in (("from_class", -1), ("from_fine", -1), ("to_class", 1), ("to_fine", 1))
    ]
    counted = connection.execute(
        "SELECT class, name, parent, n_examples, sum(n), sum(pictures) FROM"
        f" ({' UNION ALL '.join(parts)}) JOIN class ON class.id = class GROUP BY class"
        # Emptied classes first: another class may take a name that becomes free.
        " ORDER BY sum(n), class",
        bounds,
    ).fetchall()
    named = []
    for class_id, name, parent, n_before, n_more, n_pictures in counted:
        connection.execute(
            "UPDATE class SET n_examples = n_examples + ?, n_pictures = n_pictures + ?,"
            " changed_by = ? WHERE id = ?",
            (n_more, n_pictures, last, class_id),
        )
        if n_before + n_more == 0:
            clear_guesses(connection, "guess_id", class_id)
        elif n_before == 0:
            named.append(ClassNamed(last, class_id, name, parent or None))
    return sorted(named, key=lambda one: one.class_id)


def _uncount_guesses(connection: sqlite3.Connection, bounds: Mapping[str, int]) -> None:
    found = connection.execute(
        "SELECT guess_id, count(DISTINCT id) FROM move JOIN example ON id = example"
        " WHERE move.event >= :seq AND move.event <= :last AND guess_id IS NOT NULL"
        " GROUP BY guess_id",
        bounds,
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
