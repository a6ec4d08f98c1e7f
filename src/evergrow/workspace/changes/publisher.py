"""Publishes committed events to the projection, and rebuilds it when that fails."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from evergrow.workspace.events import DomainEvent, Projection
from evergrow.workspace.store.event_log import newest_event_number
from evergrow.workspace.store.store import Store

_log = logging.getLogger("evergrow.workspace")


class EventPublisher:
    """Keeps a projection up to date with the event log.

    Parameters
    ----------
    store : Store
        Holds the event log.
    projection : Projection
        Is rebuilt by :meth:`rebuild` before the first change.
    """

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
