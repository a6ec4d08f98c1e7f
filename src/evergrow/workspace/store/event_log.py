"""What a follower reads: the facts in recorded order, and the examples there are now."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from evergrow.workspace.events import (
    NO_FINE,
    Added,
    Block,
    Chosen,
    ClassName,
    Erased,
    Fact,
    ForestLearnt,
    Ids,
    Moved,
    Removed,
    Rows,
    SplitSet,
)
from evergrow.workspace.store.vectors import Shards

__all__ = ["StoredHistory", "version_of"]

# Examples in one block of a replay: enough to be fast, few enough to fit in memory.
_BLOCK_ROWS = 4096

# Event, example, class and fine class before, class and fine class after.
_Move: TypeAlias = tuple[int, int, int, int, int, int]
# The same number as no fine class: neither is the id of a class.
_NOWHERE = NO_FINE

_MOVES = (
    "SELECT m.event, m.example, coalesce(m.from_class, :nowhere), coalesce(m.from_fine, :nowhere),"
    " coalesce(m.to_class, :nowhere), coalesce(m.to_fine, :nowhere) FROM move m"
    " JOIN example e ON e.id = m.example WHERE m.event > :after AND e.erased <= :erased"
    " ORDER BY m.event, m.example"
)
# Of the last assessment all that was found out.
_EVENTS = (
    "SELECT seq, kind, coalesce(a.body, e.body) FROM event e INDEXED BY event_model"
    " LEFT JOIN assessment a ON a.event = e.seq WHERE seq > ?"
    " AND kind IN ('split', 'unsplit', 'undo', 'choose', 'forest') ORDER BY seq"
)

# Where every example was after an event; SQLite takes the bare columns from the row of the maximum.
_PLACES = (
    "SELECT example, to_class FROM"
    " (SELECT example, to_class, max(event) FROM move WHERE event <= ? GROUP BY example)"
    " WHERE to_class IS NOT NULL ORDER BY example"
)


def version_of(connection: sqlite3.Connection) -> int:
    """Number of the newest event; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])


class Readings(Protocol):
    """Gives connections that read, such as a :class:`~evergrow.workspace.store.database.Store`."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection that sees one committed state."""


class StoredHistory:
    """The history of a workspace, from its database and its embeddings.

    Parameters
    ----------
    store : Store
        The database, or one reading of it.
    shards : callable
        Gives the embeddings; None before the first example.
    seed : int
        Of samples.
    """

    def __init__(self, store: Readings, shards: Callable[[], Shards | None], seed: int) -> None:
        self._store = store
        self._shards = shards
        self._seed = seed

    @contextmanager
    def at_once(self) -> Iterator[Self]:
        """The history as of one moment, for one thread: it does not go on during the block."""
        with self._store.reading() as connection:
            yield type(self)(_OneReading(connection), self._shards, self._seed)

    @property
    def version(self) -> int:
        """Number of the newest event; 0 if there is none."""
        with self._store.reading() as connection:
            return version_of(connection)

    @property
    def usable_from(self) -> int:
        """A snapshot of an event before this one holds what was erased: it must not be used."""
        with self._store.reading() as connection:
            return _last_erasing(connection)

    def nonce(self, event: int) -> str | None:
        """What tells an event from the same one of a copy that went another way; None if none."""
        with self._store.reading() as connection:
            found = connection.execute("SELECT nonce FROM event WHERE seq = ?", (event,))
            row = found.fetchone()
            return None if row is None else str(row[0])

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""
        shards = self._shards()
        return None if shards is None else shards.n_features

    def facts(self, after: int = 0) -> Iterator[Fact]:
        """Facts of the events after one, in order; teaching in a row comes as blocks."""
        with self._store.reading() as connection:
            yield from self.facts_by(connection, after, erased=False)

    def facts_by(
        self, connection: sqlite3.Connection, after: int, *, erased: bool
    ) -> Iterator[Fact]:
        """The same through a connection that is open, with or without what was erased.

        Who followed the examples so far must hear that they go, while their rows are still there.
        """
        values = {"after": after, "nowhere": _NOWHERE, "erased": erased}
        moves = _Peekable(connection.execute(_MOVES, values))
        # Undoing a split moves nothing; of events with a fact of their own only erasing has moves,
        # and it comes after them.
        for seq, fact in _event_facts(connection, after):
            yield from self._blocks(_up_to(moves, seq + isinstance(fact, Erased)))
            yield fact
        yield from self._blocks(_up_to(moves, None))

    def names(self) -> Mapping[int, ClassName]:
        """All classes that have examples now, by id, in order of creation."""
        with self._store.reading() as connection:
            found = connection.execute(
                "SELECT id, name, parent, split, n_examples FROM class WHERE n_examples > 0"
                " ORDER BY id"
            )
            return {
                row[0]: ClassName(row[0], row[1], row[2] or None, bool(row[3]), row[4])
                for row in found
            }

    def rows(self, ids: Ids) -> Rows:
        """Embeddings of examples."""
        shards = self._shards()
        if shards is None:
            return np.empty((0, 0), dtype=np.float32)
        # Example n has row n - 1.
        return shards.rows(ids - 1)

    def examples(
        self, *, class_id: int | None = None, given: bool | None = None, limit: int | None = None
    ) -> Block:
        """Examples there are now, in order of id; with a limit a uniform sample of them."""
        conditions = ["class_id IS NOT NULL" if class_id is None else "class_id = :class_id"]
        if given is not None:
            conditions.append(f"fine_id IS {'NOT ' if given else ''}NULL")
        with self._store.reading() as connection:
            found = connection.execute(
                "SELECT id, class_id, coalesce(fine_id, :no_fine) FROM example"
                f" WHERE {' AND '.join(conditions)} ORDER BY id",
                {"class_id": class_id, "no_fine": NO_FINE},
            ).fetchall()
        places = np.array(found, dtype=np.int64).reshape(-1, 3)
        if limit is not None and len(places) > limit:
            draw = np.random.default_rng([self._seed, len(places)])
            places = places[np.sort(draw.choice(len(places), limit, replace=False))]
        ids = np.ascontiguousarray(places[:, 0])
        return Block(ids, self.rows(ids), places[:, 1].copy(), places[:, 2].copy())

    def guessed_at(self, class_id: int) -> int:
        """Event of the last guesses within a class; 0 if there was none."""
        return self._of_class("guessed_by", class_id)

    def changed_at(self, class_id: int) -> int:
        """Newest event that brought, took or relabelled examples of a class; 0 if none."""
        return self._of_class("changed_by", class_id)

    def _of_class(self, column: str, class_id: int) -> int:
        with self._store.reading() as connection:
            found = connection.execute(f"SELECT {column} FROM class WHERE id = ?", (class_id,))
            return int((found.fetchone() or (0,))[0])

    def _blocks(self, moves: Iterator[_Move]) -> Iterator[Fact]:
        for kind, group in itertools.groupby(moves, key=_kind_of):
            while part := list(itertools.islice(group, _BLOCK_ROWS)):
                yield self._fact(kind, part)

    def _fact(self, kind: type[Fact], part: list[_Move]) -> Fact:
        columns = np.array(part, dtype=np.int64).T.copy()
        events, ids, from_class, from_fine, to_class, to_fine = columns
        last, rows = int(events[-1]), self.rows(ids)
        if kind is Added:
            return Added(last, Block(ids, rows, to_class, to_fine))
        before = Block(ids, rows, from_class, from_fine)
        return Removed(last, before) if kind is Removed else Moved(last, before, to_class, to_fine)


def _kind_of(move: _Move) -> type[Fact]:
    if move[2] == _NOWHERE:
        return Added
    return Removed if move[4] == _NOWHERE else Moved


def _up_to(moves: _Peekable, event: int | None) -> Iterator[_Move]:
    """Moves that have not been taken, of events before one; all of them without one."""
    while (move := moves.next) is not None and (event is None or move[0] < event):
        yield move
        moves.advance()


def _last_erasing(connection: sqlite3.Connection) -> int:
    found = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM event INDEXED BY event_forget"
        " WHERE kind = 'forget' AND json_extract(body, '$.erase')"
    )
    return int(found.fetchone()[0])


def _event_facts(connection: sqlite3.Connection, after: int) -> Iterator[tuple[int, Fact]]:
    erasing = _last_erasing(connection)
    pending = erasing > after
    for seq, kind, text in connection.execute(_EVENTS, (after,)):
        if pending and seq > erasing:
            yield erasing, _erased(connection, erasing)
            pending = False
        body: dict[str, Any] = json.loads(text)
        if kind == "choose":
            yield seq, Chosen(seq, body)
        elif kind == "forest" and not pending:
            yield seq, ForestLearnt(seq, body)
        elif "split" in body:
            yield seq, SplitSet(seq, body["class"], body["split"])
    if pending:
        yield erasing, _erased(connection, erasing)


def _erased(connection: sqlite3.Connection, event: int) -> Erased:
    places = np.array(connection.execute(_PLACES, (event,)).fetchall(), dtype=np.int64)
    ids, class_ids = places.reshape(-1, 2).T.copy()
    return Erased(event, ids, class_ids)


class _OneReading:
    """A connection whose transaction goes on, for whoever would begin one of their own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection."""
        yield self._connection


class _Peekable:
    """Moves one by one, the next of which can be looked at before it is taken."""

    def __init__(self, moves: Iterator[_Move]) -> None:
        self._moves = moves
        self.next: _Move | None = None
        self.advance()

    def advance(self) -> None:
        """Take the next one."""
        self.next = next(self._moves, None)
