"""What least squares has learnt, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.selection import (
    DEFAULT_TEMPERATURE,
    Selection,
    SelectionRequest,
    Validation,
    are_enough,
    fit_temperature,
    select,
)
from evergrow.estimators.linear.solver import Ridge, Solver
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList

Floats = npt.NDArray[np.float64]

# Bytes of scores computed at once.
_SCORE_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class FixedWeights:
    """The weights of a model that cannot learn any more, and the problem they solve."""

    weights: Floats
    ridge: Ridge
    temperature: float

    def weights_for(self, ridge: Ridge) -> Floats:
        """Return the weights; a ``ValueError`` if they solve another problem."""
        if ridge != self.ridge:
            raise InvalidInputError(
                f"the model was saved with inference_only=True and has only the weights for "
                f"regularization={self.ridge.penalty:g}, standardize={self.ridge.standardize}"
            )
        return self.weights


@dataclass(frozen=True, eq=False)
class FittedRLS:
    """Classes, feature map, sums over all examples, held-out examples and the selection.

    The sums include the held-out examples; they are subtracted to select parameters.
    """

    labels: ClassList
    features: FeatureMap
    intercept: bool
    moments: Moments
    holdout: Holdout
    selection: Selection | None = None
    # Replaces the sums in a model that was saved with inference_only=True.
    fixed: FixedWeights | None = None
    solver: Solver = field(default_factory=Solver)
    # Temperatures for parameters that were set later; passed on from value to value.
    temperatures: dict[tuple[Ridge, float, int], float] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.features.n_inputs

    @cached_property
    def without_held_out(self) -> Moments:
        """Sums over all examples except the held-out ones."""
        if not len(self.holdout):
            return self.moments
        return self.moments.add_all([self._held_out_features.negated()])

    @cached_property
    def _held_out_features(self) -> Batch:
        held = self.holdout.batch
        rows = self.features.features(held.rows, constant=self.intercept)
        return Batch(rows, held.codes, held.weights)

    @contextmanager
    def weights(self, ridge: Ridge, *, with_held_out: bool) -> Iterator[Floats]:
        """Lend weights of shape (n_classes, features), before recoding."""
        if self.fixed is not None:
            yield self.fixed.weights_for(ridge)
            return
        moments = self.moments if with_held_out else self.without_held_out
        # If only held-out examples are left, they are all there is to learn from.
        moments = moments if moments.n_examples else self.moments
        with self.solver.weights(moments, ridge) as weights:
            yield weights

    @cached_property
    def _validation(self) -> Validation | None:
        """The held-out examples, if there are enough to select parameters."""
        if not are_enough(self.holdout.counts):
            return None
        validation = Validation(self._held_out_features, self.without_held_out, self.moments)
        return validation if validation.trained.n_examples else None

    def select(
        self, ridge: Callable[[float], Ridge], request: SelectionRequest, *, force: bool
    ) -> FittedRLS:
        """Select penalty, recoding and temperature again, if there are enough examples."""
        if self._validation is None:
            return self
        selection = select(self._validation, self.selection, ridge, request, force=force)
        return replace(self, selection=selection)

    def temperature(self, ridge: Ridge, recoding: float) -> float:
        """Return the number that scores are divided by, fitted on held-out examples if possible."""
        if self.fixed is not None:
            return self.fixed.temperature
        last = self.selection
        asked = (ridge.penalty, recoding, ridge.standardize)
        if last is not None and (last.penalty, last.recoding, last.request.standardize) == asked:
            return last.temperature
        # Fitted again when the number of examples has doubled, like the other parameters.
        key = (ridge, recoding, self.moments.n_examples.bit_length())
        if key not in self.temperatures:
            if self._validation is None:
                return DEFAULT_TEMPERATURE if last is None else last.temperature
            self.temperatures[key] = fit_temperature(self._validation, ridge, recoding)
        return self.temperatures[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRLS:
        """Share everything immutable; solver and temperatures are caches of each copy."""
        return replace(self, solver=Solver(), temperatures=dict(self.temperatures))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays, without the caches."""
        # Imported here because it rebuilds this class.
        from evergrow.estimators.linear.serialization import (
            fitted_from_arrays,
            fitted_to_arrays,
        )

        return (fitted_from_arrays, (self.labels, *fitted_to_arrays(self)))


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Weights times features, times a factor per class: all that predicting needs.

    Attributes
    ----------
    features : FeatureMap
        From inputs to features.
    weights : ndarray of shape (n_classes, n_features) or (n_classes, n_features + 1)
        The last column is the intercept if there is one.
    factors : ndarray of shape (n_classes,)
        0 for classes without examples, whose scores are minus infinity.
    intercept : bool
        Whether there is an intercept.
    """

    features: FeatureMap
    weights: Floats
    factors: Floats
    intercept: bool

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores) a block of rows at a time [Camoriano2017 Eq. 17]."""
        n_features = self.features.n_features
        max_rows = max(64, min(16384, _SCORE_BYTES // (8 * len(self.weights))))
        for rows, block in float_blocks(X, max_rows):
            scores = self.features.features(block, constant=False) @ self.weights[:, :n_features].T
            if self.intercept:
                scores += self.weights[:, -1]
            scores *= self.factors
            scores[:, self.factors == 0] = -np.inf
            yield rows, scores

    def copy(self) -> LinearScores:
        """Return the same scores with weights of their own."""
        return replace(self, weights=np.array(self.weights))


def as_probabilities(scores: Floats, temperature: float) -> Floats:
    """Return the softmax of scores divided by a temperature."""
    return cast("Floats", softmax(scores / temperature, axis=1))
