"""Predictions from scores: what all classifiers with one score per class share."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import scipy.special
from sklearn.metrics import accuracy_score

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.device import (
    Device,
    find_device,
    import_torch,
    is_tensor,
    to_host,
)
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.foreign_arrays import on_processor
from evergrow.foundation.params import Integer, check_parameters
from evergrow.storage.device_rows import DeviceRows
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

Floats = npt.NDArray[np.float64]

# Bytes of results that stay on a device while it computes more of them.
_HELD_BYTES = 256 << 20


class Scores(Protocol):
    """Everything needed to compute scores, as a picklable value."""

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""

    def on(self, device: Device) -> Any:
        """Return the same scores on a GPU, whose blocks are tensors."""


class ScoringClassifier(GrowingClassifier, metaclass=ABCMeta):
    """A classifier that predicts the class with the highest score."""

    @abstractmethod
    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""

    def _portable_scores(self) -> Scores | None:
        """Return the same scores for tasks and GPUs; None if they would be too large to send."""
        return None

    def _map_scores(
        self,
        X: npt.NDArray[Any],
        function: Callable[[Floats], npt.NDArray[Any]],
        scores: Scores | None = None,
    ) -> npt.NDArray[Any]:
        """Apply a function to the scores of all rows, a block at a time.

        With an engine in use, many rows are cut into parts and each part is a task. ``scores``
        replace those of the estimator. On a GPU the function gets tensors; the result lies where
        the rows lie.
        """
        device, engine = find_device(X), current_engine()
        parts = [] if engine is None else row_parts(X)
        portable = scores
        if portable is None and (device is not None or len(parts) > 1):
            portable = self._portable_scores()
        if device is not None and portable is not None:
            with device.report_full():
                blocks = portable.on(device).blocks(X)
                return cast("npt.NDArray[Any]", fill_rows(X, blocks, function))
        if engine is not None and len(parts) > 1 and portable is not None:
            values = (portable, function)
            return run_and_stack(engine, parts, predict_part, X, values, what="predicting")
        blocks = self._score_blocks(X) if scores is None else scores.blocks(X)
        return cast("npt.NDArray[Any]", fill_rows(X, blocks, function))

    def _comparable_scores(self, X: npt.NDArray[Any]) -> Floats:
        """Return scores that are comparable between rows, of shape (n_rows, n_classes)."""
        return np.concatenate([block for _, block in self._score_blocks(X)])

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Class probabilities."""

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes, of the type of ``classes_``. If classes have equal scores, the one that comes
            first in ``classes_`` is predicted.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict([[2], [7]])
        array([0, 1])
        """
        reader, X = self._checked_query(X)
        best = reader._map_scores(X, best_column)
        return cast("npt.NDArray[Any]", name_classes(reader.classes_, best))

    def predict_top_k(self, X: npt.ArrayLike, k: int = 5) -> npt.NDArray[Any]:
        """Predict the `k` best classes of each sample, best first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        k : int, default=5
            Number of classes to return, at most the number of known classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Classes, of the type of ``classes_``. Classes with equal scores are in the order of
            ``classes_``; classes without examples come last.

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
        return cast("npt.NDArray[Any]", name_classes(reader.classes_, best))

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict the logarithm of the class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``; minus infinity where the probability
            is zero.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_log_proba([[9]])
        array([[-inf,   0.]])
        """
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return cast("Floats", found.log() if is_tensor(found) else np.log(found))  # type: ignore[attr-defined]

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the accuracy on labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            The true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; None weights all equally.

        Returns
        -------
        accuracy : float
            Share of the samples that are predicted correctly, from 0 to 1.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[0], [5]], ["a", "b"])
        >>> means.score([[1], [2]], ["a", "b"])
        0.5
        """
        answers = to_host(self.predict(X))
        return float(accuracy_score(on_processor(y), answers, sample_weight=sample_weight))


def as_decision(scores: Floats) -> Floats:
    """Scores in the shape that scikit-learn gives them: one column for two classes."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def best_column(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the column of the highest score; of equal scores the lowest column."""
    return cast("npt.NDArray[np.intp]", scores.argmax(axis=1))


def best_columns(scores: Floats, k: int) -> npt.NDArray[np.intp]:
    """Return the columns of the ``k`` highest scores, best first."""
    tensor: Any = scores
    if is_tensor(tensor):
        order = tensor.argsort(dim=1, descending=True, stable=True)
        return cast("npt.NDArray[np.intp]", order[:, :k])
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def name_classes(classes: npt.NDArray[Any], columns: Any) -> Any:
    """Return the classes of columns: on a device if the columns are there and classes are numbers.

    >>> name_classes(np.array(["a", "b"]), np.array([1, 0])).tolist()
    ['b', 'a']
    """
    if is_tensor(columns) and classes.dtype.kind in "biuf":
        # torch has no unsigned integers of more than 8 bits.
        known = classes.astype(np.int64) if classes.dtype.kind == "u" else classes
        return Device(str(columns.device)).tensor(known)[columns]
    return np.asarray(classes[to_host(columns)])


def softmax(scores: Floats, temperature: float = 1.0) -> Floats:
    """Return the softmax of scores divided by a temperature, along the classes."""
    scaled: Any = scores / temperature
    found = scaled.softmax(1) if is_tensor(scores) else scipy.special.softmax(scaled, axis=1)
    return cast("Floats", found)


def log_softmax(scores: Floats) -> Floats:
    """Return the logarithm of the softmax of scores, along the classes."""
    tensor: Any = scores
    found = tensor.log_softmax(1) if is_tensor(scores) else scipy.special.log_softmax(scores, 1)
    return cast("Floats", found)


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
    return {"rows": fill_rows(rows, scores.blocks(rows), function)}


def fill_rows(
    X: npt.NDArray[Any],
    blocks: Iterator[tuple[slice, Any]],
    function: Callable[[Any], Any] = identity,
) -> Any:
    """Apply a function to all blocks; the results of the rows of X fill one array.

    It lies where X lies, wherever the blocks were computed.
    """
    stays = isinstance(X, DeviceRows)
    held: list[tuple[slice, Any]] = []
    whole: npt.NDArray[Any] | None = None
    for rows, block in blocks:
        held.append((rows, function(block)))
        # A device computes the next blocks until there is much to copy from it.
        is_much = sum(found.nbytes for _, found in held) > _HELD_BYTES
        if not stays and (is_much or not is_tensor(held[-1][1])):
            whole, held = _copy(held, whole, X.shape[0]), []
    if not stays:
        return _copy(held, whole, X.shape[0])
    device = Device(str(cast(Any, X).tensor.device))
    return import_torch().cat([device.tensor(found) for _, found in held])


def _copy(
    held: list[tuple[slice, Any]], whole: npt.NDArray[Any] | None, n_rows: int
) -> npt.NDArray[Any]:
    """Copy results into an array on the processor, which is made with the first of them."""
    if len(held) > 1:
        rows = slice(held[0][0].start, held[-1][0].stop)
        held = [(rows, import_torch().cat([found for _, found in held]))]
    for rows, found in held:
        result = to_host(found)
        if whole is None and len(result) == n_rows:
            return result
        if whole is None:
            whole = np.empty((n_rows, *result.shape[1:]), dtype=result.dtype)
        whole[rows] = result
    return np.empty(0) if whole is None else whole
