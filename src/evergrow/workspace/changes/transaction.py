"""The transaction of one change: who makes it, when, and what it publishes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.moves import add_event, apply_moves, clear_guesses
from evergrow.workspace.changes.pending_classes import PendingClasses
from evergrow.workspace.events import ClassNamed
from evergrow.workspace.records import Change
from evergrow.workspace.store.queries import example_by_id

# Examples that one change may name: enough for a selection by hand, and quick to apply.
MOST_TOGETHER = 500


def count_of(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, in singular or plural.

    >>> count_of(1, "example"), count_of(2, "example"), count_of(2, "class", "classes")
    ('1 example', '2 examples', '2 classes')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


@dataclass(frozen=True)
class Place:
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
    """An open write transaction that makes one change.

    Attributes
    ----------
    connection : sqlite3.Connection
        The writing connection, within the transaction.
    at, actor : str
        Timestamp of the change, and who asked for it.
    max_classes : int
        Most classes of the workspace.
    named : list of ClassNamed
        Domain events of the classes that the change created, restored or renamed.
    """

    connection: sqlite3.Connection
    at: str
    actor: str
    max_classes: int
    named: list[ClassNamed] = field(default_factory=list)

    def classes(self) -> PendingClasses:
        """The classes, to look up and to add to."""
        return PendingClasses(self.connection, self.max_classes)

    def places(self, examples: Sequence[int]) -> list[Place]:
        """Current classes of examples, each once; an error if one does not exist."""
        numbers = list(dict.fromkeys(examples))
        if not 0 < len(numbers) <= MOST_TOGETHER:
            raise WorkspaceError(
                f"a change must name 1 to {MOST_TOGETHER} examples, got {len(numbers)}"
            )
        places = []
        for number in numbers:
            label = example_by_id(self.connection, number).label
            class_id, fine_id = self.connection.execute(
                "SELECT class_id, fine_id FROM example WHERE id = ?", (number,)
            ).fetchone()
            places.append(Place(number, class_id, label, fine_id))
        return places

    def add_event(self, kind: str, body: Mapping[str, Any], *, undoes: int | None = None) -> int:
        """Append an event to the log and return its number."""
        return add_event(self.connection, kind, body, at=self.at, actor=self.actor, undoes=undoes)

    def apply_moves(self, seq: int) -> None:
        """Update the current state by the moves of an event."""
        self.named += apply_moves(self.connection, seq)

    def unchanged(self, kind: str, summary: str) -> Change:
        """The result of a request that changes nothing."""
        found = self.connection.execute("SELECT coalesce(max(seq), 0) FROM event")
        return Change(found.fetchone()[0], kind, summary, 0)

    def set_name(self, seq: int, class_id: int, name: str) -> None:
        """Change the name of a class, without an event."""
        self.connection.execute("UPDATE class SET name = ? WHERE id = ?", (name, class_id))
        (parent,) = self.connection.execute(
            "SELECT parent FROM class WHERE id = ?", (class_id,)
        ).fetchone()
        self.named.append(ClassNamed(seq, class_id, name, parent or None))

    def set_split(self, class_id: int, split: bool) -> None:
        """Change whether a class is split, without an event."""
        self.connection.execute("UPDATE class SET split = ? WHERE id = ?", (split, class_id))
        if not split:
            clear_guesses(self.connection, "class_id", class_id)


def record_guesses(
    transaction: ChangeTransaction, class_id: int, guesses: Sequence[tuple[int, int, float]]
) -> int:
    """Replace the guesses within a class: example, fine class and probability of each."""
    connection = transaction.connection
    seq = transaction.add_event("guess", {"class": class_id, "n_examples": len(guesses)})
    clear_guesses(connection, "class_id", class_id)
    connection.executemany(
        "UPDATE example SET guess_id = ?, guess_probability = ?"
        " WHERE id = ? AND class_id = ? AND fine_id IS NULL",
        [(fine, chance, example, class_id) for example, fine, chance in guesses],
    )
    connection.execute(
        "UPDATE class SET n_guessed = (SELECT count(*) FROM example WHERE guess_id = class.id)"
        " WHERE parent = ?",
        (class_id,),
    )
    connection.execute("UPDATE class SET guessed_by = ? WHERE id = ?", (seq, class_id))
    return seq


def record_model_event(
    transaction: ChangeTransaction,
    kind: str,
    body: Mapping[str, Any],
    assessment: Mapping[str, Any] | None = None,
) -> int:
    """Append an event of the model; a full assessment replaces the stored one."""
    seq = transaction.add_event(kind, body)
    if assessment is not None:
        transaction.connection.execute("DELETE FROM assessment")
        transaction.connection.execute(
            "INSERT INTO assessment (event, body) VALUES (?, ?)", (seq, json.dumps(assessment))
        )
    return seq
