"""Predictions from scores: what all classifiers with one score per class share."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.params import Integer, check_parameters
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

Floats = npt.NDArray[np.float64]


class Scores(Protocol):
    """Everything needed to compute scores, as a picklable value."""

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""


class ScoringClassifier(GrowingClassifier, metaclass=ABCMeta):
    """A classifier that predicts the class with the highest score."""

    @abstractmethod
    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""

    def _portable_scores(self) -> Scores | None:
        """Return the same scores for use in tasks; None if they would be too large to send."""
        return None

    def _map_scores(
        self,
        X: npt.NDArray[Any],
        function: Callable[[Floats], npt.NDArray[Any]],
        scores: Scores | None = None,
    ) -> npt.NDArray[Any]:
        """Apply a function to the scores of all rows, a block at a time.

        With an engine in use, many rows are cut into parts and each part is a task. ``scores``
        replace those of the estimator.
        """
        engine = current_engine()
        parts = [] if engine is None else row_parts(X)
        if engine is not None and len(parts) > 1:
            portable = self._portable_scores() if scores is None else scores
            if portable is not None:
                values = (portable, function)
                return run_and_stack(engine, parts, predict_part, X, values, what="predicting")
        blocks = self._score_blocks(X) if scores is None else scores.blocks(X)
        return _fill(X.shape[0], blocks, function)

    def _comparable_scores(self, X: npt.NDArray[Any]) -> Floats:
        """Return scores that are comparable between rows, of shape (n_rows, n_classes)."""
        return np.concatenate([block for _, block in self._score_blocks(X)])

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Class probabilities."""

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict the class of each sample; of equal scores the lowest column wins.

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
        best = reader._map_scores(X, best_column)
        return np.asarray(reader.classes_[best])

    def predict_top_k(self, X: npt.ArrayLike, k: int = 5) -> npt.NDArray[Any]:
        """Predict the ``k`` best classes of each sample, best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.
        k : int, default=5
            Number of classes to return, at most all of them.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Of classes with equal scores the one with the lower column comes first; classes
            without examples come last.

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
        best = reader._map_scores(X, partial(best_columns, k=int(k)))
        return np.asarray(reader.classes_[best])

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict the logarithm of the class probabilities, minus infinity where they are zero.

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
    """Return the column of the highest score; of equal scores the lowest column."""
    return cast("npt.NDArray[np.intp]", scores.argmax(axis=1))


def best_columns(scores: Floats, k: int) -> npt.NDArray[np.intp]:
    """Return the columns of the ``k`` highest scores, best first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def identity(scores: Floats) -> Floats:
    """Return the scores as they are."""
    return scores


def predict_part(
    part: RowPart,
    matrix: npt.NDArray[Any] | None,
    scores: Scores,
    function: Callable[[Floats], npt.NDArray[Any]],
) -> Arrays:
    """Apply a function to the scores of some rows."""
    rows = part.read(matrix)
    return {"rows": _fill(len(rows), scores.blocks(rows), function)}


def _fill(
    n_rows: int,
    blocks: Iterator[tuple[slice, Floats]],
    function: Callable[[Floats], npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """Apply a function to all blocks; the results fill one array without a second copy."""
    whole = np.empty(0)
    for rows, block in blocks:
        result = function(block)
        if not rows.start:
            whole = np.empty((n_rows, *result.shape[1:]), dtype=result.dtype)
        whole[rows] = result
    return whole
