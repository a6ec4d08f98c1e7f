"""The event log in the database: timestamps, replay of domain events, current examples."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Self, TypeAlias

import numpy as np

from evergrow.workspace.events import (
    NO_FINE,
    AssessmentAdopted,
    ClassInfo,
    DomainEvent,
    ExampleBlock,
    ExamplesAdded,
    ExamplesErased,
    ExamplesMoved,
    ExamplesRemoved,
    ForestTrained,
    Ids,
    PicturesEmbedded,
    Rows,
    SplitChanged,
)
from evergrow.workspace.store.files import VectorStore

# Examples per block of a replay: large enough to be fast, small enough for memory.
_BLOCK_ROWS = 4096

# Event, example, class and fine class before, class and fine class after.
_Move: TypeAlias = tuple[int, int, int, int, int, int]
# The same value as for "no fine class": neither is the id of a class.
_NONE = NO_FINE

_MOVES = (
    "SELECT m.event, m.example, coalesce(m.from_class, :none), coalesce(m.from_fine, :none),"
    " coalesce(m.to_class, :none), coalesce(m.to_fine, :none) FROM move m"
    " JOIN example e ON e.id = m.example WHERE m.event > :after AND e.erased <= :erased"
    " ORDER BY m.event, m.example"
)
# The newest assessment is joined in full.
_EVENTS = (
    "SELECT seq, kind, coalesce(a.body, e.body) FROM event e INDEXED BY event_model"
    " LEFT JOIN assessment a ON a.event = e.seq WHERE seq > ?"
    " AND kind IN ('split', 'unsplit', 'undo', 'choose', 'forest', 'embed') ORDER BY seq"
)

# The class of every example after an event. SQLite takes the bare columns from the row of the
# maximum.
_PLACES = (
    "SELECT example, to_class FROM"
    " (SELECT example, to_class, max(event) FROM move WHERE event <= ? GROUP BY example)"
    " WHERE to_class IS NOT NULL ORDER BY example"
)


def newest_event_number(connection: sqlite3.Connection) -> int:
    """Number of the newest event; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])


def now() -> datetime:
    """The time of the system clock."""
    return datetime.now(UTC)


def format_time(moment: datetime) -> str:
    """A time as text in UTC and of fixed length, so that text order is time order.

    >>> format_time(datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC))
    '2026-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock:
    """Gives the timestamp of a new event, after the ``last`` one so far.

    Events are ordered by their number; the time is for people. To agree with that order, the
    timestamp repeats the last one while a system clock that was set back catches up.
    """

    def __init__(self, last: str = "", read: Callable[[], datetime] = now) -> None:
        self._last = last
        self._read = read

    def __call__(self) -> str:
        """The current time, never before an earlier result."""
        self._last = max(self._last, format_time(self._read()))
        return self._last


class EventLog:
    """What a projection may read, from any thread; each call sees one committed state.

    ``read`` starts a read transaction of the database; ``vectors`` returns the embeddings, None
    before the first example.
    """

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[sqlite3.Connection]],
        vectors: Callable[[], VectorStore | None],
        seed: int,
    ) -> None:
        self._read = read
        self._vectors = vectors
        self._seed = seed

    @contextmanager
    def pinned(self) -> Iterator[Self]:
        """The log as of one moment, for one thread: all reads in the block see the same state."""
        with self._read() as connection:
            yield type(self)(lambda: nullcontext(connection), self._vectors, self._seed)

    @property
    def version(self) -> int:
        """Number of the newest event; 0 if there is none."""
        with self._read() as connection:
            return newest_event_number(connection)

    @property
    def last_erasure(self) -> int:
        """Newest event that erased examples, or all embeddings for others.

        Older snapshots still contain them.
        """
        with self._read() as connection:
            return _last_erasure(connection)

    def nonce(self, event: int) -> str | None:
        """Random token of an event, which differs in a diverged copy; None if there is none."""
        with self._read() as connection:
            found = connection.execute("SELECT nonce FROM event WHERE seq = ?", (event,))
            row = found.fetchone()
            return None if row is None else str(row[0])

    @property
    def n_features(self) -> int | None:
        """Length of an embedding; None before the first example."""
        vectors = self._vectors()
        return None if vectors is None else vectors.n_features

    def replay(self, after: int = 0) -> Iterator[DomainEvent]:
        """Events after a given one, in order; consecutive teaching is joined into blocks.

        Erased examples are left out; only the event that erased them is included.
        """
        with self._read() as connection:
            yield from self.replay_on(connection, after, erased=False)

    def replay_on(
        self, connection: sqlite3.Connection, after: int, *, erased: bool
    ) -> Iterator[DomainEvent]:
        """Replay through an open connection, with or without erased examples.

        A live projection needs the removal of erased examples while their rows still exist.
        """
        values = {"after": after, "none": _NONE, "erased": erased}
        moves = _Peekable(connection.execute(_MOVES, values))
        # Among these events only an erasure has moves; it is published after them.
        for seq, event in _logged_events(connection, after):
            yield from self._blocks(_up_to(moves, seq + isinstance(event, ExamplesErased)))
            yield event
        yield from self._blocks(_up_to(moves, None))

    def classes(self) -> Mapping[int, ClassInfo]:
        """All classes that have examples now, by id, in order of creation."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT id, name, parent, split, n_examples FROM class WHERE n_examples > 0"
                " ORDER BY id"
            )
            return {
                row[0]: ClassInfo(row[0], row[1], row[2] or None, bool(row[3]), row[4])
                for row in found
            }

    def rows(self, ids: Ids) -> Rows:
        """Embeddings of examples."""
        vectors = self._vectors()
        if vectors is None:
            return np.empty((0, 0), dtype=np.float32)
        # Example n has row n - 1.
        return vectors.rows(ids - 1)

    def examples(
        self, *, class_id: int | None = None, given: bool | None = None, limit: int | None = None
    ) -> ExampleBlock:
        """Current examples of one class or of all, in order of id.

        ``given`` selects those with or without a given fine class. With a limit, a uniform sample
        is returned, the same for the same examples.
        """
        conditions = ["class_id IS NOT NULL" if class_id is None else "class_id = :class_id"]
        if given is not None:
            conditions.append(f"fine_id IS {'NOT ' if given else ''}NULL")
        with self._read() as connection:
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
        return ExampleBlock(ids, self.rows(ids), places[:, 1].copy(), places[:, 2].copy())

    def guessed_at(self, class_id: int) -> int:
        """Newest event that guessed fine classes within a class; 0 if there is none."""
        return self._of_class("guessed_by", class_id)

    def changed_at(self, class_id: int) -> int:
        """Newest event that changed the examples of a class; 0 if there is none."""
        return self._of_class("changed_by", class_id)

    def _of_class(self, column: str, class_id: int) -> int:
        with self._read() as connection:
            found = connection.execute(f"SELECT {column} FROM class WHERE id = ?", (class_id,))
            return int((found.fetchone() or (0,))[0])

    def _blocks(self, moves: Iterator[_Move]) -> Iterator[DomainEvent]:
        for kind, group in itertools.groupby(moves, key=_kind_of):
            while part := list(itertools.islice(group, _BLOCK_ROWS)):
                yield self._event(kind, part)

    def _event(self, kind: type[DomainEvent], part: list[_Move]) -> DomainEvent:
        columns = np.array(part, dtype=np.int64).T.copy()
        events, ids, from_class, from_fine, to_class, to_fine = columns
        last, rows = int(events[-1]), self.rows(ids)
        if kind is ExamplesAdded:
            return ExamplesAdded(last, ExampleBlock(ids, rows, to_class, to_fine))
        before = ExampleBlock(ids, rows, from_class, from_fine)
        return (
            ExamplesRemoved(last, before)
            if kind is ExamplesRemoved
            else ExamplesMoved(last, before, to_class, to_fine)
        )


def _kind_of(move: _Move) -> type[DomainEvent]:
    if move[2] == _NONE:
        return ExamplesAdded
    return ExamplesRemoved if move[4] == _NONE else ExamplesMoved


def _up_to(moves: _Peekable, event: int | None) -> Iterator[_Move]:
    """The next moves, up to but not including those of an event; all if it is None."""
    while (move := moves.next) is not None and (event is None or move[0] < event):
        yield move
        moves.advance()


def _last_erasure(connection: sqlite3.Connection) -> int:
    found = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM event INDEXED BY event_erasure"
        " WHERE kind IN ('forget', 'embed') AND (kind = 'embed' OR json_extract(body, '$.erase'))"
    )
    return int(found.fetchone()[0])


def last_embedding(connection: sqlite3.Connection) -> int:
    """Newest event that embedded all pictures again, in a database of any format."""
    found = connection.execute(
        # The first condition is that of an index.
        "SELECT coalesce(max(seq), 0) FROM event"
        " WHERE kind IN ('forget', 'embed') AND kind = 'embed'"
    )
    return int(found.fetchone()[0])


def _logged_events(connection: sqlite3.Connection, after: int) -> Iterator[tuple[int, DomainEvent]]:
    erasure = _last_erasure(connection)
    pending = erasure > after
    for seq, kind, text in connection.execute(_EVENTS, (after,)):
        if pending and seq > erasure:
            yield erasure, _erased(connection, erasure)
            pending = False
        body: dict[str, Any] = json.loads(text)
        if kind == "choose":
            yield seq, AssessmentAdopted(seq, body)
        elif kind == "forest" and not pending:
            yield seq, ForestTrained(seq, body)
        elif kind == "embed":
            yield seq, PicturesEmbedded(seq)
        elif "split" in body:
            yield seq, SplitChanged(seq, body["class"], body["split"])
    if pending:
        yield erasure, _erased(connection, erasure)


def _erased(connection: sqlite3.Connection, event: int) -> ExamplesErased:
    places = np.array(connection.execute(_PLACES, (event,)).fetchall(), dtype=np.int64)
    ids, class_ids = places.reshape(-1, 2).T.copy()
    return ExamplesErased(event, ids, class_ids)


class _Peekable:
    """An iterator over moves with a look at the next one."""

    def __init__(self, moves: Iterator[_Move]) -> None:
        self._moves = moves
        self.next: _Move | None = None
        self.advance()

    def advance(self) -> None:
        """Go to the next move."""
        self.next = next(self._moves, None)
