"""The transform of the features of a forest: centred, scaled or whitened, and of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack, solve_triangular

from evergrow import _core
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import Array, Fields

Kind = Literal["whiten", "scale", "none"]

# Quantiles are estimated from about this many bytes of rows.
_QUANTILE_BYTES = 4 << 20
_FEATURES_AT_ONCE = 64
# Residuals whose products are computed at once.
_RESIDUAL_BYTES = 24 << 20
# The deviation of a feature within classes counts as at least this share of its whole deviation, so
# that no feature outweighs all others.
LEAST_DEVIATION = 1 / 32
# As in the core: the power of the length of a sample that is left where lengths are made equal.
_LENGTH_POWER = 0.1


@dataclass(frozen=True, eq=False)
class Standardization:
    """``(x - mean) * scale`` per feature, then a whitening matrix, then one factor per sample.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        Centre and factor of every feature.
    whitening : ndarray of shape (n_features, n_features) or None
        Lower triangular matrix by which scaled features are multiplied.
    kind : {"whiten", "scale", "none"}
        What was done to the features.
    length_features : ndarray of shape (n_features,) or None
        If given, samples are brought to nearly the same distance from the centre: a length l
        becomes proportional to the tenth root of l. Unlike that of a unit vector, it can be undone.
        Features with a 1 count for the length.
    """

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    whitening: npt.NDArray[np.float32] | None = None
    kind: Kind = "scale"
    length_features: npt.NDArray[np.uint8] | None = None

    _stored: ClassVar[Fields] = {
        "mean": Array(np.float64, ("features",), filled=True),
        "scale": Array(np.float64, ("features",), 0.0, open_low=True),
        "whitening": Array(np.float32, ("features", "features"), optional=True),
        "kind": [Choice(("whiten", "scale", "none"))],
        "length_features": Array(np.uint8, ("features",), 0, 1, optional=True),
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for a whitening that was not asked for or cannot be undone."""
        matrix = self.whitening
        if (matrix is not None) != (self.kind == "whiten"):
            raise InvalidInputError("its whitening does not suit what was done to the features")
        if matrix is not None and ((np.diagonal(matrix) <= 0).any() or np.triu(matrix, 1).any()):
            raise InvalidInputError("its whitening is not triangular")

    @cached_property
    def core(self) -> _core.Standardizer:
        """The same transform as an object of the core."""
        return _core.Standardizer(self.mean, self.scale, self.whitening, self.length_features)

    @property
    def equal_lengths(self) -> bool:
        """Whether samples are brought to nearly the same length."""
        return self.length_features is not None

    @classmethod
    def identity(cls, n_features: int) -> Standardization:
        """Leave features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features), kind="none")

    @classmethod
    def of_each(cls, X: npt.NDArray[Any]) -> Standardization:
        """Centre every feature and divide it by its standard deviation.

        A feature that does not vary is only centred.
        """
        mean, variance = _moments(X)
        scale = np.ones(len(mean))
        np.divide(1.0, np.sqrt(variance), out=scale, where=_varies(X.shape[0], mean, variance))
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
        scale = np.full(X.shape[1], 1.0 / spread if spread > 0 else 1.0)
        return cls(centre, scale, kind="none")

    @classmethod
    def whitened(
        cls, plain: Standardization, scatter: ClassScatter, shrinkage: float
    ) -> Standardization:
        """Make the covariance within classes the identity.

        The covariance is shrunk towards its diagonal first: with a shrinkage of 1 features are
        only divided by their deviation within classes. ``plain`` has the centre, and the scale that
        the scatter was measured with.

        For a covariance ``D C D`` with the diagonal ``D^2``, the matrix is the inverse of the
        Cholesky factor of the shrunk ``C``. Any other square root would give the same distances;
        this one is triangular, so applying it costs half as much.
        """
        scale = plain.scale / scatter.deviation
        # Single precision is enough: no eigenvalue is below the shrinkage.
        correlation = scatter.correlation * np.float32(1.0 - shrinkage)
        np.fill_diagonal(correlation, 1.0)
        # Three times as fast as NumPy's, and as solving with the identity.
        root, failed = lapack.spotrf(correlation.T, lower=0, overwrite_a=1)
        if failed:
            raise InvalidInputError(
                "Input X contains values too large to compute their covariance."
            )
        inverse = np.triu(lapack.strtri(root, lower=0, overwrite_c=1)[0]).T
        return cls(plain.mean, scale, np.ascontiguousarray(inverse), "whiten")

    def apply(self, X: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[np.float32]:
        """Transform rows as the core does."""
        block = next(float_blocks(X, max_rows=len(X)))[1] if len(X) else np.zeros(X.shape)
        out = np.empty((len(block), _core.padded_width(X.shape[1])), dtype=np.float32)
        _core.standardize_rows(block, self.core, out, n_threads)
        return out[:, : X.shape[1]]

    def with_equal_lengths(self, varies: npt.NDArray[np.bool_]) -> Standardization:
        """The same for samples of nearly equal length.

        Only features that vary count for the length: in a sample to classify, any other could be
        larger than all of them.
        """
        return replace(self, length_features=varies.astype(np.uint8))

    def with_own_lengths(self) -> Standardization:
        """The same for samples of their own lengths."""
        return replace(self, length_features=None)

    def undo(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Convert samples back to the units of the input."""
        if self.length_features is not None:
            x = np.asarray(x, dtype=np.float64)
            counted = x * self.length_features
            lengths = np.linalg.norm(counted, axis=-1, keepdims=True) / x.shape[-1] ** 0.5
            x = x * np.where(lengths > 0, lengths, 1.0) ** (1.0 / _LENGTH_POWER - 1.0)
        return self.undo_mean(x)

    def undo_mean(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Convert means back to the units of the input.

        The mean of samples of one length is shorter than they are, which says nothing about their
        own lengths.
        """
        if self.whitening is not None:
            x = solve_triangular(self.whitening, np.transpose(x), lower=True).T
        return np.asarray(x / self.scale + self.mean, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ClassScatter:
    """Class means, and the pooled covariance of scaled features within classes.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_features)
        Zero for a class without rows.
    counts : ndarray of shape (n_classes,)
        Rows of each class.
    n_free : int
        Degrees of freedom: rows, less one for each class.
    covariance : ndarray of shape (n_features, n_features)
        Mean product of scaled deviations from the class mean, with ``n_free`` as the number of
        rows.
    """

    means: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    n_free: int
    covariance: npt.NDArray[np.float64]

    @cached_property
    def deviation(self) -> npt.NDArray[np.float64]:
        """Standard deviation of each feature within classes, at least ``LEAST_DEVIATION``."""
        return np.maximum(np.sqrt(np.diagonal(self.covariance)), LEAST_DEVIATION)

    @cached_property
    def correlation(self) -> npt.NDArray[np.float32]:
        """The covariance divided by these deviations."""
        correlation = self.covariance / self.deviation
        correlation /= self.deviation[:, None]
        return correlation.astype(np.float32)

    @classmethod
    def of(
        cls,
        X: npt.NDArray[Any],
        codes: npt.NDArray[np.int32],
        rows: npt.NDArray[np.int64],
        n_classes: int,
        scale: npt.NDArray[np.float64],
    ) -> ClassScatter:
        """Measure the scatter of some ascending rows; ``codes`` are the classes of all rows."""
        counts = np.bincount(codes[rows], minlength=n_classes).astype(np.float64)
        means = class_means(chosen_blocks(X, codes, rows), counts, X.shape[1])
        total = np.zeros((X.shape[1], X.shape[1]))
        # Products of few rows are exact enough in single precision, and twice as fast. Of very few,
        # they are slow again.
        n_most = max(1, _RESIDUAL_BYTES // (4 * X.shape[1]))
        residuals, n = np.empty((min(n_most, len(rows)), X.shape[1]), dtype=np.float32), 0
        for block, own in chosen_blocks(X, codes, rows):
            away = block - means[own]
            for first in range(0, len(away), n_most):
                part = away[first : first + n_most]
                if n + len(part) > n_most:
                    total += residuals[:n].T @ residuals[:n]
                    n = 0
                np.multiply(part, scale, out=residuals[n : n + len(part)], casting="same_kind")
                n += len(part)
        total += residuals[:n].T @ residuals[:n]
        n_free = int(np.maximum(counts - 1.0, 0.0).sum())
        return cls(means, counts, n_free, total / max(n_free, 1))


def class_means(
    blocks: Iterable[tuple[npt.NDArray[Any], npt.NDArray[np.int32]]],
    counts: npt.NDArray[np.float64],
    n_features: int,
) -> npt.NDArray[np.float64]:
    """Means of blocks of rows with their classes, of which there are ``counts``."""
    means = np.zeros((len(counts), n_features))
    for block, own in blocks:
        order = np.argsort(own, kind="stable")
        present, firsts = np.unique(own[order], return_index=True)
        means[present] += np.add.reduceat(block[order], firsts, axis=0, dtype=np.float64)
    return np.asarray(means / np.maximum(counts, 1.0)[:, None])


def chosen_blocks(
    X: npt.NDArray[Any], codes: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]]:
    """Yield blocks of chosen ascending rows in double precision, with their classes."""
    first = 0
    for part, block in float_blocks(X):
        last = int(np.searchsorted(rows, part.stop))
        chosen, first = rows[first:last], last
        if len(chosen):
            yield block[chosen - part.start].astype(np.float64), codes[chosen]


def varying_features(X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which features vary.

    >>> varying_features(np.array([[1.0, 2.0], [1.0, 3.0]])).tolist()
    [False, True]
    """
    return _varies(X.shape[0], *_moments(X))


def _varies(
    n_rows: int, mean: npt.NDArray[np.float64], variance: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    # A constant feature has a tiny variance from rounding, which is not its spread.
    rounding = (n_rows * np.abs(mean) * np.finfo(np.float64).eps) ** 2
    return np.asarray(variance > rounding)


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
