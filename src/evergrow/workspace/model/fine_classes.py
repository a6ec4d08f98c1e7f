"""Distinguishes the fine classes within a class by ridge regression on the given ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.linear.selection import best_temperature
from evergrow.estimators.subcategory.guessers import RidgeRegression, leave_one_of_each_out
from evergrow.foundation.labels import ClassList

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# A fine class is predicted only where such predictions are right at least this often.
PRECISION = 0.8
# Most examples with a given fine class that are used per class; more would delay teaching.
MOST_GIVEN = 400
# Seed of the folds that calibrate the threshold: the same examples must give the same result.
_SEED = 0


@dataclass(frozen=True, eq=False)
class FineModel:
    """Classifier of the fine classes within one class.

    Attributes
    ----------
    fine_ids : ndarray of shape (n_fine,)
        Ids of the fine classes.
    weights, offsets : ndarray of shape (n_features, n_fine) and (n_fine,)
        Of the ridge regression.
    temperature : float
        Divisor of the scores in the softmax.
    threshold : float
        Least probability of a predicted fine class; above 1 if none is certain enough.

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 1], [0, 2], [9, 0], [9, 1], [9, 2]])
    >>> model = FineModel.of(rows, np.array([4, 4, 4, 6, 6, 6]))
    >>> model.guess(np.array([[8, 1]]))[0]
    array([6])
    """

    fine_ids: Ids
    weights: Floats
    offsets: Floats
    temperature: float
    threshold: float

    @classmethod
    def of(cls, rows: npt.NDArray[np.float32] | Floats, fine_ids: Ids) -> FineModel:
        """Train on examples of one class with at least two given fine classes."""
        rows = np.asarray(rows, dtype=np.float64)
        labels, codes = ClassList.of(fine_ids)
        names: Ids = labels.classes
        regression = RidgeRegression.of(rows, codes)
        folds = leave_one_of_each_out(codes, np.random.default_rng(_SEED))
        left_out = regression.held_out_scores(folds)
        weights = regression.fit.weights
        offsets = regression.fit.ridge.intercepts - regression.fit.ridge.mean @ weights
        if left_out is None:
            # One example each: the threshold cannot be calibrated.
            return cls(names, weights, offsets, 1.0, np.inf)
        temperature = best_temperature(left_out, codes)
        probabilities = softmax(left_out / temperature, axis=1)
        right = probabilities.argmax(axis=1) == codes
        threshold = _find_threshold(probabilities.max(axis=1), right)
        return cls(names, weights, offsets, temperature, threshold)

    def probabilities(self, rows: npt.NDArray[np.float32] | Floats) -> Floats:
        """Probability of each fine class, given the class; further features are ignored."""
        known = np.asarray(rows, dtype=np.float64)[:, : len(self.weights)]
        scores = known @ self.weights + self.offsets
        return cast(Floats, softmax(scores / self.temperature, axis=1))

    def guess(self, rows: npt.NDArray[np.float32] | Floats) -> tuple[Ids, Floats]:
        """The most probable fine class of each row, and its probability."""
        probabilities = self.probabilities(rows)
        best = probabilities.argmax(axis=1)
        return self.fine_ids[best], probabilities[np.arange(len(best)), best]


def _find_threshold(probabilities: Floats, right: npt.NDArray[np.bool_]) -> float:
    """The lowest probability above which predictions reach the precision.

    The precision is estimated with one more right and one more wrong prediction (Laplace), because
    three out of three do not mean that all are right.
    """
    order = np.argsort(-probabilities, kind="stable")
    n_right = np.cumsum(right[order])
    precision = (n_right + 1) / (np.arange(1, len(order) + 1) + 2)
    enough = np.flatnonzero(precision >= PRECISION)
    if not len(enough):
        return float("inf")
    if enough[-1] == len(order) - 1:
        # All predictions together reach it, however uncertain.
        return 0.0
    # Slightly lower, so that the example itself passes despite rounding.
    return float(probabilities[order[enough[-1]]]) * (1 - 1e-9)
