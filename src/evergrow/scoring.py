"""Answers from scores: what classifiers with a column of scores per class have in common."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.learner import GrowingClassifier
from evergrow.params import Integer, check_parameters

__all__ = ["ScoringClassifier", "as_decision"]

Floats = npt.NDArray[np.float64]


class ScoringClassifier(GrowingClassifier, metaclass=ABCMeta):
    """A classifier that answers with the class of the highest score."""

    @abstractmethod
    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, scores of shape (n_rows, n_classes))."""

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
        best = [block.argmax(axis=1) for _, block in reader._score_blocks(X)]
        labels: npt.NDArray[Any] = reader.classes_[np.concatenate(best)]
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
        blocks = reader._score_blocks(X)
        best = [np.argsort(-block, axis=1, kind="stable")[:, :k] for _, block in blocks]
        labels: npt.NDArray[Any] = reader.classes_[np.concatenate(best)]
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
