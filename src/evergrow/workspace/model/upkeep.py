"""The half of a workspace that answers and knows how well: its model, and what keeps it good."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from evergrow.workspace.check.integrity import MendableWorkspace
from evergrow.workspace.errors import NoSuchExampleError
from evergrow.workspace.events import Chosen, ForestLearnt, Guessed
from evergrow.workspace.model.assessment import Assessment, sign_of
from evergrow.workspace.model.projection import Model, Settings
from evergrow.workspace.model.review import Confirmations
from evergrow.workspace.model.snapshot import Snapshot
from evergrow.workspace.records import (
    Answer,
    Change,
    ClassEntry,
    Confused,
    Request,
    Review,
    Status,
)
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.layout import Layout, Manifest
from evergrow.workspace.store.queries import CountedClass

__all__ = ["ModelledWorkspace"]

_COMMAND_LINE = Request()
# Facts that an event of its own stands for, by its kind.
_RECORDED: dict[str, type[Chosen | ForestLearnt]] = {
    "choose": Chosen,
    "forest": ForestLearnt,
}


class ModelledWorkspace(MendableWorkspace):
    """What can be asked of a workspace's model, from any thread.

    Parameters
    ----------
    layout : Layout
        Where everything lies.
    store : Store
        The database, of the newest format.
    manifest : Manifest
        What the workspace is.
    """

    def __init__(self, layout: Layout, store: Store, manifest: Manifest) -> None:
        super().__init__(layout, store, manifest)
        self._model = Model(
            Settings(layout.models, manifest.seed, manifest.false_alarms, manifest.forest)
        )
        self._follower = self._model
        self._confirmations = Confirmations()
        # What takes seconds is done by one thread at a time, beside those that teach and ask.
        self._working = threading.Lock()

    @property
    def snapshot(self) -> Snapshot:
        """The model as it is now, which no later change touches."""
        return self._model.snapshot

    @property
    def assessment(self) -> Assessment | None:
        """The last assessment; None if there was none yet."""
        return self._model.assessment

    def predict(self, X: npt.ArrayLike, *, model: str = "rls", top: int = 5) -> list[Answer]:
        """Say of each embedding what it is, how surely, and whether it is anything known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings.
        model : {"rls", "forest"}, default="rls"
            What answers: least squares, or the forest beside it where there is one.
        top : int, default=5
            How many classes to list, best first.

        Returns
        -------
        answers : list of Answer
            One per embedding.
        """
        return self._model.snapshot.predict(X, model=model, top=top)

    def assess(self, *, force: bool = False) -> Assessment | None:
        """Find out how well the classes are known, and choose the model's numbers by it.

        Takes seconds with many examples; teaching and asking go on meanwhile.

        Parameters
        ----------
        force : bool, default=False
            Also if little came or went since the last time.

        Returns
        -------
        assessment : Assessment or None
            What was found out; None if it was not due or there is nothing to assess.
        """
        with self._working:
            found = self._model.assess(self._history, force=force)
            if found is not None:
                self.record("choose", found.to_event(), whole=found.to_json())
            return found

    def record(
        self,
        kind: str,
        body: Mapping[str, Any],
        *,
        whole: Mapping[str, Any] | None = None,
        actor: str = "model",
    ) -> int:
        """Write down what the model chose ("choose") or learnt beside ("forest").

        Of an assessment the event keeps its choices; the ``whole`` of it is kept until the next.
        """
        with self._writing:
            with self._store.transaction() as connection:
                seq = self._editor(connection, actor).record(kind, body, whole)
            self._tell(seq - 1, [_RECORDED[kind](seq, whole or body)])
            return seq

    def record_guesses(
        self, class_id: int, guesses: Sequence[tuple[int, int, float]], *, actor: str = "model"
    ) -> int:
        """Replace the guesses within a split class: example, fine class and probability of each."""
        with self._writing:
            with self._store.transaction() as connection:
                seq = self._editor(connection, actor).guess(class_id, guesses)
            self._tell(seq - 1, [Guessed(seq, class_id)])
            return seq

    def update_forest(self, *, force: bool = False) -> bool:
        """Let the forest learn what it lacks, if that is enough or forced; tell whether it did."""
        with self._working:
            n_changes = self._model.prepare_forest(self._history, force=force)
            if n_changes is not None:
                self.record("forest", {"n_changes": n_changes})
            return n_changes is not None

    def update_guesses(self) -> int:
        """Guess fine names anew in split classes that changed; how many classes that were."""
        with self._working:
            stale = self._model.stale_guesses(self._history)
            for class_id in stale:
                # No example may move between the guess and its writing.
                with self._writing:
                    self._guess(class_id)
            return len(stale)

    def maintain(self) -> None:
        """Do all that is due: assess, guess, let the forest learn, write a snapshot."""
        self.assess()
        self.update_guesses()
        self.update_forest()
        self.save_snapshot(force=False)

    def save_snapshot(self, *, force: bool = True) -> bool:
        """Write the model to disk, so that opening has less to replay; tell whether it was due.

        Parameters
        ----------
        force : bool, default=True
            Also if few events came since the last one. One of the newest event is never written
            again.

        Returns
        -------
        written : bool
            Whether a snapshot was written.
        """
        with telling_problems(self._layout.folder):
            return self._model.save(self._history, force=force)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads and that needs no workspace.

        It is a classifier of images where the workspace takes images, else one of embeddings. It
        answers as the workspace does, "unknown" included, and can go on learning on its own. Finer
        names of split classes are not part of it.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced.
        """
        made = self._model.export(self._history, self.embedder)
        with telling_problems(Path(path).parent):
            made.save(path)

    def split(self, label: str, *, request: Request = _COMMAND_LINE) -> Change:
        """Tell the fine classes within a class apart; examples without a fine name get a guess."""
        with self._writing:
            change = super().split(label, request=request)
            class_id = self.class_named(label).id
            if self._history.guessed_at(class_id) < change.event:
                self._guess(class_id)
            return change

    def review(self, limit: int = 100) -> list[Review]:
        """Examples that someone should look at.

        First guessed fine names, the least certain first; then labels that all other examples
        contradict, the most certain contradiction first. A label that was given again with
        :meth:`relabel` is settled and no longer listed.

        Parameters
        ----------
        limit : int, default=100
            Most examples to list.

        Returns
        -------
        reviews : list of Review
            Why each should be looked at, and what is suggested.
        """
        reviews = [
            Review(example, "guess", example.fine or "", example.fine_probability or 0.0)
            for example in self.unsure(limit)
        ]
        return reviews + self._doubts(limit - len(reviews))

    def confusion(self) -> list[Confused]:
        """How often examples of each class are taken for each class, by the last assessment."""
        assessment, names = self.assessment, self._live_names()
        if assessment is None:
            return []
        return [
            Confused(names[true], names[said], n)
            for true, said, n in assessment.confusion
            if true in names and said in names
        ]

    def status(self) -> Status:
        """The workspace at a glance."""
        assessment = self.assessment
        known = replace(
            super().status(),
            forest_lacks=self._model.forest_lacks,
            snapshot_event=self._model.snapshot_event,
        )
        if assessment is None:
            return known
        return replace(
            known,
            measured_false_alarms=assessment.measured_false_alarms,
            accuracy=assessment.accuracy,
            assessed_event=assessment.event,
        )

    def _class_entry(self, counted: CountedClass) -> ClassEntry:
        assessment = self.assessment
        found = None if assessment is None else assessment.recognised.get(counted.id)
        entry = super()._class_entry(counted)
        if found is None:
            return replace(entry, sign=sign_of(counted.n_examples, None))
        other = found.confused_with
        name = None if other is None else self.snapshot.names.get(other)
        return replace(
            entry,
            sign=sign_of(counted.n_examples, found.accuracy),
            accuracy=found.accuracy,
            confused_with=name,
            confused_share=None if name is None else found.n_confused / found.n,
        )

    def _guess(self, class_id: int) -> None:
        ids, fine_ids, probabilities = self._model.guesses(class_id, self._history)
        guesses = zip(ids.tolist(), fine_ids.tolist(), probabilities.tolist(), strict=True)
        self.record_guesses(class_id, list(guesses))

    def _doubts(self, limit: int) -> list[Review]:
        assessment, names = self.assessment, self._live_names()
        with self._store.reading() as connection:
            confirmed = self._confirmations.among(connection)
        reviews: list[Review] = []
        for doubt in () if assessment is None else assessment.doubts:
            if len(reviews) >= limit:
                break
            if doubt.suggestion not in names or (doubt.example_id, doubt.class_id) in confirmed:
                continue
            try:
                example = self.example(doubt.example_id)
            except NoSuchExampleError:
                continue
            # Someone may have corrected it since.
            if example.label == names.get(doubt.class_id):
                suggestion = names[doubt.suggestion]
                reviews.append(Review(example, "doubt", suggestion, doubt.probability))
        return reviews

    def _live_names(self) -> dict[int, str]:
        snapshot = self.snapshot
        return {class_id: snapshot.names[class_id] for class_id in snapshot.class_ids.tolist()}
