"""The scaling of the features that is part of every forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import InvalidInputError

# Quantiles are estimated from about this many bytes of rows.
_QUANTILE_BYTES = 16 << 20
_FEATURES_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Standardization:
    """``(x - mean) * scale`` per feature, fixed for the life of the model."""

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @cached_property
    def core(self) -> _core.Standardizer:
        """The same transform as an object of the core."""
        return _core.Standardizer(self.mean, self.scale)

    @classmethod
    def identity(cls, n_features: int) -> Standardization:
        """Leave features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def of_each(cls, X: npt.NDArray[Any]) -> Standardization:
        """Centre every feature and divide it by its standard deviation.

        A feature that does not vary is only centred.
        """
        mean, variance = _moments(X)
        # A constant feature has a tiny variance from rounding, which is not its spread.
        rounding = (X.shape[0] * np.abs(mean) * np.finfo(np.float64).eps) ** 2
        scale = np.ones(len(mean))
        np.divide(1.0, np.sqrt(variance), out=scale, where=variance > rounding)
        return cls(mean, scale)

    @classmethod
    def common(cls, X: npt.NDArray[Any]) -> Standardization:
        """Centre every feature and divide all by one common number.

        Distances keep their proportions, so nothing but rounding changes: class means come to lie
        where half precision is finest. Centre and number are quantiles of a sample of the rows, so
        outliers do not matter.
        """
        n_rows = max(256, _QUANTILE_BYTES // (8 * X.shape[1]))
        step = -(-X.shape[0] // n_rows)
        sample = np.asarray(X[::step], dtype=np.float64)
        centre, common, most = np.empty(X.shape[1]), 0.0, 0.0
        # Some features at a time, because each pass makes a copy.
        for first in range(0, X.shape[1], _FEATURES_AT_ONCE):
            columns = slice(first, first + _FEATURES_AT_ONCE)
            centre[columns] = np.median(sample[:, columns], axis=0)
            away = np.abs(sample[:, columns] - centre[columns])
            common = max(common, float(np.quantile(away, 0.99, axis=0).max()))
            most = max(most, float(away.max()))
        # If nearly all values equal the centre, the largest deviation is used.
        spread = common if common > 0 else most
        return cls(centre, np.full(X.shape[1], 1.0 / spread if spread > 0 else 1.0))

    def undo(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Convert back to the units of the input."""
        return np.asarray(x / self.scale + self.mean, dtype=np.float64)


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
        raise InvalidInputError("Input X contains values too large to compute their variance.")
    return mean, variance
