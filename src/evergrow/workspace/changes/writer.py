"""Commits changes one at a time and publishes their events."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.examples import finish_erasure, forget, forget_lost
from evergrow.workspace.changes.idempotency import (
    find_answer,
    key_reused,
    request_digest,
    store_answer,
)
from evergrow.workspace.changes.teach import PendingTeach, TeachPlanner
from evergrow.workspace.changes.transaction import ChangeTransaction, next_id
from evergrow.workspace.events import (
    AssessmentAdopted,
    DomainEvent,
    FineNamesGuessed,
    ForestTrained,
    Projection,
)
from evergrow.workspace.records import Change, NewExample, Request, TeachResult, WorkspaceFullError
from evergrow.workspace.store.event_log import Clock, newest_event_number
from evergrow.workspace.store.layout import Manifest
from evergrow.workspace.store.queries import event_by_number
from evergrow.workspace.store.store import Store

# Domain events that are recorded by the model itself, by the kind of their log entry.
_RECORDED: dict[str, type[AssessmentAdopted | ForestTrained]] = {
    "choose": AssessmentAdopted,
    "forest": ForestTrained,
}


class ChangeWriter:
    """Makes all changes of a workspace, and publishes their domain events to the projection.

    Callers in several threads wait for each other: ``lock`` is held during every change.
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
            pending = self._commit(examples)
            before = pending.first_event - 1
            events: Iterable[DomainEvent] = pending.domain_events()
            if pending.relabels:
                created = pending.classes.created_events(pending.last_event)
                replayed = store.log.replay_on(store.database.writer, before, erased=True)
                events = itertools.chain(created, replayed)
            self.publisher.publish(before, events)
            return pending.results

    def change(self, request: Request, make: Callable[..., Change], *arguments: Any) -> Change:
        """Make one change in a transaction, or answer a repeated request again.

        ``make`` gets the transaction and the arguments. A request with the same key must have the
        same arguments; its stored digest contains the name of the function too.
        """
        database = self._store.database
        parts = itertools.chain.from_iterable(
            one if isinstance(one, tuple) else (one,) for one in arguments
        )
        digest = request_digest(request, make.__name__, *parts)
        with self.lock:
            answer = find_answer(database.writer, request, digest)
            if isinstance(answer, Change):
                return answer
            if answer is not None:
                raise key_reused(request)
            with database.transaction() as connection:
                before = newest_event_number(connection)
                transaction = self._transaction(connection, request.actor, request.action)
                change = make(transaction, *arguments)
                store_answer(connection, request, digest, change)
            replayed = self._store.log.replay_on(database.writer, before, erased=True)
            self.publisher.publish(before, itertools.chain(transaction.class_events, replayed))
            return change

    def erase(self, request: Request, label: str, free_space: Callable[[], None]) -> Change:
        """Forget a class for good; ``free_space`` is called if the disk is full."""
        with self.lock:
            try:
                change = self.change(request, forget, label, True)
            except WorkspaceFullError:
                free_space()
                change = self.change(request, forget, label, True)
            # The class is forgotten. If the disk is full, the next opening finishes the erasure.
            with contextlib.suppress(WorkspaceFullError):
                finish_erasure(self._store)
            return change

    def forget_lost(self, numbers: Sequence[int]) -> None:
        """Erase examples whose embeddings are lost; the projection must be rebuilt afterwards."""
        with self.lock, self._store.database.transaction() as connection:
            forget_lost(self._transaction(connection, "check"), numbers)

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
                seq = transaction.add_event(kind, body)
                if assessment is not None:
                    connection.execute("DELETE FROM assessment")
                    connection.execute(
                        "INSERT INTO assessment (event, body) VALUES (?, ?)",
                        (seq, json.dumps(assessment)),
                    )
            self.publisher.publish(seq - 1, [_RECORDED[kind](seq, assessment or body)])
            return seq

    def record_guesses(
        self, class_id: int, guesses: Sequence[tuple[int, int, float]], *, actor: str = "model"
    ) -> int:
        """Replace the guesses within a split class: example, fine class and probability of each."""
        with self.lock:
            with self._store.database.transaction() as connection:
                transaction = self._transaction(connection, actor)
                seq = transaction.record_guesses(class_id, guesses)
            self.publisher.publish(seq - 1, [FineNamesGuessed(seq, class_id)])
            return seq

    def _transaction(
        self, connection: sqlite3.Connection, actor: str, action: str | None = None
    ) -> ChangeTransaction:
        most = self._store.manifest.max_classes
        return ChangeTransaction(connection, self.clock(), actor, most, action)

    def _commit(self, examples: Sequence[NewExample]) -> PendingTeach:
        """Plan and write examples in one transaction, the files before the commit."""
        store, manifest = self._store, self._store.manifest
        pending: PendingTeach | None = None
        written: list[str] = []
        try:
            with store.database.transaction() as connection:
                pending = TeachPlanner(
                    connection,
                    at=self.clock(),
                    n_features=store.n_features,
                    max_classes=manifest.max_classes,
                ).plan(examples)
                self._write_files(pending, written)
                pending.write(connection)
        except BaseException:
            if pending is not None:
                self._discard(pending, written, manifest)
            raise
        return pending

    def _write_files(self, pending: PendingTeach, written: list[str]) -> None:
        """Write images and embeddings; ``written`` lists the images that are new."""
        store = self._store
        for sha256, picture in pending.pictures.items():
            if store.images.write(sha256, picture.content):
                written.append(sha256)
                if picture.thumbnail is not None:
                    store.images.write_thumbnail(sha256, picture.thumbnail)
        if pending.rows:
            vectors = store.vectors_for(len(pending.rows[0]))
            vectors.write(pending.first_id - 1, pending.matrix())

    def _discard(self, pending: PendingTeach, written: Sequence[str], manifest: Manifest) -> None:
        """Free the disk space of examples that were not taught; leftovers would do no harm.

        It is done within a transaction of its own, which only the writer gets: the rows of another
        process are never touched.
        """
        store = self._store
        with (
            contextlib.suppress(OSError, WorkspaceError),
            store.database.transaction() as connection,
        ):
            # If the interrupt came after the commit, the examples are taught.
            if next_id(connection, "event") != pending.first_event:
                return
            vectors = None
            if pending.rows and store.n_features is not None:
                vectors = store.vectors_for(store.n_features)
            # The first example fixes the length of embeddings only if it is taught.
            store.release_n_features(manifest)
            for sha256 in written:
                # A restored file of a known example stays.
                if not connection.execute(
                    "SELECT 1 FROM picture WHERE sha256 = ?", (sha256,)
                ).fetchone():
                    store.images.delete(sha256)
            if vectors is not None:
                vectors.discard(pending.first_id - 1, len(pending.rows))


_log = logging.getLogger("evergrow.workspace")


class EventPublisher:
    """Keeps a projection up to date with the event log; :meth:`rebuild` comes first."""

    def __init__(self, store: Store, projection: Projection) -> None:
        self._store = store
        self.projection = projection
        # The newest event that the projection has applied; None if it must be rebuilt.
        self._applied: int | None = store.log.version

    def publish(self, before: int, events: Iterable[DomainEvent]) -> None:
        """Apply the events that were committed after the event ``before``.

        A projection that failed, or missed events because a thread was interrupted, is rebuilt. The
        change is on disk and must be acknowledged whatever goes wrong here. If even the rebuild
        fails, the projection keeps its old state and is rebuilt with the next change.
        """
        applied, self._applied = self._applied, None
        try:
            new = list(events)
            if not new:
                # Some changes have no domain events, such as the confirmation of a label.
                newest = newest_event_number(self._store.database.writer)
                self._applied = newest if applied == before else applied
            elif applied == before:
                self.projection.apply(new, self._store.log)
                self._applied = new[-1].seq
        except Exception:  # noqa: BLE001
            _log.exception("the model could not apply a change and is rebuilt")
        if self._applied is None:
            try:
                self.rebuild()
            except Exception:  # noqa: BLE001
                _log.exception("the model could not be rebuilt; the next change tries again")

    def rebuild(self) -> None:
        """Rebuild the projection from the log."""
        self._applied = erased = None
        # If another process erases examples meanwhile, their rows were read as zeros: start again.
        while erased != self._store.log.last_erasure:
            with self._store.log.pinned() as log:
                erased = log.last_erasure
                self.projection.rebuild(log)
                self._applied = log.version
