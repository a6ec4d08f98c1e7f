"""Classes during a change: existing ones, those that it creates, and their counts."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from evergrow.workspace.errors import ConflictError, NoSuchClassError
from evergrow.workspace.events import ClassNamed
from evergrow.workspace.store.queries import COARSE


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

    Parameters
    ----------
    connection : sqlite3.Connection
        The writing connection: nothing else changes meanwhile.
    max_classes : int
        Most classes, and most fine classes within each.
    """

    def __init__(self, connection: sqlite3.Connection, max_classes: int) -> None:
        self._connection = connection
        self._max_classes = max_classes
        self._classes: dict[tuple[int, str], PendingClass] = {}
        self._n_existing: dict[int, int] = {}
        found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'class'")
        self._next_id = 1 + (found.fetchone() or (0,))[0]

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
            raise NoSuchClassError(f"there is no class {name!r}")
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
