"""Scores of least squares from weights that are solved: all that predicting needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.foundation.blocks import float_blocks

__all__ = ["LinearScores", "as_probabilities"]

Floats = npt.NDArray[np.float64]

# Bytes of scores held at once when only the best classes are wanted.
_SCORE_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Weights times features, times a factor per class.

    Attributes
    ----------
    features : FeatureMap
        From inputs to features.
    weights : ndarray of shape (n_classes, n_features) or (n_classes, n_features + 1)
        The last column is the intercept if there is one.
    factors : ndarray of shape (n_classes,)
        0 for classes without examples, whose scores are minus infinity.
    intercept : bool
        Whether there is one.
    """

    features: FeatureMap
    weights: Floats
    factors: Floats
    intercept: bool

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Scores a block of rows at a time: (rows, block)."""
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
        """With weights that nobody changes."""
        return replace(self, weights=np.array(self.weights))


def as_probabilities(scores: Floats, temperature: float) -> Floats:
    """The softmax of scores over a temperature."""
    probabilities: Floats = softmax(scores / temperature, axis=1)
    return probabilities
