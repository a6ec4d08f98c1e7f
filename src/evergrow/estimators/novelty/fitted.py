"""What a rejecting classifier has learnt, as one immutable value."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.scores import MEASURES, BestScores, Scorer
from evergrow.estimators.sums.changes import subtract
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import GONE, ClassList
from evergrow.foundation.params import Choice, Nothing, Number, Satisfies
from evergrow.storage.models.codec import ClassNames, Fields, Model, Nested

_IS_CLASSIFIER = Satisfies("a classifier", lambda value: hasattr(value, "classes_"))


@dataclass(frozen=True, eq=False)
class FittedRejection:
    """Classes, the wrapped estimator, class sums and held-out examples.

    The wrapped estimator never changes: updates train a copy of it. ``fixed`` is a calibration on
    other examples than the held-out ones, for example on many more. It is used until something is
    learnt or forgotten. ``penalty`` is that of ridge regression in the measure; None for a default
    that follows the examples.
    """

    labels: ClassList
    estimator: Any
    moments: Moments
    holdout: Holdout
    measure: str
    fixed: Calibration | None = None
    penalty: float | None = None

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "estimator": Model(_IS_CLASSIFIER),
        "moments": Nested(Moments),
        "holdout": Nested(Holdout),
        "measure": [Choice(tuple(MEASURES))],
        "fixed": Nested(Calibration, optional=True),
        "penalty": [Nothing(), Number(0.0, open_low=True)],
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        n_features = self.estimator.n_features_in_
        if self.estimator.classes_.tolist() != self.labels.classes.tolist():
            raise InvalidInputError("the model inside has other classes")
        if self.n_features != n_features or self.holdout.n_features not in (None, n_features):
            raise InvalidInputError(f"the model inside has {n_features} features, its sums others")
        if self.moments.settled is not None and self.measure != "auto":
            raise InvalidInputError("it has a Gram matrix")

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
            nothing = BestScores(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 0)))
            return Calibration.of(nothing, np.zeros(0), len(self.labels))
        weights = batch.weights * self.holdout.represented
        found, usable = self.scorer.left_out(batch)
        # Examples that the estimator cannot score are ignored.
        usable = usable & np.isfinite(found.scores) & np.isfinite(found.others).all(axis=1)
        n_own = self.moments.class_examples[batch.codes[usable]]
        return Calibration.of(
            found.at(usable),
            weights[usable],
            len(self.labels),
            n_own,
            self.scorer.rehearse(batch),
        )

    @cached_property
    def scorer(self) -> Scorer:
        """The scores of the measure."""
        return MEASURES[self.measure].scorer(self.estimator, self.moments, self.penalty)

    def novelty(self, X: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return how far the best score of each row is below the usual one, in spreads."""
        return self.calibration.novelty(self.scorer.best(X))

    def relabel(self, labels: ClassList, columns: list[int]) -> FittedRejection:
        """Turn class ``k`` into class ``columns[k]``; -1 leaves it out, equal ones are joined."""
        same = columns == list(range(len(labels)))
        gone = [k for k, column in enumerate(columns) if column == GONE]
        return replace(
            self,
            labels=labels,
            fixed=self.fixed if same else None,
            moments=self._without_products(gone).relabel(columns, len(labels)),
            holdout=self.holdout.relabel(columns, len(labels)),
        )

    def _without_products(self, columns: list[int]) -> Moments:
        """Return the sums without the products of features of some classes.

        The Gram matrix is that of all classes. If all examples of these classes are stored, they
        are subtracted. Otherwise there is no Gram matrix afterwards, and measures do without it.
        """
        moments = self.moments
        if moments.settled is None or not moments.class_examples[columns].any():
            return moments
        stored = self.holdout.batch
        gone = stored.at(np.isin(stored.codes, columns))
        if len(gone.rows) < moments.class_examples[columns].sum():
            return replace(moments, settled=None, waiting=())
        return subtract(moments, [gone])
