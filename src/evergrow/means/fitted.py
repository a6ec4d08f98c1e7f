"""Class means and the distance from them, as one value that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from evergrow.blocks import float_blocks
from evergrow.errors import ModelFileError
from evergrow.labels import ClassList
from evergrow.means.distances import Distance
from evergrow.modelfile import check_array
from evergrow.moments import Moments

__all__ = ["FittedMeans", "moments_from_file"]

Floats = npt.NDArray[np.float64]

# Bytes of scores held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20
# A number farther out than this is as good as this far out, and its products stay finite.
_FARTHEST = 1e140


@dataclass(frozen=True, eq=False)
class FittedMeans:
    """Classes, sums over their examples, and the way to measure distances."""

    labels: ClassList
    moments: Moments
    distance: Distance

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.moments.n_features

    @cached_property
    def _planes(self) -> tuple[Floats, Floats, Floats]:
        """Centre, directions and offsets: the scores are ``(X - centre) @ directions + offsets``.

        Solved when a prediction first asks: training adds to the sums and nothing else.
        """
        present = self.moments.class_examples > 0
        # Distances do not depend on the origin, rounding does.
        centre = self.moments.sums[present].sum(axis=0) / self.moments.class_weights[present].sum()
        means = np.where(present[:, None], self.moments.means - centre, 0.0)
        directions = self.distance.directions(means, self.moments)
        offsets = np.where(present, -0.5 * np.einsum("ij,ij->i", means, directions), -np.inf)
        return centre, np.ascontiguousarray(directions.T), offsets

    def score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, scores of shape (n_rows, n_classes))."""
        centre, directions, offsets = self._planes
        max_rows = max(64, min(16384, _PREDICT_BYTES // (8 * len(self.labels))))
        for rows, block in float_blocks(X, max_rows):
            centred = np.clip(block - centre, -_FARTHEST, _FARTHEST)
            yield rows, centred @ directions + offsets

    def scores(self, X: npt.NDArray[Any]) -> Floats:
        """``mu' P x - mu' P mu / 2`` per class, means and rows taken from their common centre."""
        out = np.empty((X.shape[0], len(self.labels)))
        for rows, block in self.score_blocks(X):
            out[rows] = block
        return out

    def probabilities(self, X: npt.NDArray[Any]) -> Floats:
        """Softmax of the scores."""
        probabilities: Floats = softmax(self.scores(X), axis=1)
        return probabilities

    def log_probabilities(self, X: npt.NDArray[Any]) -> Floats:
        """Logarithm of the probabilities."""
        logarithms: Floats = log_softmax(self.scores(X), axis=1)
        return logarithms

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedMeans:
        """Share: nothing in here ever changes."""
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
    moments = Moments.from_tensors(tensors, sums.shape[1], len(labels))
    present = moments.class_examples > 0
    if not present.any() or ((moments.class_weights > 0) != present).any():
        raise ModelFileError("the model file is inconsistent: it has classes without weight")
    if np.abs(moments.means).max() > _FARTHEST * 2 or sums[~present].any():
        raise ModelFileError("the model file is inconsistent: its sums are not sums of examples")
    return moments
