"""Fine classes within a class: guessed by ridge from those that someone gave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.linear.selection import best_temperature
from evergrow.estimators.subcategory.guesser import leave_one_of_each_out
from evergrow.estimators.subcategory.ridge import Regression
from evergrow.foundation.labels import ClassList

__all__ = ["MOST_GIVEN", "PRECISION", "FineModel"]

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# A fine name is given where such names are right at least this often; else the coarse one alone.
PRECISION = 0.8
# Examples with a given fine name that one class learns from; more would make teaching wait.
MOST_GIVEN = 400
# Of the folds that say how sure is sure enough: the same examples must give the same answer.
_SEED = 0


@dataclass(frozen=True, eq=False)
class FineModel:
    """What tells the fine classes of one class apart.

    Attributes
    ----------
    fine_ids : ndarray of shape (n_fine,)
        Ids of the fine classes.
    weights, offsets : ndarray of shape (n_features, n_fine) and (n_fine,)
        Of a ridge regression within the class.
    temperature : float
        What scores are divided by to become probabilities.
    threshold : float
        Probability from which on a fine name is given; above 1 if none is sure enough.

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
        """From examples of one class with given fine classes, at least two of them."""
        rows = np.asarray(rows, dtype=np.float64)
        labels, codes = ClassList.of(fine_ids)
        names: Ids = labels.classes
        regression = Regression.of(rows, codes)
        folds = leave_one_of_each_out(codes, np.random.default_rng(_SEED))
        left_out = regression.held_out_scores(folds)
        weights = regression.weights
        offsets = regression.targets.mean(axis=0) - regression.spectrum.mean @ weights
        if left_out is None:
            # One example each: nothing says how sure such answers are.
            return cls(names, weights, offsets, 1.0, np.inf)
        temperature = best_temperature(left_out, codes)
        probabilities = softmax(left_out / temperature, axis=1)
        right = probabilities.argmax(axis=1) == codes
        threshold = _sure_enough(probabilities.max(axis=1), right)
        return cls(names, weights, offsets, temperature, threshold)

    def probabilities(self, rows: npt.NDArray[np.float32] | Floats) -> Floats:
        """Probability of each fine class, given the class."""
        scores = np.asarray(rows, dtype=np.float64) @ self.weights + self.offsets
        probabilities: Floats = softmax(scores / self.temperature, axis=1)
        return probabilities

    def guess(self, rows: npt.NDArray[np.float32] | Floats) -> tuple[Ids, Floats]:
        """The best fine class of each row, and its probability."""
        probabilities = self.probabilities(rows)
        best = probabilities.argmax(axis=1)
        return self.fine_ids[best], probabilities[np.arange(len(best)), best]


def _sure_enough(probabilities: Floats, right: npt.NDArray[np.bool_]) -> float:
    """The lowest probability from which on answers are right often enough.

    As if one more answer had been right and one wrong: of three right answers out of three it is
    not certain that they always are.
    """
    order = np.argsort(-probabilities, kind="stable")
    n_right = np.cumsum(right[order])
    precision = (n_right + 1) / (np.arange(1, len(order) + 1) + 2)
    enough = np.flatnonzero(precision >= PRECISION)
    if not len(enough):
        return float("inf")
    if enough[-1] == len(order) - 1:
        # All of them are right often enough, however unsure.
        return 0.0
    # A hair lower, so that the example itself stays above after rounding.
    return float(probabilities[order[enough[-1]]]) * (1 - 1e-9)
