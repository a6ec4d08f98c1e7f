"""Classes by name while a change is planned: known ones, new ones, and how many examples each."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from evergrow.workspace.errors import ConflictError, NoSuchClassError
from evergrow.workspace.events import Named

__all__ = ["COARSE", "BookedClass", "ClassBook", "require_class", "was_class"]

# The parent of a class that has none.
COARSE = 0


@dataclass
class BookedClass:
    """A class as it will be once the plan is written."""

    id: int
    name: str
    parent: int
    n_examples: int
    split: bool = False
    is_new: bool = False
    # What the plan adds.
    n_added: int = 0
    n_pictures_added: int = 0
    changed_by: int = 0

    def add(self, event: int, *, picture: bool) -> None:
        """Count one more example."""
        self.n_examples += 1
        self.n_added += 1
        self.n_pictures_added += picture
        self.changed_by = event


class ClassBook:
    """Finds classes by name and makes the ones that are missing.

    Parameters
    ----------
    connection : sqlite3.Connection
        The writing one: nothing changes while the book is in use.
    max_classes : int
        Classes there may be, and finer ones within each.
    """

    def __init__(self, connection: sqlite3.Connection, max_classes: int) -> None:
        self._connection = connection
        self._max_classes = max_classes
        self._booked: dict[tuple[int, str], BookedClass] = {}
        self._n_there: dict[int, int] = {}
        found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'class'")
        self._next_id = 1 + (found.fetchone() or (0,))[0]

    def known(self, name: str, parent: int = COARSE) -> BookedClass | None:
        """The class of this name, if there is one or the plan makes one."""
        booked = self._booked.get((parent, name))
        if booked is None:
            found = self._connection.execute(
                "SELECT id, n_examples, split FROM class"
                " WHERE parent = ? AND name = ? AND n_examples > 0",
                (parent, name),
            ).fetchone()
            if found is None:
                return None
            booked = BookedClass(found[0], name, parent, found[1], bool(found[2]))
            self._booked[parent, name] = booked
        return booked

    def known_or_new(self, name: str, parent: int = COARSE) -> BookedClass:
        """The class of this name, made if there is none."""
        booked = self.known(name, parent)
        if booked is None:
            self._check_room(parent)
            booked = BookedClass(self._next_id, name, parent, 0, is_new=True)
            self._booked[parent, name] = booked
            self._next_id += 1
            self._n_there[parent] += 1
        return booked

    def named(self, event: int) -> list[Named]:
        """The new classes as facts, in order of creation."""
        new = sorted((one for one in self._booked.values() if one.is_new), key=lambda one: one.id)
        return [Named(event, one.id, one.name, one.parent or None) for one in new]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write new classes and counts, within a transaction."""
        for one in sorted(self._booked.values(), key=lambda one: one.id):
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

    def _check_room(self, parent: int) -> None:
        if parent not in self._n_there:
            found = self._connection.execute(
                "SELECT count(*) FROM class WHERE parent = ? AND n_examples > 0", (parent,)
            )
            self._n_there[parent] = found.fetchone()[0]
        if self._n_there[parent] >= self._max_classes:
            raise ConflictError(
                f"there are {self._n_there[parent]} classes already, the most that this workspace "
                "takes: merge or forget some, or make a workspace with a larger max_classes"
            )


def require_class(book: ClassBook, name: str, parent: int = COARSE) -> BookedClass:
    """The class of this name; a ``NoSuchClassError`` if there is none."""
    booked = book.known(name, parent)
    if booked is None:
        raise NoSuchClassError(f"there is no class {name!r}")
    return booked


def was_class(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a coarse class has this name, or had it when its examples went."""
    found = connection.execute(
        "SELECT 1 FROM class WHERE parent = ? AND name = ? LIMIT 1", (COARSE, name)
    )
    return found.fetchone() is not None
