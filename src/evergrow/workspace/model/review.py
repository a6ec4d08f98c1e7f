"""Examples to review, confirmed labels, and the confusion matrix."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import suppress

import numpy as np

from evergrow.estimators.curation.next_to_label import next_to_label
from evergrow.workspace.model.projection import ModelProjection
from evergrow.workspace.records import Confused, Example, NoSuchExampleError, Review
from evergrow.workspace.store.queries import example_by_id, least_certain_examples
from evergrow.workspace.store.store import Store

# Least certain guesses to choose from, for each one to list.
_CONSIDERED = 4

_SINCE = (
    "SELECT seq, kind, body, undoes FROM event WHERE seq > ? AND kind IN ('confirm', 'undo')"
    " ORDER BY seq"
)


class Confirmations:
    """Labels that were confirmed and are not listed for review again; thread-safe.

    Read from the event log; each call reads only the events since the last one.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seen = 0
        # Class and examples of each confirmation in force, by its event.
        self._in_force: dict[int, tuple[int, tuple[int, ...]]] = {}

    def pairs(self, connection: sqlite3.Connection) -> frozenset[tuple[int, int]]:
        """Pairs of an example and its confirmed class."""
        with self._guard:
            for seq, kind, text, undoes in connection.execute(_SINCE, (self._seen,)).fetchall():
                self._seen = seq
                if kind == "undo":
                    self._in_force.pop(undoes, None)
                else:
                    body = json.loads(text)
                    self._in_force[seq] = (body["class"], tuple(body["examples"]))
            return frozenset(
                (example, class_id)
                for class_id, examples in self._in_force.values()
                for example in examples
            )


class Reviewer:
    """Lists what a person should look at: guesses of the store, doubts of the last assessment."""

    def __init__(self, store: Store, model: ModelProjection) -> None:
        self._store = store
        self._model = model
        self._confirmations = Confirmations()

    def review(self, limit: int) -> list[Review]:
        """Guessed fine classes, then labels that the model contradicts."""
        with self._store.database.read_transaction() as connection:
            guessed = self._guesses(connection, limit)
            reviews = [
                Review(one, "guess", one.fine or "", one.fine_probability or 0.0) for one in guessed
            ]
            return reviews + self._doubts(connection, limit - len(reviews))

    def confusion(self) -> list[Confused]:
        """The confusion matrix of the last assessment, by current names."""
        assessment, names = self._model.assessment, self._current_names()
        if assessment is None:
            return []
        return [
            Confused(names[true], names[predicted], n)
            for true, predicted, n in assessment.confusion
            if true in names and predicted in names
        ]

    def confused_examples(self, label: str, answer: str | None, limit: int) -> list[Example]:
        """Examples of a class that the last assessment mistook for another, or for unknown."""
        assessment, names = self._model.assessment, self._current_names()
        found: list[Example] = []
        with self._store.database.read_transaction() as connection:
            for one in () if assessment is None else assessment.mistaken:
                predicted = None if one.predicted is None else names.get(one.predicted, "")
                if names.get(one.class_id) != label or predicted != answer:
                    continue
                # It may have been removed or corrected since.
                with suppress(NoSuchExampleError):
                    example = example_by_id(connection, one.example_id)
                    found += [example] if example.label == label else []
                if len(found) == limit:
                    break
        return found

    def _guesses(self, connection: sqlite3.Connection, limit: int) -> list[Example]:
        """Uncertain guesses that differ from each other, the least certain first."""
        found = least_certain_examples(connection, _CONSIDERED * limit)
        if len(found) <= limit:
            return found
        rows = self._store.log.rows(np.array([one.id for one in found], dtype=np.int64))
        # The margin of these two is the probability of the guess.
        halves = np.array([one.fine_probability or 0.0 for one in found]) / 2
        pairs = np.column_stack([0.5 + halves, 0.5 - halves])
        chosen = next_to_label(rows, n=limit, probabilities=pairs)
        return [found[i] for i in np.sort(chosen).tolist()]

    def _doubts(self, connection: sqlite3.Connection, limit: int) -> list[Review]:
        assessment, names = self._model.assessment, self._current_names()
        confirmed = self._confirmations.pairs(connection)
        reviews: list[Review] = []
        for doubt in () if assessment is None else assessment.doubts:
            if len(reviews) >= limit:
                break
            if doubt.suggestion not in names or (doubt.example_id, doubt.class_id) in confirmed:
                continue
            try:
                example = example_by_id(connection, doubt.example_id)
            except NoSuchExampleError:
                continue
            # It may have been corrected since.
            if example.label == names.get(doubt.class_id):
                suggestion = names[doubt.suggestion]
                reviews.append(Review(example, "doubt", suggestion, doubt.probability))
        return reviews

    def _current_names(self) -> dict[int, str]:
        snapshot = self._model.snapshot
        return {class_id: snapshot.names[class_id] for class_id in snapshot.class_ids.tolist()}
