"""Labels that someone looked at and kept, so that nobody is asked about them again."""

from __future__ import annotations

import json
import sqlite3
import threading

__all__ = ["Confirmations"]

_SINCE = (
    "SELECT seq, kind, body, undoes FROM event WHERE seq > ? AND kind IN ('confirm', 'undo')"
    " ORDER BY seq"
)


class Confirmations:
    """What was confirmed, read from the events and kept up with them; used from any thread.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from evergrow.workspace import Lesson, Workspace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Workspace.create(f"{folder}/things", features=None) as workspace:
    ...         taught = workspace.teach([Lesson(np.ones(3), "cup")])
    ...         print(workspace.relabel(1, label="cup").kind)
    confirm
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seen = 0
        # Class and examples of each confirmation that stands, by its event.
        self._standing: dict[int, tuple[int, tuple[int, ...]]] = {}

    def among(self, connection: sqlite3.Connection) -> frozenset[tuple[int, int]]:
        """Pairs of an example and the class that it was said to be of."""
        with self._guard:
            # Only what is new is read: there may be very many events.
            for seq, kind, text, undoes in connection.execute(_SINCE, (self._seen,)).fetchall():
                self._seen = seq
                if kind == "undo":
                    self._standing.pop(undoes, None)
                else:
                    body = json.loads(text)
                    self._standing[seq] = (body["class"], tuple(body["examples"]))
            return frozenset(
                (example, class_id)
                for class_id, examples in self._standing.values()
                for example in examples
            )
