"""What a rejecting classifier has learnt, as one immutable value."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.labels import ClassList


@dataclass(frozen=True, eq=False)
class FittedRejection:
    """Classes, the wrapped estimator, class sums and held-out examples.

    The wrapped estimator never changes: updates train a copy of it. ``fixed`` is a calibration on
    other examples than the held-out ones, for example on many more. It is used until something is
    learnt or forgotten.
    """

    labels: ClassList
    estimator: Any
    moments: Moments
    holdout: Holdout
    measure: str
    fixed: Calibration | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRejection:
        """Share everything but the wrapped estimator, which the caller may change.

        Copies of Evergrow's own estimators are cheap.
        """
        twin = copy.copy(self)
        object.__setattr__(twin, "estimator", copy.deepcopy(self.estimator, memo))
        return twin

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_features

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration on the held-out examples, computed when first needed."""
        if self.fixed is not None:
            return self.fixed
        batch = self.holdout.batch
        if not len(batch.rows):
            nothing = np.zeros(0)
            columns = np.zeros(0, dtype=np.int64)
            return Calibration.of(columns, nothing, nothing, len(self.labels))
        score = MEASURES[self.measure].best_held_out
        (columns, scores), usable = score(self.estimator, self.moments, batch)
        weights = batch.weights * self.holdout.represented
        # Examples that the estimator cannot score are ignored.
        usable = usable & np.isfinite(scores)
        return Calibration.of(columns[usable], scores[usable], weights[usable], len(self.labels))

    def novelty(self, X: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return how far the best score of each row is below the usual one, in spreads."""
        columns, scores = MEASURES[self.measure].best(self.estimator, self.moments, X)
        return self.calibration.novelty(columns, scores)

    def relabel(self, labels: ClassList, columns: list[int]) -> FittedRejection:
        """Turn class ``k`` into class ``columns[k]``; -1 leaves it out, equal ones are joined."""
        same = columns == list(range(len(labels)))
        return replace(
            self,
            labels=labels,
            fixed=self.fixed if same else None,
            moments=self.moments.relabel(columns, len(labels)),
            holdout=self.holdout.relabel(columns, len(labels)),
        )
