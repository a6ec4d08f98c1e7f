"""The regularised least squares of a workspace, as an immutable value over class ids.

Every operation returns a new value, so one that fails has changed nothing. Columns never move; a
class without examples keeps an empty column.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import RLSClassifier
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.scoring import ClassScale
from evergrow.estimators.linear.selection import (
    DEFAULT_TEMPERATURE,
    SelectionRequest,
    default_penalty,
)
from evergrow.estimators.linear.solver import Solver, back_substitute
from evergrow.estimators.novelty.linear_scores import LinearScores, can_score
from evergrow.estimators.novelty.scores import NearestMeans, SummedScores
from evergrow.estimators.sums.changes import move, subtract
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.workspace.events import ExamplesAdded, ExamplesMoved, ExamplesRemoved

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32] | Floats

# Default until one is selected: half-way favours rare classes and costs the others little.
_DEFAULT_RECODING = 0.5
# Sums that were once this many times larger have lost precision to the removed examples.
_STALE = 1e3
# Rows converted to 64 bits at once.
_BLOCK = 4096


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that an assessment selected.

    Attributes
    ----------
    penalty : float or None
        Ridge penalty; None for a default scaled to the features.
    recoding : float
        How much rare classes are favoured.
    temperature : float
        Divisor of the scores in the softmax.
    used_blocks : tuple of int
        Numbers of the blocks of features that take part: the first one until others have shown
        that they help.
    by_means : bool
        Whether each class counts as one example, its mean, when weights are solved for.
    novelty_penalty : float or None
        Ridge penalty of the scores that tell known from unknown things; None for ``penalty``.
    """

    penalty: float | None = None
    recoding: float = _DEFAULT_RECODING
    temperature: float = DEFAULT_TEMPERATURE
    used_blocks: tuple[int, ...] = (0,)
    by_means: bool = True
    novelty_penalty: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The values, as events and snapshots hold them."""
        return {**asdict(self), "used_blocks": list(self.used_blocks)}


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Sums over all examples by class id, and the hyperparameters to solve them with.

    Attributes
    ----------
    fitted : FittedRLS or None
        None while there are no examples.
    hyperparameters : Hyperparameters
        Those in use.
    blocks : tuple of int
        Widths of the blocks of features, of which some take part; empty if there is only one. The
        sums are those over all of them.

    Examples
    --------
    >>> trained = TrainedModel().add(np.array([[0.0], [1.0], [9.0]]), np.array([1, 1, 2]))
    >>> trained.n_examples, trained.class_ids.tolist()
    (3, [1, 2])
    >>> trained.remove(np.array([[9.0]]), np.array([2])).class_ids.tolist()
    [1]
    """

    fitted: FittedRLS | None = None
    hyperparameters: Hyperparameters = Hyperparameters()
    blocks: tuple[int, ...] = ()
    # For the scores that tell known from unknown things, which are regressions.
    regressions: Solver = field(default_factory=Solver)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return 0 if self.fitted is None else self.fitted.moments.n_examples

    @property
    def class_ids(self) -> Ids:
        """Ids of the classes that have examples, in the order of their columns."""
        ids: Ids = np.zeros(0, dtype=np.int64)
        return ids if self.fitted is None else self.fitted.labels.classes[self.present]

    @property
    def class_counts(self) -> dict[int, int]:
        """Number of examples per class id, of classes that have any."""
        counts = [] if self.fitted is None else self._sums.class_examples[self.present].tolist()
        return dict(zip(self.class_ids.tolist(), counts, strict=True))

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which columns have examples."""
        return self._sums.class_examples > 0

    @property
    def _sums(self) -> Moments:
        return self.require_fitted().moments

    def require_fitted(self) -> FittedRLS:
        """What was learnt; an error without examples."""
        if self.fitted is None:
            raise InvalidInputError("the model has no examples yet")
        return self.fitted

    @property
    def ridge(self) -> Ridge:
        """The ridge regression that gives the weights, with the columns that take part."""
        ridge = Ridge(1.0, columns=self._columns, by_means=self.hyperparameters.by_means)
        penalty = self.hyperparameters.penalty
        if penalty is None and self.fitted is not None:
            moments = self.fitted.moments
            if ridge.columns is not None:
                moments = moments.with_features(ridge.places(moments.n_features), gram=False)
            penalty = default_penalty(moments, ridge)
        return ridge if penalty is None else replace(ridge, penalty=penalty)

    @property
    def novelty_ridge(self) -> Ridge:
        """The ridge regression of the scores that tell known from unknown things."""
        ridge = replace(self.ridge, scoring="regression")
        penalty = self.hyperparameters.novelty_penalty
        return ridge if penalty is None else replace(ridge, penalty=penalty)

    @property
    def used_features(self) -> npt.NDArray[np.int64] | slice:
        """Places of the features that take part in an embedding."""
        return Ridge(1.0, intercept=False, columns=self._columns).places(sum(self.blocks))

    @property
    def _columns(self) -> tuple[tuple[int, int], ...] | None:
        request = SelectionRequest(None, None, blocks=self.blocks)
        return request.columns(self.hyperparameters.used_blocks)

    @property
    def is_stale(self) -> bool:
        """Whether so much was removed that the sums should be computed again.

        A removed example leaves a rounding error relative to its own size.
        """
        return self.fitted is not None and self._sums.peak > _STALE * self._sums.squares

    def add(self, rows: Rows, class_ids: Ids) -> TrainedModel:
        """A copy with more examples, of known or new classes."""
        if not len(rows):
            return self
        known = self.fitted or _nothing(rows.shape[1], class_ids)
        labels, codes = known.labels.extend(class_ids)
        moments = known.moments.with_classes(len(labels))
        for first in range(0, len(rows), _BLOCK):
            part = slice(first, first + _BLOCK)
            moments = moments.add(Batch.of(with_constant(rows[part]), codes[part]))
        moments.check_finite()
        holdout = known.holdout.with_classes(len(labels))
        return replace(self, fitted=replace(known, labels=labels, moments=moments, holdout=holdout))

    def remove(self, rows: Rows, class_ids: Ids) -> TrainedModel:
        """A copy without some examples, as if they had never been added."""
        if not len(rows) or self.fitted is None:
            return self
        left = subtract(self._sums, [self._batch(rows, class_ids)])
        if not left.n_examples:
            return replace(self, fitted=None)
        # A new solver: downdating loses precision, and removals are rare.
        fitted = replace(self.fitted, moments=left, solver=Solver())
        return replace(self, fitted=fitted, regressions=Solver())

    def move(self, rows: Rows, class_ids: Ids, to: Ids) -> TrainedModel:
        """A copy with some examples in other classes, known or new."""
        elsewhere = class_ids != to
        if self.fitted is None or not elsewhere.any():
            return self
        rows, class_ids, to = rows[elsewhere], class_ids[elsewhere], to[elsewhere]
        labels, codes = self.fitted.labels.extend(to)
        moments = self.fitted.moments.with_classes(len(labels))
        moved = move(moments, self._batch(rows, class_ids), codes)
        holdout = self.fitted.holdout.with_classes(len(labels))
        fitted = replace(self.fitted, labels=labels, moments=moved, holdout=holdout)
        return replace(self, fitted=fitted)

    def apply(self, event: ExamplesAdded | ExamplesRemoved | ExamplesMoved) -> TrainedModel:
        """A copy with an event applied."""
        block = event.block
        if isinstance(event, ExamplesAdded):
            return self.add(block.rows, block.class_ids)
        if isinstance(event, ExamplesRemoved):
            return self.remove(block.rows, block.class_ids)
        # Several moves of one example count as one, from its first class to its last.
        _, first = np.unique(block.ids, return_index=True)
        _, last = np.unique(block.ids[::-1], return_index=True)
        to = event.to_class_ids[::-1][last]
        return self.move(block.rows[first], block.class_ids[first], to)

    def with_hyperparameters(self, hyperparameters: Hyperparameters) -> TrainedModel:
        """A copy with other hyperparameters."""
        return replace(self, hyperparameters=hyperparameters)

    def scoring(self) -> tuple[Floats, Floats]:
        """Recoded weights and offsets of the classes that have examples.

        New arrays of shape (n_classes, n_features) and (n_classes,), normalised so that the mean
        factor of the recoding is one.
        """
        fitted, present, ridge = self.require_fitted(), self.present, self.ridge
        with fitted.solution(ridge, with_held_out=True) as solution:
            recoding, own_scores = self.hyperparameters.recoding, solution.own_scores
            scale = ClassScale.of(fitted.moments, own_scores, recoding, ridge, normalised=True)
            # A view if every class has examples.
            live = solution.weights if present.all() else solution.weights[present]
            factors, offsets = scale.factors[present], scale.offsets[present]
            return live[:, :-1] * factors[:, None], (live[:, -1] - offsets) * factors

    @property
    def plain_moments(self) -> Moments:
        """Class sums of all features but the constant one, from which class means follow."""
        return _without_constant(self._sums)

    @property
    def used_moments(self) -> Moments:
        """Class sums of the features that take part, without the constant one and empty classes."""
        places = self.ridge.places(self._sums.n_features)
        return _without_constant(self._sums.with_features(places, gram=False).without_empty())

    def summed_scores(
        self, factor: Floats | None = None, *, cosine_only: bool = False
    ) -> SummedScores:
        """The scores that tell known from unknown things, of the classes that have examples.

        They are scores of the features that take part: their factor is at hand, so leaving out an
        example is exact. ``factor`` is the Cholesky factor to solve with.
        """
        ridge, places = self.novelty_ridge, self.ridge.places(self._sums.n_features)
        # Scores need no Gram matrix, which would be copied.
        moments = self._sums.with_features(places, gram=False).without_empty()
        plain = self.used_moments
        linear = None
        if factor is not None:
            linear = LinearScores.of(moments, back_substitute(factor, moments.sums), factor)
        elif not cosine_only and can_score(moments):
            factor = self.regressions.factor(self._sums, ridge)
            with self.regressions.solution(self._sums, ridge) as current:
                weights = current.weights[self.present][:, places]
                linear = LinearScores.of(moments, weights, factor)
        means = NearestMeans.of(plain)
        return SummedScores(plain, means, linear, ridge.penalty, self.used_features)

    def estimator(self, fitted: FittedRLS | None = None) -> RLSClassifier:
        """An estimator over class ids or another value, which can be saved and trained further."""
        model = RLSClassifier(
            regularization=self.ridge.penalty,
            recoding=self.hyperparameters.recoding,
            blocks=self.blocks or None,
        )
        model._set_fitted(fitted or self.require_fitted(), None)
        return model

    @classmethod
    def from_estimator(cls, model: RLSClassifier, hyperparameters: Hyperparameters) -> TrainedModel:
        """The model of an estimator made by :meth:`estimator`."""
        fitted = model._require_fitted("sums")
        return cls(fitted, hyperparameters, tuple(model.blocks or ()))

    def _batch(self, rows: Rows, class_ids: Ids) -> Batch:
        """Learnt examples as features with the constant one."""
        codes = self.require_fitted().labels.columns_of(class_ids.tolist())
        return Batch.of(with_constant(rows), np.array(codes, dtype=np.int32))


def with_constant(rows: Rows) -> Floats:
    """Features as 64-bit numbers with a constant one in the last column."""
    features = np.ones((len(rows), rows.shape[1] + 1))
    features[:, :-1] = rows
    return features


def _without_constant(moments: Moments) -> Moments:
    """The sums without those of the constant one and without the Gram matrix."""
    return Moments(
        tuple(total[:-1] for total in moments.class_sums),
        moments.class_weights,
        moments.class_examples,
        moments.class_squares - moments.class_weights,
        None,
        None,
    )


def _nothing(n_features: int, class_ids: Ids) -> FittedRLS:
    labels, _ = ClassList.of(class_ids)
    return FittedRLS(
        labels,
        features=FeatureMap.plain(n_features),
        intercept=True,
        moments=Moments.none(n_features + 1, len(labels), gram=True),
        # There is no holdout: hyperparameters are selected by leave-one-out.
        holdout=Holdout.none(1, 0).with_classes(len(labels)),
    )
