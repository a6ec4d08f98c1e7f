"""Examples that judge a choice: held out from the sums, or left out of them in turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.scoring import ClassScale, normalising_factors, recode
from evergrow.estimators.linear.solver import solve
from evergrow.estimators.sums.moments import Batch, Moments

Floats = npt.NDArray[np.float64]

# A class with fewer training examples has no influence on the recoding.
_ENOUGH = 30


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out examples as features, the sums over all others, and the sums over all.

    Subclasses score examples in another way.
    """

    held: Batch
    trained: Moments
    everything: Moments

    def scores(self, ridge: Ridge) -> Floats:
        """Score the held-out examples, before recoding, with weights learnt without them."""
        weights, own_scores = solve(self.trained, ridge)
        scale = ClassScale.of(self.trained, own_scores, 0.0, ridge)
        return scale.apply(self.held.rows @ weights.T)

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores."""
        return scores * recode(self.trained, recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores and keep their scale; minus infinity for classes without examples."""
        factors = normalising_factors(self.trained, recoding)
        recoded: Floats = scores * factors
        recoded[:, factors == 0] = -np.inf
        return recoded

    def count(self, places: npt.NDArray[np.bool_]) -> int:
        """Return how many examples are at some places; equal ones may count as one."""
        return int(np.count_nonzero(places))

    @property
    def n_others(self) -> npt.NDArray[np.int64]:
        """Number of training examples of the class of each held-out example."""
        return self.trained.class_examples[self.held.codes]

    @property
    def others_weight(self) -> Floats:
        """Weight of these training examples."""
        return self.trained.class_weights[self.held.codes]

    @cached_property
    def votes(self) -> npt.NDArray[np.bool_]:
        """Which held-out examples are from classes with enough training examples.

        Without any such class, those from classes with at least half the weight of the largest.
        """
        enough: npt.NDArray[np.bool_] = self.n_others >= _ENOUGH
        if enough.any():
            return enough
        weights = self.others_weight
        large: npt.NDArray[np.bool_] = 2 * weights >= weights.max(initial=0.0)
        return (self.n_others > 0) & large

    @property
    def represented(self) -> Floats:
        """The weight of all examples that each held-out example stands for."""
        return self.held.weights

    def accuracy(self, scores: Floats) -> float:
        """Return the share of recognised examples among those with a vote."""
        votes = self.votes
        right = scores[votes].argmax(axis=1) == self.held.codes[votes]
        return float(np.average(right, weights=self.represented[votes]))
