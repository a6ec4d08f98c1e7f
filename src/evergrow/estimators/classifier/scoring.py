"""Answers from scores: what classifiers with a column of scores per class have in common."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.params import Integer, check_parameters
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

__all__ = ["Scores", "ScoringClassifier", "as_decision", "unchanged"]

Floats = npt.NDArray[np.float64]


class Scores(Protocol):
    """All that scores need, solved and ready to travel."""

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, scores of shape (n_rows, n_classes))."""


class ScoringClassifier(GrowingClassifier, metaclass=ABCMeta):
    """A classifier that answers with the class of the highest score."""

    @abstractmethod
    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, scores of shape (n_rows, n_classes))."""

    def _travelling_scores(self) -> Scores | None:
        """What gives the same scores elsewhere; None where that would have to bring too much."""
        return None

    def _finished(
        self,
        X: npt.NDArray[Any],
        finish: Callable[[Floats], npt.NDArray[Any]],
        scores: Scores | None = None,
    ) -> npt.NDArray[Any]:
        """What becomes of the scores of all rows, a block at a time.

        Many rows are answered part by part where the engine in use runs its tasks. ``scores`` are
        others than those that decide.
        """
        engine = current_engine()
        parts = [] if engine is None else row_parts(X)
        if engine is not None and len(parts) > 1:
            travelling = self._travelling_scores() if scores is None else scores
            if travelling is not None:
                values = (travelling, finish)
                return run_and_stack(engine, parts, answers_of_part, X, values, what="predicting")
        blocks = self._score_blocks(X) if scores is None else scores.blocks(X)
        return _filled(X.shape[0], blocks, finish)

    def _fit_scores(self, X: npt.NDArray[Any]) -> Floats:
        """How well each row fits each class, comparable between rows; shape (n_rows, n_classes)."""
        return np.concatenate([block for _, block in self._score_blocks(X)])

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Class probabilities."""

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Best class of each sample; of equals the one with the lowest column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes, of the type of ``classes_``.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict([[2], [7]])
        array([0, 1])
        """
        reader, X = self._checked_query(X)
        labels: npt.NDArray[Any] = reader.classes_[reader._finished(X, best_column)]
        return labels

    def predict_top_k(self, X: npt.ArrayLike, k: int = 5) -> npt.NDArray[Any]:
        """The ``k`` best classes of each sample, best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.
        k : int, default=5
            How many, at most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Of equally good classes the one with the lower column comes first; classes without
            examples come last.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"])
        >>> forest.predict_top_k([[9]], k=2)
        array([['b', 'a']], dtype='<U1')
        """
        reader, X = self._checked_query(X)
        check_parameters({"k": k}, {"k": [Integer(1, len(reader.classes_))]})
        best = reader._finished(X, partial(best_columns, k=int(k)))
        labels: npt.NDArray[Any] = reader.classes_[best]
        return labels

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Logarithm of the class probabilities; minus infinity where they are zero.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_log_proba([[9]])
        array([[-inf,   0.]])
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def as_decision(scores: Floats) -> Floats:
    """Scores in the shape that scikit-learn gives them: one column for two classes."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def best_column(scores: Floats) -> npt.NDArray[np.intp]:
    """The column of the highest score; of equals the lowest."""
    best: npt.NDArray[np.intp] = scores.argmax(axis=1)
    return best


def best_columns(scores: Floats, k: int) -> npt.NDArray[np.intp]:
    """The columns of the ``k`` highest scores, best first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def unchanged(scores: Floats) -> Floats:
    """The scores."""
    return scores


def answers_of_part(
    part: RowPart,
    matrix: npt.NDArray[Any] | None,
    scores: Scores,
    finish: Callable[[Floats], npt.NDArray[Any]],
) -> Arrays:
    """What becomes of the scores of some rows."""
    rows = part.read(matrix)
    return {"rows": _filled(len(rows), scores.blocks(rows), finish)}


def _filled(
    n_rows: int,
    blocks: Iterator[tuple[slice, Floats]],
    finish: Callable[[Floats], npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """What becomes of all blocks, in one array that is never there twice."""
    whole = np.empty(0)
    for rows, block in blocks:
        finished = finish(block)
        if not rows.start:
            whole = np.empty((n_rows, *finished.shape[1:]), dtype=finished.dtype)
        whole[rows] = finished
    return whole
