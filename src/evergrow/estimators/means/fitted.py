"""Class means and their metric, as one immutable value.

Each metric is a quadratic form, one symmetric matrix ``P``. The score of a class is then
``mu' P x - mu' P mu / 2``. That is ``-(x - mu)' P (x - mu) / 2`` up to a number that all classes
share. The softmax of the scores gives probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from evergrow.estimators.means.covariance import shrunk_covariance, spread
from evergrow.estimators.means.ncm_metric import NCMMetric
from evergrow.estimators.sums.changes import FittedSums
from evergrow.estimators.sums.device_scores import DeviceLinearScores
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.device import Device
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Satisfies
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import ClassNames, Fields, Model, Nested

Floats = npt.NDArray[np.float64]

IS_METRIC = Satisfies("an NCMMetric", lambda value: isinstance(value, NCMMetric))

# Bytes of scores computed at once.
_SCORE_BYTES = 16 << 20
# Larger differences are clipped to this, so that their products stay finite.
_FARTHEST = 1e140


class Form(Protocol):
    """A quadratic form: one symmetric matrix ``P``."""

    def directions(self, rows: Floats) -> Floats:
        """Return ``P x`` of every row, of shape (n_rows, n_features)."""

    def squared_lengths(self, rows: Floats) -> Floats:
        """Return ``x' P x`` of every row, of shape (n_rows,)."""


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Euclidean distance: ``P`` is the identity divided by a variance that all features share."""

    variance: float

    def directions(self, rows: Floats) -> Floats:
        return rows / self.variance

    def squared_lengths(self, rows: Floats) -> Floats:
        return _squares(rows) / self.variance


@dataclass(frozen=True, eq=False)
class _Whitened:
    """Mahalanobis distance: ``P`` is the inverse of a covariance, given as its Cholesky factor."""

    factor: tuple[Any, bool]

    @classmethod
    def of(cls, moments: Moments, shrinkage: float) -> _Whitened:
        """Factorise the covariance within classes [Hayes2020]."""
        try:
            return cls(cho_factor(shrunk_covariance(moments, shrinkage), overwrite_a=True))
        except LinAlgError as error:
            raise InvalidInputError(
                f"the covariance within classes is singular: set shrinkage above {shrinkage:g}"
            ) from error

    def directions(self, rows: Floats) -> Floats:
        return np.ascontiguousarray(cho_solve(self.factor, rows.T).T)

    def squared_lengths(self, rows: Floats) -> Floats:
        root, lower = self.factor
        white = solve_triangular(root, rows.T, trans=0 if lower else 1, lower=lower)
        return _squares(white.T)


@dataclass(frozen=True, eq=False)
class _Projected:
    """Euclidean distance after a projection ``W``: ``P`` is ``W' W``."""

    components: Floats

    def directions(self, rows: Floats) -> Floats:
        return (rows @ self.components.T) @ self.components

    def squared_lengths(self, rows: Floats) -> Floats:
        return _squares(rows @ self.components.T)


def _squares(rows: Floats) -> Floats:
    return cast("Floats", np.einsum("ij,ij->i", rows, rows))


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

    def on(self, device: Device) -> DeviceLinearScores:
        """Return the same scores on a GPU."""
        return DeviceLinearScores.of(device, self.directions.T, self.offsets, shift=self.centre)

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores of shape (n_rows, n_classes)), a block of rows at a time."""
        max_rows = max(64, min(16384, _SCORE_BYTES // (8 * len(self.offsets))))
        for rows, block in float_blocks(X, max_rows):
            yield rows, self.of_rows(block)[0]


@dataclass(frozen=True, eq=False)
class FittedMeans(FittedSums):
    """Classes, sums over their examples, and the learnt metric if there is one."""

    metric: NCMMetric | None = None
    _projected: _Projected | None = field(init=False, repr=False, default=None)
    # The scores for the last shrinkage, solved once. Each new value starts without any.
    _solved: dict[float, LinearScores] = field(init=False, repr=False, default_factory=dict)

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "moments": Nested(Moments),
        "metric": Model(IS_METRIC, optional=True),
    }

    def __post_init__(self) -> None:
        """Take the projection of the metric as it is now: the caller may train it again."""
        if self.metric is not None:
            object.__setattr__(self, "_projected", _Projected(self.metric.components_))

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the metric does not suit the sums."""
        if self.metric is None:
            return
        if self.metric.n_features_in_ != self.n_features:
            raise InvalidInputError("its metric has other features")
        with np.errstate(all="ignore"):
            are_finite = self.scores(0.0).are_finite
        if not are_finite:
            raise InvalidInputError("its metric overflows")

    def differences(self, other: FittedMeans) -> list[str]:
        """Return what must be equal to merge two models, but is not."""
        if self.n_features != other.n_features:
            return ["the number of features"]
        # The shrinkage may differ: it does not affect the sums.
        kinds = [(one.metric is None, one.moments.settled is None) for one in (self, other)]
        if kinds[0] != kinds[1]:
            return ["metric"]
        if self.metric is not None and other.metric is not None:
            same = np.array_equal(self.metric.components_, other.metric.components_)
            return [] if same else ["the learnt metric (learn one NCMMetric before both models)"]
        per_class = [fitted.moments.class_settled is not None for fitted in (self, other)]
        return [] if per_class[0] == per_class[1] else ["keep_class_statistics"]

    def scores(self, shrinkage: float) -> LinearScores:
        """Return the scores, solved when they are first needed.

        The ``shrinkage`` is that of the Mahalanobis distance.
        """
        shrinkage = 0.0 if self.moments.settled is None else shrinkage
        scores = self._solved.get(shrinkage)
        if scores is None:
            scores = self._solve(shrinkage)
            self._solved.clear()
            self._solved[shrinkage] = scores
        return scores

    def _form(self, shrinkage: float) -> Form:
        """Return the distance that the sums were collected for."""
        if self._projected is not None:
            return self._projected
        if self.moments.settled is None:
            return _Scaled(spread(self.moments))
        return _Whitened.of(self.moments, shrinkage)

    def _solve(self, shrinkage: float) -> LinearScores:
        present = self.moments.class_examples > 0
        # Distances do not depend on the origin, but rounding errors do.
        centre = self.moments.sums[present].sum(axis=0) / self.moments.class_weights[present].sum()
        means = np.where(present[:, None], self.moments.means - centre, 0.0)
        form = self._form(shrinkage)
        directions = form.directions(means)
        offsets = np.where(present, -0.5 * np.einsum("ij,ij->i", means, directions), -np.inf)
        centre = centre + self.moments.origin
        return LinearScores(form, centre, np.ascontiguousarray(directions.T), offsets)

    def fit_scores(self, X: npt.NDArray[Any], shrinkage: float) -> Floats:
        """Return ``-(x - mu)' P (x - mu) / 2`` per class, which is low for rows far from all."""
        scores = self.scores(shrinkage)
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
