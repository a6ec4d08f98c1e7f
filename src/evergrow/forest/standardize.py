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
    def of(cls, X: npt.NDArray[Any], *, each: bool) -> Standardization:
        """Centre every feature and divide it by a standard deviation.

        Either by its own (``each``; a feature that does not vary is only centred), or all by one
        common number. The latter changes no distance relative to another, so no split either; it
        brings class means to where half precision is finest.
        """
        mean, variance = _moments(X)
        # What rounding leaves of a constant feature is not spread.
        rounding = (X.shape[0] * np.abs(mean) * np.finfo(np.float64).eps) ** 2
        variance = np.where(variance > rounding, variance, 0.0)
        if not each:
            variance = np.full_like(variance, variance.mean())
        scale = np.ones(len(mean))
        np.divide(1.0, np.sqrt(variance), out=scale, where=variance > 0)
        return cls(mean, scale)

    def undo(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Back to the units of the input."""
        restored: npt.NDArray[np.float64] = x / self.scale + self.mean
        return restored


def _moments(X: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    n_rows, n_features = X.shape
    total, squares = np.zeros(n_features), np.zeros(n_features)
    for _, block in float_blocks(X):
        _core.add_sums(block, total)
    mean = total / n_rows
    for _, block in float_blocks(X):
        _core.add_squares(block, mean, squares)
    variance = squares / n_rows
    if not np.isfinite(variance).all():
        raise ValueError("Input X contains values too large to compute their variance.")
    return mean, variance
