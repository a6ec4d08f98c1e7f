"""Teaches examples: they are planned, then written, and the commit makes them count.

Planning reads the database and reserves all ids, within the transaction that will commit them: no
other process can take the same ids or write the same rows meanwhile. Files are written before the
commit that makes them count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.idempotency import (
    find_answer,
    key_reused,
    request_digest,
    store_answer,
)
from evergrow.workspace.changes.transaction import (
    PendingClass,
    PendingClasses,
    apply_moves,
    event_body,
    next_id,
)
from evergrow.workspace.events import NO_FINE, DomainEvent, ExampleBlock, ExamplesAdded
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import Example, NewExample, Picture, Request, TeachResult
from evergrow.workspace.store.files import Rows, row_sha256, sha256_of
from evergrow.workspace.store.layout import MOST_FEATURES
from evergrow.workspace.store.queries import example_by_id
from evergrow.workspace.store.trust import require_media_type


def check_embedding(embedding: npt.ArrayLike, n_features: int | None) -> Rows:
    """An embedding as float32; a ``WorkspaceError`` unless it is a finite vector of this length."""
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
class PendingTeach:
    """What teaching some examples will write, and the results once it is written."""

    first_id: int
    first_event: int
    classes: PendingClasses
    rows: list[Rows] = field(default_factory=list)
    # Image files by hash; also those of known examples, whose files may be lost or damaged.
    pictures: dict[str, Picture] = field(default_factory=dict)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    examples: list[tuple[Any, ...]] = field(default_factory=list)
    moves: list[tuple[Any, ...]] = field(default_factory=list)
    # Moves of known examples that get a fine class or another class.
    relabels: list[tuple[Any, ...]] = field(default_factory=list)
    results: list[TeachResult] = field(default_factory=list)
    answers: list[tuple[Request, str, TeachResult]] = field(default_factory=list)

    @property
    def last_event(self) -> int:
        """The newest event once all of it is written."""
        return self.first_event + len(self.events) - 1

    def matrix(self) -> Rows:
        """The new embeddings, one row per new example."""
        return np.stack(self.rows)

    def domain_events(self) -> list[DomainEvent]:
        """What is published once all of it is written, if no known example is relabelled."""
        if not self.rows:
            return []
        ids = np.arange(self.first_id, self.first_id + len(self.rows), dtype=np.int64)
        class_ids = np.array([move[4] for move in self.moves], dtype=np.int64)
        fine_ids = np.array([move[5] or NO_FINE for move in self.moves], dtype=np.int64)
        block = ExampleBlock(ids, self.matrix(), class_ids, fine_ids)
        created = self.classes.created_events(self.last_event)
        return [*created, ExamplesAdded(self.last_event, block)]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all of it to the database, within a transaction."""
        connection.executemany(
            "INSERT INTO event (seq, kind, at, actor, body, nonce)"
            " VALUES (?, ?, ?, ?, ?, hex(randomblob(8)))",
            self.events,
        )
        self.classes.write(connection)
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
        for request, digest, answer in self.answers:
            store_answer(connection, request, digest, answer)


@dataclass(frozen=True)
class _Holder:
    """The example that has an image, with its class and given fine class."""

    example: Example
    class_id: int
    fine_id: int | None


class TeachPlanner:
    """Turns new examples into a pending change, one after the other.

    The first example fixes the length of embeddings if ``n_features`` is None.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, at: str, n_features: int | None, max_classes: int
    ) -> None:
        self._connection = connection
        self._at = at
        self._n_features = n_features
        classes = PendingClasses(connection, max_classes)
        self._pending = PendingTeach(
            next_id(connection, "example"), next_id(connection, "event"), classes
        )
        # Results of earlier examples of the same call, which the database does not have yet.
        self._answered: dict[tuple[str, str], tuple[str, TeachResult]] = {}
        self._held: dict[str, _Holder] = {}

    def plan(self, examples: Sequence[NewExample]) -> PendingTeach:
        """The pending change for all examples; an error for the first that is not valid."""
        for number, example in enumerate(examples, start=1):
            try:
                self._pending.results.append(self._plan_one(example))
            except WorkspaceError as error:
                if len(examples) == 1:
                    raise
                error.args = (f"example {number} of {len(examples)}: {error}",)
                raise
        return self._pending

    def _plan_one(self, new: NewExample) -> TeachResult:
        label = normalise_name(new.label)
        fine = None if new.fine is None else normalise_name(new.fine, "fine")
        row = check_embedding(new.embedding, self._n_features)
        image = None if new.picture is None else sha256_of(new.picture.content)
        if new.picture is not None:
            require_media_type(new.picture.media_type)
        request = new.request
        parts = ("teach", label, fine, image, *(["move"] if new.move else []))
        digest = request_digest(request, *parts, content=row.tobytes())
        answer = self._find_answer(request, digest)
        if answer is not None:
            return answer
        result = self._known_picture(new, label, fine, image)
        if result is None:
            result = self._new_example(new, label, fine, row, image)
        # Nothing was changed if another class has the image: the request may come again.
        if request.key is not None and result.known_as is None:
            self._answered[request.actor, request.key] = (digest, result)
            self._pending.answers.append((request, digest, result))
        return result

    def _find_answer(self, request: Request, digest: str) -> TeachResult | None:
        if request.key is None:
            return None
        earlier = self._answered.get((request.actor, request.key))
        if earlier is not None and earlier[0] == digest:
            return earlier[1]
        answer = find_answer(self._connection, request, digest)
        if earlier is not None or not (answer is None or isinstance(answer, TeachResult)):
            raise key_reused(request)
        return answer

    def _known_picture(
        self, new: NewExample, label: str, fine: str | None, image: str | None
    ) -> TeachResult | None:
        """The result for an image that a class has already; None for any other."""
        if image is None or new.picture is None:
            return None
        known_class = self._pending.classes.find(label)
        example = None if known_class is None else self._known_example(image, known_class)
        if example is None or known_class is None:
            return self._known_elsewhere(new, label, fine, image, new.picture)
        self._pending.pictures.setdefault(image, new.picture)
        result = TeachResult(example, example.event, True, False, known_class.n_examples)
        if fine is None or (example.fine_kind == "given" and example.fine == fine):
            return result
        if example.fine_kind == "given":
            # A given name is changed by a correction, not by teaching the image again.
            return replace(result, known_fine="kept")
        return self._set_fine_name(new, result, known_class, fine, image)

    def _known_elsewhere(
        self, new: NewExample, label: str, fine: str | None, image: str, picture: Picture
    ) -> TeachResult | None:
        """The result for an image that another class has; None if no class has it."""
        held = self._held.get(image) or self._find_holder(image)
        if held is None:
            return None
        self._pending.pictures.setdefault(image, picture)
        example, source = held.example, self._pending.classes.require(held.example.label)
        if not new.move:
            known_as, n_examples = source.name, source.n_examples
            return TeachResult(example, example.event, True, False, n_examples, known_as=known_as)
        pending = self._pending
        target = pending.classes.find_or_create(label)
        is_new = target.n_examples == 0
        fine_class = None if fine is None else pending.classes.find_or_create(fine, target.id)
        fine_id = None if fine_class is None else fine_class.id
        event = self._relabel(new, example.id, (source, held.fine_id), (target, fine_id))
        # The database counts them when the moves are applied.
        source.n_examples -= 1
        target.n_examples += 1
        kind: Literal["given"] | None = None if fine is None else "given"
        now = replace(example, label=label, fine=fine, fine_kind=kind, fine_probability=None)
        result = TeachResult(now, event, False, is_new, target.n_examples, moved_from=source.name)
        self._held[image] = _Holder(now, target.id, fine_id)
        return result

    def _find_holder(self, image: str) -> _Holder | None:
        found = self._connection.execute(
            "SELECT id, class_id, fine_id FROM example WHERE image = ? AND class_id IS NOT NULL"
            " ORDER BY id LIMIT 1",
            (image,),
        ).fetchone()
        if found is None:
            return None
        number, class_id, fine_id = found
        return _Holder(example_by_id(self._connection, number), class_id, fine_id)

    def _relabel(
        self,
        new: NewExample,
        example: int,
        before: tuple[PendingClass, int | None],
        after: tuple[PendingClass, int | None],
    ) -> int:
        """Move a known example from a class and fine class to others; return the event."""
        event = self._pending.first_event + len(self._pending.events)
        body: dict[str, Any] = {"example": example}
        for name, (of_class, fine_id) in (("from", before), ("to", after)):
            body[name] = {"class": of_class.id, "label": of_class.name, "fine": fine_id}
        self._add_event(event, "relabel", new, body)
        ids = (before[0].id, before[1], after[0].id, after[1])
        self._pending.relabels.append((event, example, *ids))
        return event

    def _add_event(self, event: int, kind: str, new: NewExample, body: dict[str, Any]) -> None:
        text = event_body(body, new.request.action)
        self._pending.events.append((event, kind, self._at, new.request.actor, text))

    def _known_example(self, image: str, known_class: PendingClass) -> Example | None:
        held = self._held.get(image)
        if held is not None:
            return held.example if held.class_id == known_class.id else None
        found = self._connection.execute(
            "SELECT id FROM example WHERE image = ? AND class_id = ? ORDER BY id LIMIT 1",
            (image, known_class.id),
        ).fetchone()
        return None if found is None else example_by_id(self._connection, found[0])

    def _set_fine_name(
        self, new: NewExample, known: TeachResult, known_class: PendingClass, fine: str, image: str
    ) -> TeachResult:
        """Give a known example a fine class, where none was given before."""
        pending, example = self._pending, known.example
        fine_class = pending.classes.find_or_create(fine, known_class.id)
        event = self._relabel(new, example.id, (known_class, None), (known_class, fine_class.id))
        now = replace(example, fine=fine, fine_kind="given", fine_probability=None)
        self._held[image] = _Holder(now, known_class.id, fine_class.id)
        return replace(known, example=now, event=event, known_fine="taken")

    def _new_example(
        self, new: NewExample, label: str, fine: str | None, row: Rows, image: str | None
    ) -> TeachResult:
        pending, picture = self._pending, new.picture
        self._n_features = len(row)
        number = pending.first_id + len(pending.rows)
        event = pending.first_event + len(pending.events)
        coarse = pending.classes.find_or_create(label)
        fine_class = None if fine is None else pending.classes.find_or_create(fine, coarse.id)
        is_new = coarse.n_examples == 0
        for one in (coarse, fine_class):
            if one is not None:
                one.add(event, picture=image is not None)
        fine_id = None if fine_class is None else fine_class.id
        body = {"example": number, "class": coarse.id, "label": label, "fine": fine}
        pending.rows.append(row)
        self._add_event(event, "teach", new, body)
        pending.examples.append((number, event, row_sha256(row), image, coarse.id, fine_id))
        pending.moves.append((event, number, None, None, coarse.id, fine_id))
        if image is not None and picture is not None:
            pending.pictures.setdefault(image, picture)
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
            actor=new.request.actor,
        )
        result = TeachResult(example, event, False, is_new, coarse.n_examples)
        if image is not None:
            self._held[image] = _Holder(example, coarse.id, fine_id)
        return result
