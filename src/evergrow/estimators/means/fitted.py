"""Class means and the distance from them, as one value that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.means.distances import Distance, Euclidean, Form, Learnt, Mahalanobis
from evergrow.estimators.sums.moments import Moments
from evergrow.estimators.sums.moments_file import moments_from_tensors
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.modelfile import check_array

__all__ = ["FittedMeans", "moments_from_file"]

Floats = npt.NDArray[np.float64]

# Bytes of scores held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20
# A number farther out than this is as good as this far out, and its products stay finite.
_FARTHEST = 1e140


@dataclass(frozen=True, eq=False)
class Planes:
    """The scores are ``(X - centre) @ directions + offsets``."""

    form: Form
    centre: Floats
    directions: Floats
    offsets: Floats

    @property
    def are_finite(self) -> bool:
        """Whether all scores are numbers; those of classes without examples are minus infinity."""
        farthest = np.abs(self.directions).sum(axis=0) * _FARTHEST
        fine = np.isfinite(farthest).all() and (self.offsets < np.inf).all()
        return bool(fine and np.isfinite(self.offsets[farthest > 0]).all())

    def scores(self, block: Floats) -> tuple[Floats, Floats]:
        """Scores of some rows, and the rows from the centre."""
        centred = np.clip(block - self.centre, -_FARTHEST, _FARTHEST)
        return centred @ self.directions + self.offsets, centred

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, scores of shape (n_rows, n_classes))."""
        max_rows = max(64, min(16384, _PREDICT_BYTES // (8 * len(self.offsets))))
        for rows, block in float_blocks(X, max_rows):
            yield rows, self.scores(block)[0]


@dataclass(frozen=True, eq=False)
class FittedMeans:
    """Classes, sums over their examples, and the metric that was learnt if any was."""

    labels: ClassList
    moments: Moments
    learnt: Learnt | None = None
    # Of the distance that was last asked for: what does not change needs no solving again.
    _solved: dict[Distance, Planes] = field(default_factory=dict, repr=False)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_features

    def distance(self, shrinkage: float) -> Distance:
        """How to measure: what the sums were kept for, with this shrinkage."""
        if self.learnt is not None:
            return self.learnt
        return Euclidean() if self.moments.settled is None else Mahalanobis(shrinkage)

    def planes(self, distance: Distance) -> Planes:
        """Solved when a prediction first asks: training adds to the sums and nothing else."""
        planes = self._solved.get(distance)
        if planes is None:
            planes = self._solve(distance)
            self._solved.clear()
            self._solved[distance] = planes
        return planes

    def _solve(self, distance: Distance) -> Planes:
        present = self.moments.class_examples > 0
        # Distances do not depend on the origin, rounding does.
        centre = self.moments.sums[present].sum(axis=0) / self.moments.class_weights[present].sum()
        means = np.where(present[:, None], self.moments.means - centre, 0.0)
        form = distance.form(self.moments)
        directions = form.directions(means)
        offsets = np.where(present, -0.5 * np.einsum("ij,ij->i", means, directions), -np.inf)
        return Planes(form, centre, np.ascontiguousarray(directions.T), offsets)

    def fit_scores(self, X: npt.NDArray[Any], distance: Distance) -> Floats:
        """``-(x - mu)' P (x - mu) / 2`` per class, which far-out rows have little of."""
        planes = self.planes(distance)
        out = np.empty((X.shape[0], len(self.labels)))
        for rows, block in float_blocks(X):
            scores, centred = planes.scores(block)
            # What lies too far out for a number fits nothing.
            with np.errstate(over="ignore"):
                out[rows] = scores - planes.form.squared_lengths(centred)[:, None] / 2
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedMeans:
        """Share: nothing in here ever changes but what is solved, which follows from the rest."""
        return self


def moments_from_file(
    tensors: dict[str, npt.NDArray[Any]], labels: ClassList, *, gram: bool, per_class: bool
) -> Moments:
    """The sums that a file holds; a ``ModelFileError`` unless they can be sums of examples."""
    sums = check_array(tensors.get("class_sums"), "class_sums", np.float64, (len(labels), None))
    if not sums.shape[1]:
        raise ModelFileError("the model file is inconsistent: it has no features")
    if ("gram" in tensors) != gram or ("class_grams" in tensors) != per_class:
        raise ModelFileError("the model file is inconsistent: its sums do not suit its metric")
    return moments_from_tensors(tensors, sums.shape[1], len(labels))
