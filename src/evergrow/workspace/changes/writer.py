"""Commits changes one at a time and publishes their events."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evergrow.workspace.changes import forget as forgetting
from evergrow.workspace.changes.idempotency import (
    find_answer,
    key_reused,
    request_digest,
    store_answer,
)
from evergrow.workspace.changes.publisher import EventPublisher
from evergrow.workspace.changes.teach import PendingTeach, TeachPlanner, next_id
from evergrow.workspace.changes.transaction import (
    ChangeTransaction,
    record_guesses,
    record_model_event,
)
from evergrow.workspace.errors import WorkspaceFullError
from evergrow.workspace.events import (
    AssessmentAdopted,
    DomainEvent,
    FineNamesGuessed,
    ForestTrained,
    Projection,
)
from evergrow.workspace.records import Change, NewExample, Request, TeachResult
from evergrow.workspace.store.clock import Clock
from evergrow.workspace.store.disk_errors import translate_disk_errors
from evergrow.workspace.store.event_log import newest_event_number
from evergrow.workspace.store.queries import event_by_number
from evergrow.workspace.store.store import Store
from evergrow.workspace.store.vectors import VectorStore

# Domain events that are recorded by the model itself, by the kind of their log entry.
_RECORDED: dict[str, type[AssessmentAdopted | ForestTrained]] = {
    "choose": AssessmentAdopted,
    "forest": ForestTrained,
}


class Writer:
    """Makes all changes of a workspace; callers in several threads wait for each other.

    Parameters
    ----------
    store : Store
        What is changed.
    projection : Projection
        Gets the domain events of every change.

    Attributes
    ----------
    lock : threading.RLock
        Held during every change.
    publisher : EventPublisher
        Keeps the projection up to date.
    """

    def __init__(self, store: Store, projection: Projection) -> None:
        self._store = store
        self.lock = threading.RLock()
        self.publisher = EventPublisher(store, projection)
        with store.database.read_transaction() as connection:
            newest = event_by_number(connection, newest_event_number(connection))
        self.clock = Clock("" if newest is None else newest.at)

    def teach(self, examples: Sequence[NewExample]) -> list[TeachResult]:
        """Teach examples, all or none; they are on disk when this returns."""
        store = self._store
        with self.lock:
            planner = TeachPlanner(
                store.database.writer,
                at=self.clock(),
                n_features=store.n_features,
                max_classes=store.manifest.max_classes,
            )
            with translate_disk_errors(store.layout.folder):
                pending = planner.plan(examples)
                self._write(pending)
            before = pending.first_event - 1
            events: Iterable[DomainEvent] = pending.domain_events()
            if pending.relabels:
                created = pending.classes.created_events(pending.last_event)
                replayed = store.log.replay_on(store.database.writer, before, erased=True)
                events = itertools.chain(created, replayed)
            self.publisher.publish(before, events)
            return pending.results

    def change(
        self,
        request: Request,
        parts: tuple[object, ...],
        make: Callable[[ChangeTransaction], Change],
    ) -> Change:
        """Make one change in a transaction, or answer a repeated request again.

        ``parts`` identify the change: a request with the same key must have the same parts.
        """
        database = self._store.database
        digest = request_digest(request, *parts)
        with self.lock:
            answer = find_answer(database.writer, request, digest)
            if isinstance(answer, Change):
                return answer
            if answer is not None:
                raise key_reused(request)
            with database.transaction() as connection:
                before = newest_event_number(connection)
                transaction = self._transaction(connection, request.actor)
                change = make(transaction)
                store_answer(connection, request, digest, change)
            replayed = self._store.log.replay_on(database.writer, before, erased=True)
            self.publisher.publish(before, itertools.chain(transaction.named, replayed))
            return change

    def erase(self, request: Request, label: str, free_space: Callable[[], None]) -> Change:
        """Forget a class for good; ``free_space`` is called if the disk is full."""

        def make(transaction: ChangeTransaction) -> Change:
            return forgetting.forget(transaction, label, erase=True)

        parts = ("forget", label, True)
        with self.lock:
            try:
                change = self.change(request, parts, make)
            except WorkspaceFullError:
                free_space()
                change = self.change(request, parts, make)
            # The class is forgotten. If the disk is full, the next opening finishes the erasure.
            with contextlib.suppress(WorkspaceFullError):
                forgetting.finish_erasure(self._store)
            return change

    def forget_lost(self, numbers: Sequence[int]) -> None:
        """Erase examples whose embeddings are lost; the projection must be rebuilt afterwards."""
        with self.lock, self._store.database.transaction() as connection:
            forgetting.forget_lost(self._transaction(connection, "check"), numbers)

    def record(
        self,
        kind: str,
        body: Mapping[str, Any],
        assessment: Mapping[str, Any] | None = None,
        *,
        actor: str = "model",
    ) -> int:
        """Record that an assessment was adopted ("choose") or the forest was trained ("forest").

        The event holds the ``body``; the newest full assessment is stored apart from it.
        """
        with self.lock:
            with self._store.database.transaction() as connection:
                transaction = self._transaction(connection, actor)
                seq = record_model_event(transaction, kind, body, assessment)
            self.publisher.publish(seq - 1, [_RECORDED[kind](seq, assessment or body)])
            return seq

    def record_guesses(
        self, class_id: int, guesses: Sequence[tuple[int, int, float]], *, actor: str = "model"
    ) -> int:
        """Replace the guesses within a split class: example, fine class and probability of each."""
        with self.lock:
            with self._store.database.transaction() as connection:
                seq = record_guesses(self._transaction(connection, actor), class_id, guesses)
            self.publisher.publish(seq - 1, [FineNamesGuessed(seq, class_id)])
            return seq

    def _transaction(self, connection: sqlite3.Connection, actor: str) -> ChangeTransaction:
        return ChangeTransaction(connection, self.clock(), actor, self._store.manifest.max_classes)

    def _write(self, pending: PendingTeach) -> None:
        """Write the files first, then the transaction that makes them count."""
        store, manifest = self._store, self._store.manifest
        written: list[str] = []
        vectors: VectorStore | None = None
        try:
            for sha256, picture in pending.pictures.items():
                if store.images.write(sha256, picture.content):
                    written.append(sha256)
                    if picture.thumbnail is not None:
                        store.images.write_thumbnail(sha256, picture.thumbnail)
            if pending.rows:
                vectors = store.vectors_for(len(pending.rows[0]))
                vectors.write(pending.first_id - 1, pending.matrix())
            if pending.events or pending.answers:
                with store.database.transaction() as connection:
                    pending.write(connection)
        except BaseException:
            # If the interrupt came after the commit, the examples are taught.
            if next_id(store.database.writer, "event") == pending.first_event:
                self._discard(pending, written, vectors)
                # The first example fixes the length of embeddings only if it is taught.
                store.release_n_features(manifest)
            raise

    def _discard(
        self, pending: PendingTeach, written: Sequence[str], vectors: VectorStore | None
    ) -> None:
        """Free the disk space of examples that were not taught; leftovers would do no harm."""
        store = self._store
        with contextlib.suppress(OSError):
            for sha256 in written:
                # A restored file of a known example stays.
                if not store.database.writer.execute(
                    "SELECT 1 FROM picture WHERE sha256 = ?", (sha256,)
                ).fetchone():
                    store.images.delete(sha256)
            if vectors is not None:
                vectors.discard(pending.first_id - 1, len(pending.rows))
