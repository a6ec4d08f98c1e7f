"""Class means and their metric, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.means.distances import (
    Distance,
    Euclidean,
    Form,
    Mahalanobis,
    ProjectedDistance,
)
from evergrow.estimators.means.ncm_metric import NCMMetric
from evergrow.estimators.sums.changes import FittedSums
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Satisfies
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import Classes, Fields, Model, Nested

Floats = npt.NDArray[np.float64]

IS_METRIC = Satisfies("an NCMMetric", lambda value: isinstance(value, NCMMetric))

# Bytes of scores computed at once.
_SCORE_BYTES = 16 << 20
# Larger differences are clipped to this, so that their products stay finite.
_FARTHEST = 1e140


@dataclass(frozen=True, eq=False)
class LinearScores:
    """The scores ``(X - centre) @ directions + offsets``: all that predicting needs."""

    form: Form
    centre: Floats
    directions: Floats
    offsets: Floats

    @property
    def are_finite(self) -> bool:
        """Whether all scores are finite, except those of classes without examples."""
        farthest = np.abs(self.directions).sum(axis=0) * _FARTHEST
        fine = np.isfinite(farthest).all() and (self.offsets < np.inf).all()
        return bool(fine and np.isfinite(self.offsets[farthest > 0]).all())

    def of_rows(self, block: Floats) -> tuple[Floats, Floats]:
        """Return the scores of some rows, and the centred rows."""
        centred = np.clip(block - self.centre, -_FARTHEST, _FARTHEST)
        return centred @ self.directions + self.offsets, centred

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""
        max_rows = max(64, min(16384, _SCORE_BYTES // (8 * len(self.offsets))))
        for rows, block in float_blocks(X, max_rows):
            yield rows, self.of_rows(block)[0]


@dataclass(frozen=True, eq=False)
class FittedMeans(FittedSums):
    """Classes, sums over their examples, and the learnt metric if there is one."""

    metric: NCMMetric | None = None
    _projected: ProjectedDistance | None = field(init=False, repr=False, default=None)
    # The scores for the last distance, solved once. Each new value starts without any.
    _solved: dict[Distance, LinearScores] = field(init=False, repr=False, default_factory=dict)

    _stored: ClassVar[Fields] = {
        "labels": Classes(),
        "moments": Nested(Moments),
        "metric": Model(IS_METRIC, optional=True),
    }

    def __post_init__(self) -> None:
        """Take the projection of the metric as it is now: the caller may train it again."""
        if self.metric is not None:
            object.__setattr__(self, "_projected", ProjectedDistance(self.metric.components_))

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the metric does not suit the sums."""
        if self.metric is None:
            return
        if self.metric.n_features_in_ != self.n_features:
            raise InvalidInputError("its metric has other features")
        with np.errstate(all="ignore"):
            are_finite = self.scores(self.distance(0.0)).are_finite
        if not are_finite:
            raise InvalidInputError("its metric overflows")

    def differences(self, other: FittedMeans) -> list[str]:
        """Return what must be equal to merge two models, but is not."""
        if self.n_features != other.n_features:
            return ["the number of features"]
        # The shrinkage may differ: it does not affect the sums.
        if type(self.distance(0.0)) is not type(other.distance(0.0)):
            return ["metric"]
        if self.metric is not None and other.metric is not None:
            same = np.array_equal(self.metric.components_, other.metric.components_)
            return [] if same else ["the learnt metric (learn one NCMMetric before both models)"]
        per_class = [fitted.moments.class_settled is not None for fitted in (self, other)]
        return [] if per_class[0] == per_class[1] else ["keep_class_statistics"]

    def distance(self, shrinkage: float) -> Distance:
        """Return the distance that the sums were collected for, with this shrinkage."""
        if self._projected is not None:
            return self._projected
        return Euclidean() if self.moments.settled is None else Mahalanobis(shrinkage)

    def scores(self, distance: Distance) -> LinearScores:
        """Return the scores for a distance, solved when they are first needed."""
        scores = self._solved.get(distance)
        if scores is None:
            scores = self._solve(distance)
            self._solved.clear()
            self._solved[distance] = scores
        return scores

    def _solve(self, distance: Distance) -> LinearScores:
        present = self.moments.class_examples > 0
        # Distances do not depend on the origin, but rounding errors do.
        centre = self.moments.sums[present].sum(axis=0) / self.moments.class_weights[present].sum()
        means = np.where(present[:, None], self.moments.means - centre, 0.0)
        form = distance.form(self.moments)
        directions = form.directions(means)
        offsets = np.where(present, -0.5 * np.einsum("ij,ij->i", means, directions), -np.inf)
        return LinearScores(form, centre, np.ascontiguousarray(directions.T), offsets)

    def fit_scores(self, X: npt.NDArray[Any], distance: Distance) -> Floats:
        """Return ``-(x - mu)' P (x - mu) / 2`` per class, which is low for rows far from all."""
        scores = self.scores(distance)
        out = np.empty((X.shape[0], len(self.labels)))
        for rows, block in float_blocks(X):
            relative, centred = scores.of_rows(block)
            # A row too far away to compute its distance fits no class.
            with np.errstate(over="ignore"):
                out[rows] = relative - scores.form.squared_lengths(centred)[:, None] / 2
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedMeans:
        """Copies share the value: it never changes, apart from the cached scores."""
        return self
