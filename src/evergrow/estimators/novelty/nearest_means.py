"""Class means as directions, and the cosines of examples to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.moments import Batch, Moments

Floats = npt.NDArray[np.float64]
# Squares of shorter lengths lose digits or underflow.
_SHORTEST = 1e-140


class BestScores(NamedTuple):
    """The nearest class of each row, its score there, and further scores of the row."""

    columns: npt.NDArray[np.int64]
    scores: Floats
    others: Floats

    def at(self, places: npt.NDArray[Any]) -> BestScores:
        """Return those of some rows."""
        return BestScores(self.columns[places], self.scores[places], self.others[places])


class Rehearsal(NamedTuple):
    """Scores of the same examples as known and as unknown ones, of shape (n_examples, n_scores)."""

    known: Floats
    unknown: Floats
    n_classes: int


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

    def left_out(self, moments: Moments, batch: Batch) -> Floats:
        """Return the cosines of learnt examples; the mean of its own class excludes the example.

        Examples can be subtracted from sums, so this is exactly the mean of the other examples. The
        origin still includes the example, which hardly moves it and affects all classes alike.
        """
        own, cosines, origin = batch.codes, self.cosines(batch.rows), self.origin
        left = moments.class_weights[own] - batch.weights
        others = moments.sums[own] - batch.weights[:, None] * batch.rows
        own_means = others / np.where(left > 0, left, 1.0)[:, None]
        cosines[np.arange(len(own)), own] = np.einsum(
            "ij,ij->i", _directions(batch.rows - origin), _directions(own_means - origin)
        )
        return cosines


def best_of(scores: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the best class of each row, and its score."""
    # A class without a score is the nearest only if no class has one.
    best: Floats = np.fmax.reduce(scores, axis=1)
    return np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1), best


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
