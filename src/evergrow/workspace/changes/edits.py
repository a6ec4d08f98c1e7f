"""Changes other than teaching, each within a transaction that someone else begins and ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.moves import (
    add_event,
    apply_moves,
    clear_guesses,
    move_class,
    move_example,
)
from evergrow.workspace.changes.pending_classes import COARSE, ClassBook, require_class, was_class
from evergrow.workspace.errors import ConflictError
from evergrow.workspace.events import Named
from evergrow.workspace.names import checked_name
from evergrow.workspace.records import Change
from evergrow.workspace.store.queries import example_by_id

__all__ = ["MOST_TOGETHER", "Editor", "counted"]

# Examples that one change may name: enough for what a person chooses, little enough to answer soon.
MOST_TOGETHER = 500
# A class can be split once this many finer names have as many examples each.
_LEAST_FINE = 2
# Examples of which something is kept although they are in no class.
_ERASABLE = "class_id IS NULL AND (erased = 0 OR image IS NOT NULL)"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts.

    >>> counted(1, "example"), counted(2, "example"), counted(2, "class", "classes")
    ('1 example', '2 examples', '2 classes')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


@dataclass(frozen=True)
class _Place:
    """Where an example is, or goes."""

    example: int
    class_id: int
    label: str
    fine_id: int | None

    def to_json(self) -> dict[str, Any]:
        return {"class": self.class_id, "label": self.label, "fine": self.fine_id}


@dataclass
class Editor:
    """Makes one change.

    Attributes
    ----------
    connection : sqlite3.Connection
        The writing one, within a transaction.
    at, actor : str
        When it happens and who asked for it.
    max_classes : int
        Classes there may be.
    named : list of Named
        Classes that are new, there again, or have another name, once the change is made.
    """

    connection: sqlite3.Connection
    at: str
    actor: str
    max_classes: int
    named: list[Named] = field(default_factory=list)

    def relabel(
        self, examples: Sequence[int], *, label: str | None, fine: str | None, clear_fine: bool
    ) -> Change:
        """Give examples another class, or a fine name, or neither any more.

        A class that they have already is confirmed, if that is all that was said.
        """
        if label is None and fine is None and not clear_fine:
            raise WorkspaceError("relabel needs a label, a fine name, or both")
        if fine is not None and clear_fine:
            raise WorkspaceError("relabel takes a fine name or takes it away, not both")
        book = self._book()
        name = None if label is None else checked_name(label)
        finer = None if fine is None else checked_name(fine, "fine")
        places = self._places(examples)
        moves: dict[_Place, _Place] = {}
        for place in places:
            booked = book.known_or_new(place.label if name is None else name)
            fine_id = None
            if finer is not None:
                fine_id = book.known_or_new(finer, booked.id).id
            elif booked.id == place.class_id and not clear_fine:
                fine_id = place.fine_id
            to = _Place(place.example, booked.id, booked.name, fine_id)
            if to != place:
                moves[place] = to
        if not moves:
            alone = label is not None and fine is None and not clear_fine
            return self._confirm(places, asked=alone)
        seq = self._event("relabel", _relabel_body(moves))
        book.write(self.connection)
        for to in moves.values():
            move_example(self.connection, seq, to.example, (to.class_id, to.fine_id))
        now = _described(moves.values()) + ("" if finer is None else f" and {finer!r} in it")
        return self._moved(seq, "relabel", f"{now} now", len(moves))

    def _confirm(self, places: Sequence[_Place], *, asked: bool) -> Change:
        """Write down that examples are what they are called, if that is what was said."""
        told = _described(places)
        if not asked:
            return self._nothing("relabel", f"{told} already")
        body = {
            "examples": [place.example for place in places],
            "class": places[0].class_id,
            "label": places[0].label,
        }
        return Change(self._event("confirm", body), "confirm", f"{told}, as confirmed", 0)

    def remove(self, examples: Sequence[int]) -> Change:
        """Take examples out."""
        places = self._places(examples)
        seq = self._event("remove", {**_numbers(places), "label": places[0].label})
        for place in places:
            move_example(self.connection, seq, place.example, (None, None))
        summary = f"{counted(len(places), 'example')} taken out"
        if len(places) == 1:
            summary = f"example {places[0].example} of {places[0].label!r} is out"
        return self._moved(seq, "remove", summary, len(places))

    def forget(self, label: str, *, erase: bool) -> Change:
        """Take all examples of a class out, for good if they are to be erased."""
        name, book = checked_name(label), self._book()
        if erase and book.known(name) is None and was_class(self.connection, name):
            return self._erase_forgotten(name)
        booked = require_class(book, name)
        seq = self._event("forget", {"class": booked.id, "label": name, "erase": erase})
        n_moved = move_class(self.connection, seq, booked.id, None)
        change = self._moved(
            seq, "forget", f"{name!r} is forgotten with {counted(n_moved, 'example')}", n_moved
        )
        n_more = self._erase() - n_moved if erase else 0
        if not n_more:
            return change
        more = f"; erased with it: {counted(n_more, 'example')} that went before"
        return replace(change, summary=change.summary + more)

    def forget_lost(self, numbers: Sequence[int]) -> int:
        """Take single examples out for good."""
        seq = self._event("forget", {"class": None, "erase": True, "examples": list(numbers)})
        for number in numbers:
            self.connection.execute(
                "UPDATE example SET erased = 1, row_sha256 = '' WHERE id = ?", (number,)
            )
            self.connection.execute(
                "INSERT INTO move (event, example, from_class, from_fine)"
                " SELECT ?, id, class_id, fine_id FROM example"
                " WHERE id = ? AND class_id IS NOT NULL",
                (seq, number),
            )
        self.named += apply_moves(self.connection, seq)
        return seq

    def rename(self, label: str, to: str, *, within: str | None = None) -> Change:
        """Give a class another name; a fine class where ``within`` names the class it is in."""
        book = self._book()
        parent = COARSE if within is None else require_class(book, checked_name(within)).id
        booked = require_class(book, checked_name(label), parent)
        name = checked_name(to, "the new name")
        if name == booked.name:
            return self._nothing("rename", f"{name!r} has that name already")
        if book.known(name, parent) is not None:
            raise ConflictError(
                f"there is a class {name!r} already: merge {booked.name!r} into it instead"
            )
        seq = self._event("rename", {"class": booked.id, "from": booked.name, "to": name})
        self.set_name(seq, booked.id, name)
        return Change(seq, "rename", f"{booked.name!r} is {name!r} now", booked.n_examples)

    def merge(self, source: str, into: str) -> Change:
        """Give all examples of one class to another; fine names go with them."""
        book = self._book()
        gone = require_class(book, checked_name(source))
        kept = require_class(book, checked_name(into))
        if gone.id == kept.id:
            raise ConflictError(f"{gone.name!r} cannot be merged into itself")
        fine = self.connection.execute(
            "SELECT id, name FROM class WHERE parent = ? AND n_examples > 0 ORDER BY id", (gone.id,)
        ).fetchall()
        mapping = {number: book.known_or_new(name, kept.id).id for number, name in fine}
        body = {"class": gone.id, "label": gone.name, "into": kept.id, "into_label": kept.name}
        seq = self._event("merge", body)
        book.write(self.connection)
        n_moved = move_class(self.connection, seq, gone.id, kept.id, mapping)
        summary = f"{counted(n_moved, 'example')} of {gone.name!r} went to {kept.name!r}"
        return self._moved(seq, "merge", summary, n_moved)

    def split(self, label: str) -> Change:
        """Tell the fine classes within a class apart from now on."""
        booked = require_class(self._book(), checked_name(label))
        if booked.split:
            raise ConflictError(f"{booked.name!r} is split already")
        fine = self.connection.execute(
            "SELECT name, n_examples FROM class WHERE parent = ? AND n_examples > 0 ORDER BY id",
            (booked.id,),
        ).fetchall()
        if sum(number >= _LEAST_FINE for _, number in fine) < _LEAST_FINE:
            there = ", ".join(f"{name!r} with {number}" for name, number in fine) or "none"
            raise ConflictError(
                f"to split {booked.name!r}, at least {_LEAST_FINE} finer names need "
                f"{_LEAST_FINE} examples each; there are: {there}"
            )
        seq = self._event("split", {"class": booked.id, "label": booked.name, "split": True})
        self.set_split(booked.id, True)
        finer = counted(len(fine), "finer class", "finer classes")
        summary = f"{booked.name!r} is split into {finer}"
        return Change(seq, "split", summary, booked.n_examples)

    def unsplit(self, label: str) -> Change:
        """Stop telling fine classes within a class apart; given fine names are kept."""
        booked = require_class(self._book(), checked_name(label))
        if not booked.split:
            raise ConflictError(f"{booked.name!r} is not split")
        seq = self._event("unsplit", {"class": booked.id, "label": booked.name, "split": False})
        self.set_split(booked.id, False)
        return Change(seq, "unsplit", f"{booked.name!r} is one class again", booked.n_examples)

    def guess(self, class_id: int, guesses: Sequence[tuple[int, int, float]]) -> int:
        """Replace the guesses within a class by these: example, fine class, probability."""
        seq = self._event("guess", {"class": class_id, "n_examples": len(guesses)})
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

    def record(self, kind: str, body: Mapping[str, Any], whole: Mapping[str, Any] | None) -> int:
        """Write down something that changes no example; ``whole`` only until it comes again."""
        seq = self._event(kind, body)
        if whole is not None:
            self.connection.execute("DELETE FROM assessment")
            self.connection.execute(
                "INSERT INTO assessment (event, body) VALUES (?, ?)", (seq, json.dumps(whole))
            )
        return seq

    def set_name(self, seq: int, class_id: int, name: str) -> None:
        """Change the name of a class, without an event."""
        self.connection.execute("UPDATE class SET name = ? WHERE id = ?", (name, class_id))
        (parent,) = self.connection.execute(
            "SELECT parent FROM class WHERE id = ?", (class_id,)
        ).fetchone()
        self.named.append(Named(seq, class_id, name, parent or None))

    def set_split(self, class_id: int, split: bool) -> None:
        """Change whether a class is split, without an event."""
        self.connection.execute("UPDATE class SET split = ? WHERE id = ?", (split, class_id))
        if not split:
            clear_guesses(self.connection, "class_id", class_id)

    def _erase_forgotten(self, name: str) -> Change:
        """Erase what is kept for undoing, where the class itself went before."""
        found = self.connection.execute(f"SELECT 1 FROM example WHERE {_ERASABLE} LIMIT 1")
        if found.fetchone() is None:
            summary = f"there is no {name!r} any more, and nothing that went is left to erase"
            return self._nothing("forget", summary)
        seq = self._event("forget", {"class": None, "label": name, "erase": True})
        n_erased = self._erase()
        summary = f"there is no {name!r} any more; erased: {counted(n_erased, 'example')} that went"
        return Change(seq, "forget", summary, n_erased)

    def _erase(self) -> int:
        """Mark all examples that are in no class; return how many there were.

        They were kept to undo changes, and none from before an erasing can be undone. To spare
        some would be to know whose they were: examples go from class to class before they go.
        """
        return self.connection.execute(
            # A row that was lost has no hash any more; its image is still to be erased.
            "UPDATE example SET erased = 1, row_sha256 = iif(row_sha256 = '', 'lost', row_sha256)"
            f" WHERE {_ERASABLE}"
        ).rowcount

    def _places(self, examples: Sequence[int]) -> list[_Place]:
        """Where examples are, each once; an error if one of them is not there."""
        numbers = list(dict.fromkeys(examples))
        if not 0 < len(numbers) <= MOST_TOGETHER:
            raise WorkspaceError(
                f"1 to {MOST_TOGETHER} examples can be changed at once, got {len(numbers)}"
            )
        places = []
        for number in numbers:
            label = example_by_id(self.connection, number).label
            class_id, fine_id = self.connection.execute(
                "SELECT class_id, fine_id FROM example WHERE id = ?", (number,)
            ).fetchone()
            places.append(_Place(number, class_id, label, fine_id))
        return places

    def _book(self) -> ClassBook:
        return ClassBook(self.connection, self.max_classes)

    def _event(self, kind: str, body: Mapping[str, Any]) -> int:
        return add_event(self.connection, kind, body, at=self.at, actor=self.actor)

    def _moved(self, seq: int, kind: str, summary: str, n_examples: int) -> Change:
        self.named += apply_moves(self.connection, seq)
        return Change(seq, kind, summary, n_examples)

    def _nothing(self, kind: str, summary: str) -> Change:
        found = self.connection.execute("SELECT coalesce(max(seq), 0) FROM event")
        return Change(found.fetchone()[0], kind, summary, 0)


def _relabel_body(moves: Mapping[_Place, _Place]) -> dict[str, Any]:
    before, after = next(iter(moves.items()))
    # Of many the first stands for all; the moves themselves say where each was.
    return {**_numbers(moves), "from": before.to_json(), "to": after.to_json()}


def _numbers(places: Iterable[_Place]) -> dict[str, Any]:
    """The examples of an event: most often it is one."""
    numbers = [place.example for place in places]
    return {"example": numbers[0]} if len(numbers) == 1 else {"examples": numbers}


def _described(places: Iterable[_Place]) -> str:
    """Which examples are of which class, in words."""
    some = list(places)
    who = f"example {some[0].example} is" if len(some) == 1 else f"{len(some)} examples are"
    labels = list(dict.fromkeys(repr(place.label) for place in some))
    return f"{who} {labels[0] if len(labels) == 1 else f'of {len(labels)} classes'}"
