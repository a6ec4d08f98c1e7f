"""Leave-one-out scores of least squares, without solving again for each example.

With ``A`` the penalised Gram matrix, ``s`` an example's scores, ``y`` its coded label, ``w`` its
weight and ``h = w x' A^-1 x``, the scores of a model that never saw it are ``(s - h y) / (1 - h)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.selection import Validation
from evergrow.estimators.linear.solver import Ridge, back_substitute, factorise
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeaveOneOut(Validation):
    """Learnt examples, each scored with weights that are learnt from all others.

    Exact, for any subset of the learnt examples. Features must not be standardised: mean and
    deviation would change with each example that is left out.
    """

    @classmethod
    def of(cls, learnt: Batch, everything: Moments) -> LeaveOneOut:
        """Return some of the examples in the sums, as features with the constant 1."""
        return cls(learnt, everything, everything)

    def scores(self, ridge: Ridge) -> Floats:
        """Score each example, before recoding, as if it had not been learnt."""
        return self.scores_by(self.factor(ridge))

    def factor(self, ridge: Ridge) -> Floats:
        """Return the Cholesky factor of the sums, which serves any subset of the examples."""
        if ridge.standardize:
            raise InvalidInputError("leave-one-out scores need standardize=False")
        return factorise(self.everything.gram, ridge.penalty, intercept=ridge.intercept)

    def scores_by(self, factor: Floats) -> Floats:
        """Score each example with a factor that :meth:`factor` returned."""
        rows, weights = self.held.rows, self.held.weights
        solved = back_substitute(factor, rows)
        leverages = weights * np.einsum("ij,ij->i", rows, solved)
        scores: Floats = solved @ self.everything.sums.T
        scores[self._own] -= leverages
        # Leverages are below 1 as long as there is a penalty.
        scores /= np.maximum(1.0 - leverages, np.finfo(np.float64).eps)[:, None]
        return scores

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores with the class counts without each example."""
        total = self.everything.weight - self.held.weights
        return self._times_powers(scores, recoding, total**recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores and keep their scale; minus infinity for classes without examples."""
        counts = self.everything.class_weights
        powers = _powers(counts, self.everything.class_examples, recoding)
        before = (counts * powers)[self.held.codes]
        left = self._left * _powers(self._left, self.n_others, recoding)
        total = self.everything.weight - self.held.weights
        # The mean of the recoding over all other examples.
        mean = np.maximum(float(counts @ powers) - before + left, np.finfo(np.float64).tiny)
        recoded = self._times_powers(scores, recoding, total / mean)
        recoded[:, powers == 0] = -np.inf
        rows, columns = self._own
        alone = self.n_others == 0
        recoded[rows[alone], columns[alone]] = -np.inf
        return recoded

    @property
    def n_others(self) -> npt.NDArray[np.int64]:
        """Number of other examples in the class of each example."""
        return self.everything.class_examples[self.held.codes] - 1

    @property
    def _own(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Index of the score of each example's own class."""
        return np.arange(len(self.held.codes)), self.held.codes

    @property
    def _left(self) -> Floats:
        """Weight of the other examples in the class of each example."""
        own = self.everything.class_weights[self.held.codes]
        return np.where(self.n_others > 0, own - self.held.weights, 0.0)

    def _times_powers(self, scores: Floats, recoding: float, factors: Floats) -> Floats:
        moments = self.everything
        powers = _powers(moments.class_weights, moments.class_examples, recoding)
        recoded: Floats = scores * powers
        own = _powers(self._left, self.n_others, recoding)
        recoded[self._own] = scores[self._own] * own
        recoded *= factors[:, None]
        return recoded


def _powers(weights: Floats, n_examples: npt.NDArray[np.int64], recoding: float) -> Floats:
    """Return ``weight^-recoding`` per class; 0 without examples."""
    known = n_examples > 0
    return np.where(known, np.where(known, weights, 1.0) ** -recoding, 0.0)
