"""Features with the answers of a first forest beside them (stacked forests of Ristin 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.standardization import Standardization

__all__ = ["Stack"]


@dataclass(frozen=True, eq=False)
class Stack:
    """A forest of coarse classes, and how its probabilities are put beside the features.

    The features are standardised here, so that the second forest need not: it would otherwise
    divide the probabilities by their spread and undo ``scale``, which is the weight they are to
    have against features of spread one.
    """

    first: FittedForest
    features: Standardization
    scale: float

    @property
    def n_features(self) -> int:
        """Number of features of the input."""
        return self.first.n_features

    def rows(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.float64]:
        """Features for the second forest."""
        n_features, n_classes = self.n_features, len(self.first.labels)
        out = np.empty((X.shape[0], n_features + n_classes))
        for rows, block in self.first.probability_blocks(X, n_threads):
            out[rows, n_features:] = self.scale * block
            plain = np.asarray(X[rows], dtype=np.float64)
            out[rows, :n_features] = (plain - self.features.mean) * self.features.scale
        return out
