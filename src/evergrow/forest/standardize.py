"""The transform of the features that is part of every forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks

__all__ = ["Standardization"]


@dataclass(frozen=True, eq=False)
class Standardization:
    """``(x - mean) * scale`` per feature, fixed for the life of the model."""

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @cached_property
    def core(self) -> _core.Standardizer:
        """The same transform as the core applies it."""
        return _core.Standardizer(self.mean, self.scale)

    @classmethod
    def identity(cls, n_features: int) -> Standardization:
        """Leave features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def of(cls, X: npt.NDArray[Any]) -> Standardization:
        """Centre every feature and divide it by its standard deviation.

        A feature that does not vary is only centred.
        """
        n_rows, n_features = X.shape
        total = np.zeros(n_features)
        for _, block in float_blocks(X):
            _core.add_sums(block, total)
        mean = total / n_rows
        squares = np.zeros(n_features)
        for _, block in float_blocks(X):
            _core.add_squares(block, mean, squares)
        variance = squares / n_rows
        if not np.isfinite(variance).all():
            raise ValueError("Input X contains values too large to compute their variance.")
        # What rounding leaves of a constant feature is not spread.
        rounding = (n_rows * np.abs(mean) * np.finfo(np.float64).eps) ** 2
        varies = variance > rounding
        scale = np.ones(n_features)
        scale[varies] = 1.0 / np.sqrt(variance[varies])
        if not np.isfinite(scale).all():
            raise ValueError("Input X contains a feature whose spread is too small to divide by.")
        return cls(mean, scale)
