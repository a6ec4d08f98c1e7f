"""Measures: scores of how well an example fits the nearest class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.predictor import ScoringClassifier
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
# Squares of shorter lengths lose digits or underflow.
_SHORTEST = 1e-140
# The nearest class of each row, and its score there.
Best = tuple[npt.NDArray[np.int64], Floats]


@dataclass(frozen=True)
class Measure:
    """One way to score examples.

    Attributes
    ----------
    best : callable
        ``best(estimator, moments, X)``: the nearest class of each row and its score there.
    best_held_out : callable
        ``best_held_out(estimator, moments, batch)``: the same for held-out examples, as if they
        had never been learnt, and a mask of those that can be scored.
    learns_held_out : bool
        Whether the estimator learns held-out examples.
    """

    best: Callable[[Any, Moments, npt.NDArray[Any]], Best]
    best_held_out: Callable[[Any, Moments, Batch], tuple[Best, npt.NDArray[np.bool_]]]
    learns_held_out: bool


@dataclass(frozen=True, eq=False)
class NearestMeans:
    """Class means as directions.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        The origin of the directions.
    directions : ndarray of shape (n_classes, n_features)
        Unit vectors towards the class means.
    known : ndarray of shape (n_classes,)
        Which classes have examples; the others are never the nearest.
    """

    origin: Floats
    directions: Floats
    known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, moments: Moments) -> NearestMeans:
        """Return the class means of all examples."""
        origin = _origin(moments)
        return cls(origin, _directions(moments.means - origin), moments.class_examples > 0)

    def cosines(self, X: npt.NDArray[Any]) -> Floats:
        """Return the cosine of each row to each class mean; minus infinity without examples."""
        rows = _directions(X.astype(np.float64) - self.origin)
        cosines = rows @ self.directions.T
        if not self.known.all():
            cosines[:, ~self.known] = -np.inf
        return cosines

    def best(self, X: npt.NDArray[Any]) -> Best:
        """Return the nearest class of each row, and its cosine."""
        columns = np.zeros(len(X), dtype=np.int64)
        scores = np.zeros(len(X))
        for rows, block in float_blocks(X):
            cosines = self.cosines(block)
            columns[rows] = cosines.argmax(axis=1)
            scores[rows] = cosines.max(axis=1)
        return columns, scores


def _best_cosine(_: Any, moments: Moments, X: npt.NDArray[Any]) -> Best:
    return NearestMeans.of(moments).best(X)


def _best_cosine_held_out(
    _: Any, moments: Moments, batch: Batch
) -> tuple[Best, npt.NDArray[np.bool_]]:
    """Return cosines to class means; the mean of the example's own class excludes the example.

    Examples can be subtracted from sums, so this is exactly the mean of the other examples. The
    origin still includes the example, which hardly moves it and affects all classes alike.
    """
    means, own = NearestMeans.of(moments), batch.codes
    cosines, origin = means.cosines(batch.rows), means.origin
    left = moments.class_weights[own] - batch.weights
    others = moments.sums[own] - batch.weights[:, None] * batch.rows
    own_means = others / np.where(left > 0, left, 1.0)[:, None]
    cosines[np.arange(len(own)), own] = np.einsum(
        "ij,ij->i", _directions(batch.rows - origin), _directions(own_means - origin)
    )
    # A class with one example has no mean without it.
    usable = moments.class_examples[own] > 1
    return (cosines.argmax(axis=1), cosines.max(axis=1)), usable


def _origin(moments: Moments) -> Floats:
    """Return the origin of directions: half way from zero to the mean of all class means.

    Measured from zero, every angle is small, because all pictures have much in common. Measured
    from the mean, directions in which known classes agree are lost, but new classes differ in
    them. Half way rejected more unknown examples than either end on three sets of image features.
    """
    present = moments.class_examples > 0
    means = moments.means if present.all() else moments.means[present]
    return cast("Floats", 0.5 * means.mean(axis=0))


def _directions(rows: Floats) -> Floats:
    """Scale rows to length 1; rows of zeros stay zero."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    if lengths.size and lengths.min() > _SHORTEST and lengths.max() < np.inf:
        return cast("Floats", rows / lengths)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    # Divided by the largest first, because squares of large numbers overflow, small ones underflow.
    scaled = np.zeros_like(rows)
    np.divide(rows, largest, out=scaled, where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    np.divide(scaled, lengths, out=scaled, where=lengths > 0)
    return scaled


def _best_own(estimator: Any, moments: Moments, X: npt.NDArray[Any]) -> Best:
    """Return the best of ``decision_function``, or of ``predict_proba`` without one.

    Evergrow's own estimators have scores that are comparable between examples. Those of
    ``decision_function`` may leave out a term that all classes share.
    """
    if isinstance(estimator, ScoringClassifier):
        return _best_of(estimator._fit_scores(X))
    has_decision = hasattr(estimator, "decision_function")
    scores = estimator.decision_function(X) if has_decision else estimator.predict_proba(X)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1 and moments.n_classes == 2:
        return (scores > 0).astype(np.int64), np.abs(scores)
    scores = scores.reshape(len(X), -1)
    if scores.shape[1] != moments.n_classes:
        raise InvalidInputError(
            f"measure='estimator' needs one score per class, but {type(estimator).__name__} "
            f"returns {scores.shape[1]} for {moments.n_classes} classes"
        )
    return _best_of(scores)


def _best_of(scores: Floats) -> Best:
    # A class without a score is the nearest only if no class has one.
    best: Floats = np.fmax.reduce(scores, axis=1)
    return np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1), best


def _best_own_held_out(
    estimator: Any, moments: Moments, batch: Batch
) -> tuple[Best, npt.NDArray[np.bool_]]:
    # The estimator has not seen them.
    return _best_own(estimator, moments, batch.rows), np.ones(len(batch.rows), dtype=bool)


MEASURES = {
    "cosine": Measure(_best_cosine, _best_cosine_held_out, learns_held_out=True),
    "estimator": Measure(_best_own, _best_own_held_out, learns_held_out=False),
}
