"""Teaching: lessons become a plan, the plan is written, and only then does it count.

Planning reads and decides, numbers included: only one process writes, so that nothing can come
between. What goes into files is written before the one transaction that makes it count.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.idempotency import digest_of, known_answer, remember
from evergrow.workspace.changes.moves import apply_moves
from evergrow.workspace.changes.pending_classes import BookedClass, ClassBook
from evergrow.workspace.errors import KeyReusedError
from evergrow.workspace.events import NO_FINE, Added, Block, Fact
from evergrow.workspace.names import checked_name
from evergrow.workspace.records import Example, Lesson, Picture, Request, Taught
from evergrow.workspace.store.images import sha256_of
from evergrow.workspace.store.layout import MOST_FEATURES
from evergrow.workspace.store.queries import example_by_id

__all__ = ["Plan", "Planner", "checked_embedding", "next_number", "row_sha256"]

Rows = npt.NDArray[np.float32]


def checked_embedding(embedding: npt.ArrayLike, n_features: int | None) -> Rows:
    """An embedding as it is kept; a ``WorkspaceError`` unless it is a finite vector that fits."""
    try:
        with np.errstate(over="ignore"):
            row = np.asarray(embedding, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise WorkspaceError(f"an embedding must be a vector of numbers: {error}") from error
    if row.ndim != 1 or not len(row):
        raise WorkspaceError(f"an embedding must be one vector of numbers, got shape {row.shape}")
    if n_features is not None and len(row) != n_features:
        raise WorkspaceError(f"an embedding must have {n_features} numbers, got {len(row)}")
    if len(row) > MOST_FEATURES:
        raise WorkspaceError(
            f"an embedding must have at most {MOST_FEATURES} numbers, got {len(row)}"
        )
    if not np.isfinite(row).all():
        raise WorkspaceError("an embedding must be finite in single precision")
    return row


@dataclass
class Plan:
    """What teaching some lessons will write, and the answers once it is written."""

    first_id: int
    first_event: int
    book: ClassBook
    rows: list[Rows] = field(default_factory=list)
    # Image files to keep, by their hash; known ones too, which may have been lost or damaged.
    pictures: dict[str, Picture] = field(default_factory=dict)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    examples: list[tuple[Any, ...]] = field(default_factory=list)
    moves: list[tuple[Any, ...]] = field(default_factory=list)
    # Moves of known examples, which got a finer name.
    relabels: list[tuple[Any, ...]] = field(default_factory=list)
    answers: list[Taught] = field(default_factory=list)
    to_remember: list[tuple[Request, str, Taught]] = field(default_factory=list)

    @property
    def version(self) -> int:
        """The newest event once the plan is written."""
        return self.first_event + len(self.events) - 1

    def matrix(self) -> Rows:
        """The new embeddings, one row per new example."""
        return np.stack(self.rows)

    def facts(self) -> list[Fact]:
        """What is true once the plan is written; of a plan that moves no known example."""
        if not self.rows:
            return []
        ids = np.arange(self.first_id, self.first_id + len(self.rows), dtype=np.int64)
        class_ids = np.array([move[4] for move in self.moves], dtype=np.int64)
        fine_ids = np.array([move[5] or NO_FINE for move in self.moves], dtype=np.int64)
        added = Added(self.version, Block(ids, self.matrix(), class_ids, fine_ids))
        return [*self.book.named(self.version), added]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all of it, within a transaction."""
        connection.executemany(
            "INSERT INTO event (seq, kind, at, actor, body, nonce)"
            " VALUES (?, ?, ?, ?, ?, hex(randomblob(8)))",
            self.events,
        )
        self.book.write(connection)
        connection.executemany(
            "INSERT OR IGNORE INTO picture (sha256, media_type, width, height, n_bytes)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (name, one.media_type, one.width, one.height, len(one.content))
                for name, one in self.pictures.items()
            ],
        )
        connection.executemany(
            "INSERT INTO example (id, event, row_sha256, image, class_id, fine_id)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            self.examples,
        )
        connection.executemany(
            "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [*self.moves, *self.relabels],
        )
        for event, *_ in self.relabels:
            apply_moves(connection, event)
        for request, digest, answer in self.to_remember:
            remember(connection, request, digest, answer)


class Planner:
    """Turns lessons into a plan, one after the other.

    Parameters
    ----------
    connection : sqlite3.Connection
        The writing one, to read what is there.
    at : str
        When it happens.
    n_features : int or None
        Length of the embeddings; None if the first lesson says it.
    max_classes : int
        Classes there may be.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, at: str, n_features: int | None, max_classes: int
    ) -> None:
        self._connection = connection
        self._at = at
        self._n_features = n_features
        book = ClassBook(connection, max_classes)
        self._plan = Plan(
            next_number(connection, "example"), next_number(connection, "event"), book
        )
        # What earlier lessons of the same plan did, which the database does not know yet.
        self._answered: dict[tuple[str, str], tuple[str, Taught]] = {}
        self._taught: dict[tuple[str, int], Taught] = {}

    def plan(self, lessons: Sequence[Lesson]) -> Plan:
        """The plan for all lessons; an error for the first that cannot be taught."""
        for number, lesson in enumerate(lessons, start=1):
            try:
                self._plan.answers.append(self._answer(lesson))
            except WorkspaceError as error:
                if len(lessons) == 1:
                    raise
                raise type(error)(f"lesson {number} of {len(lessons)}: {error}") from error
        return self._plan

    def _answer(self, lesson: Lesson) -> Taught:
        label = checked_name(lesson.label)
        fine = None if lesson.fine is None else checked_name(lesson.fine, "fine")
        row = checked_embedding(lesson.embedding, self._n_features)
        image = None if lesson.picture is None else sha256_of(lesson.picture.content)
        request = lesson.request
        digest = digest_of(request, "teach", label, fine, image, content=row.tobytes())
        known = self._known_answer(request, digest)
        if known is not None:
            return known
        answer = self._known_picture(lesson, label, fine, image)
        if answer is None:
            answer = self._new_example(lesson, label, fine, row, image)
        if request.key is not None:
            self._answered[request.actor, request.key] = (digest, answer)
            self._plan.to_remember.append((request, digest, answer))
        return answer

    def _known_answer(self, request: Request, digest: str) -> Taught | None:
        if request.key is None:
            return None
        earlier = self._answered.get((request.actor, request.key))
        if earlier is not None and earlier[0] == digest:
            return earlier[1]
        known = known_answer(self._connection, request, digest)
        if earlier is not None or not (known is None or isinstance(known, Taught)):
            raise KeyReusedError(
                f"the key {request.key!r} came with another request before: take a new key for "
                "each new request"
            )
        return known

    def _known_picture(
        self, lesson: Lesson, label: str, fine: str | None, image: str | None
    ) -> Taught | None:
        """The answer where the class has the same picture already."""
        booked = None if image is None else self._plan.book.known(label)
        if image is None or lesson.picture is None or booked is None:
            return None
        example = self._known_example(image, booked)
        if example is None:
            return None
        self._plan.pictures.setdefault(image, lesson.picture)
        answer = Taught(example, example.event, True, False, booked.n_examples)
        if fine is None or (example.fine_kind == "given" and example.fine == fine):
            return answer
        if example.fine_kind == "given":
            # Someone said so: to change that takes a correction, not a picture that came again.
            return replace(answer, known_fine="kept")
        answer = self._finer(lesson, answer, booked, fine)
        self._taught[image, booked.id] = answer
        return answer

    def _known_example(self, image: str, booked: BookedClass) -> Example | None:
        taught = self._taught.get((image, booked.id))
        if taught is not None:
            return taught.example
        found = self._connection.execute(
            "SELECT id FROM example WHERE image = ? AND class_id = ? ORDER BY id LIMIT 1",
            (image, booked.id),
        ).fetchone()
        return None if found is None else example_by_id(self._connection, found[0])

    def _finer(self, lesson: Lesson, known: Taught, booked: BookedClass, fine: str) -> Taught:
        """Give a known example a finer name, which nobody gave it so far."""
        plan, example = self._plan, known.example
        event = plan.first_event + len(plan.events)
        finer = plan.book.known_or_new(fine, booked.id)
        body = {
            "example": example.id,
            "from": {"class": booked.id, "label": booked.name, "fine": None},
            "to": {"class": booked.id, "label": booked.name, "fine": finer.id},
        }
        plan.events.append((event, "relabel", self._at, lesson.request.actor, json.dumps(body)))
        plan.relabels.append((event, example.id, booked.id, None, booked.id, finer.id))
        now = replace(example, fine=fine, fine_kind="given", fine_probability=None)
        return replace(known, example=now, event=event, known_fine="taken")

    def _new_example(
        self, lesson: Lesson, label: str, fine: str | None, row: Rows, image: str | None
    ) -> Taught:
        plan = self._plan
        self._n_features = len(row)
        number = plan.first_id + len(plan.rows)
        event = plan.first_event + len(plan.events)
        booked = plan.book.known_or_new(label)
        finer = None if fine is None else plan.book.known_or_new(fine, booked.id)
        is_new = booked.n_examples == 0
        for one in (booked, finer):
            if one is not None:
                one.add(event, picture=image is not None)
        fine_id = None if finer is None else finer.id
        body = {"example": number, "class": booked.id, "label": label, "fine": fine}
        plan.rows.append(row)
        plan.events.append((event, "teach", self._at, lesson.request.actor, json.dumps(body)))
        plan.examples.append((number, event, row_sha256(row), image, booked.id, fine_id))
        plan.moves.append((event, number, None, None, booked.id, fine_id))
        picture = lesson.picture
        if image is not None and picture is not None:
            plan.pictures.setdefault(image, picture)
        example = Example(
            id=number,
            event=event,
            label=label,
            fine=fine,
            fine_kind=None if fine is None else "given",
            fine_probability=None,
            image=image,
            media_type=None if picture is None else picture.media_type,
            width=None if picture is None else picture.width,
            height=None if picture is None else picture.height,
            at=self._at,
            actor=lesson.request.actor,
        )
        taught = Taught(example, event, False, is_new, booked.n_examples)
        if image is not None:
            self._taught[image, booked.id] = taught
        return taught


def row_sha256(row: Rows) -> str:
    """The hash of an embedding as it lies on disk."""
    return hashlib.sha256(np.ascontiguousarray(row, dtype="<f4").tobytes()).hexdigest()


def next_number(connection: sqlite3.Connection, table: str) -> int:
    """The number that the next row of a table gets; numbers are never used twice."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
    return 1 + int((found.fetchone() or (0,))[0])
