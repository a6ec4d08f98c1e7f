"""Slow work on the model while the workspace is in use: assessment, forest, guesses, snapshots."""

from __future__ import annotations

import threading

from evergrow.workspace.changes.writer import Writer
from evergrow.workspace.model.assessment import Assessment
from evergrow.workspace.model.projection import ModelProjection
from evergrow.workspace.store.disk_errors import translate_disk_errors
from evergrow.workspace.store.store import Store


class ModelUpkeep:
    """Keeps the model of a workspace good; teaching and predicting go on meanwhile.

    Parameters
    ----------
    store : Store
        Holds the event log.
    writer : Writer
        Records the results as events.
    model : ModelProjection
        The model.
    """

    def __init__(self, store: Store, writer: Writer, model: ModelProjection) -> None:
        self._store = store
        self._writer = writer
        self._model = model
        # One slow task at a time.
        self._lock = threading.Lock()

    def assess(self, *, force: bool = False) -> Assessment | None:
        """Assess the model and adopt its hyperparameters; None if that is not due."""
        with self._lock:
            found = self._model.assess(self._store.log, force=force)
            if found is not None:
                self._writer.record("choose", found.to_event(), found.to_json())
            return found

    def update_forest(self, *, force: bool = False) -> bool:
        """Train the forest on pending changes, if due or forced; return whether it was."""
        with self._lock:
            n_changes = self._model.prepare_forest(self._store.log, force=force)
            if n_changes is not None:
                self._writer.record("forest", {"n_changes": n_changes})
            return n_changes is not None

    def update_guesses(self) -> int:
        """Guess fine names again in split classes that changed; return how many classes."""
        with self._lock:
            stale = self._model.stale_guesses(self._store.log)
            for class_id in stale:
                self.guess(class_id)
            return len(stale)

    def guess(self, class_id: int) -> None:
        """Guess the fine names within a split class."""
        # No example may move between the guess and its record.
        with self._writer.lock:
            ids, fine_ids, probabilities = self._model.guesses(class_id, self._store.log)
            guesses = zip(ids.tolist(), fine_ids.tolist(), probabilities.tolist(), strict=True)
            self._writer.record_guesses(class_id, list(guesses))

    def guess_new_split(self, class_id: int, split_event: int) -> None:
        """Guess the fine names within a class that was just split, unless that was done."""
        with self._writer.lock:
            if self._store.log.guessed_at(class_id) < split_event:
                self.guess(class_id)

    def save_snapshot(self, *, force: bool = True) -> bool:
        """Write a snapshot of the model if due or forced; return whether it was written."""
        with translate_disk_errors(self._store.layout.folder):
            return self._model.save(self._store.log, force=force)

    def maintain(self) -> None:
        """Do everything that is due."""
        self.assess()
        self.update_guesses()
        self.update_forest()
        self.save_snapshot(force=False)
