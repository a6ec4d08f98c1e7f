"""Ridge regression in the basis of principal components, and its left-out scores.

In that basis a change of the penalty only scales the components, so many penalties can be compared
for the price of one. With ``z`` an example about the mean in that basis, ``e`` the eigenvalues and
``n`` the number of examples, its leverage is ``h = 1/n + sum z^2 / (e + penalty)``; the first term
is that of the intercept, which is not penalised. What follows from scores and leverages is
:func:`evergrow.estimators.linear.left_out_scores.leave_out`.

The solutions here are not those of ``linear.leave_one_out``. That judges up to a few thousand
stored examples, with weights, near-equal ones together and in double precision, and solves again
for each penalty. Here all examples are judged, of which there may be a hundred thousand, in single
precision and with one eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import blas

from evergrow.estimators.linear.left_out_scores import leave_out
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.device import to_host

Floats = npt.NDArray[np.floating[Any]]
Codes = npt.NDArray[np.int32]

# Bytes of the features that are converted at once.
_BLOCK_BYTES = 1 << 26
# Eigenvalues below this share of the largest are rounding error of single precision.
_ROUNDING = 1e-10


def blocks_of(rows: npt.NDArray[Any], width: int = 0) -> Iterator[slice]:
    """Yield slices of rows that take bounded memory with ``width`` more columns each."""
    size = max(256, _BLOCK_BYTES // (4 * max(1, rows.shape[1] + width)))
    for first in range(0, len(rows), size):
        yield slice(first, min(first + size, len(rows)))


@dataclass(frozen=True, eq=False)
class RotatedRidge:
    """Sums over labelled examples, rotated so that the Gram matrix is diagonal.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the examples.
    basis : ndarray of shape (n_features, n_components), float32
        Principal components in columns.
    eigenvalues : ndarray of shape (n_components,)
        Of the Gram matrix about the mean.
    right : ndarray of shape (n_components, n_classes)
        Class sums about the mean, in the basis.
    class_counts : ndarray of shape (n_classes,)
        Examples per class.
    """

    mean: npt.NDArray[np.float64]
    basis: npt.NDArray[np.float32]
    eigenvalues: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]
    class_counts: npt.NDArray[np.float64]

    @classmethod
    def of(cls, X: npt.NDArray[Any], codes: Codes, n_classes: int) -> RotatedRidge:
        """Sum over examples, in blocks and single precision."""
        mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
        counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
        few = len(X) <= X.shape[1]
        sums, gram = np.zeros((n_classes, X.shape[1])), np.zeros((X.shape[1], X.shape[1]))
        for part in blocks_of(X):
            rows = centred(X[part], mean)
            sums += one_hot(codes[part], n_classes).T @ rows
            if not few:
                gram += blas.ssyrk(1.0, rows.T, lower=1)
        basis, eigenvalues = _rotate_few(X, mean) if few else _eigenvectors(gram, lower=True)
        right = basis.T.astype(np.float64) @ sums.T
        return cls(mean, basis, eigenvalues, right, counts)

    @classmethod
    def of_moments(cls, moments: Moments) -> RotatedRidge:
        """Rotate the sums of a model whose last feature is the constant 1."""
        counts, n = moments.class_weights, moments.weight
        sums = moments.sums[:, :-1]
        mean = sums.sum(axis=0) / n
        gram = to_host(moments.gram)[:-1, :-1] - n * np.outer(mean, mean)
        basis, eigenvalues = _eigenvectors(gram, lower=False)
        right = basis.T.astype(np.float64) @ (sums - counts[:, None] * mean).T
        return cls(mean, basis, eigenvalues, right, counts)

    @property
    def n_examples(self) -> float:
        """Number of examples in the sums."""
        return float(self.class_counts.sum())

    @property
    def unit(self) -> float:
        """The unit of penalties: the variance of the features times the number of examples."""
        total = float(self.eigenvalues.sum())
        return total / len(self.mean) if total > 0 else 1.0

    def rotated(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Express examples about the mean in the basis."""
        return centred(rows, self.mean) @ self.basis

    def freedom(self, penalty: float) -> float:
        """Effective degrees of freedom per example."""
        used = float((self.eigenvalues / (self.eigenvalues + penalty)).sum())
        return (1.0 + used) / self.n_examples

    def weights(self, penalty: float) -> npt.NDArray[np.float32]:
        """Weights of rotated examples, of shape (n_components, n_classes)."""
        scaled = self.right / (self.eigenvalues + penalty)[:, None]
        return np.asarray(scaled, dtype=np.float32)

    @property
    def intercepts(self) -> npt.NDArray[np.float32]:
        """Scores of an example at the mean: the share of each class."""
        return np.asarray(self.class_counts / self.n_examples, dtype=np.float32)

    def scores(self, rotated: npt.NDArray[np.float32], penalty: float) -> npt.NDArray[np.float32]:
        """Scores of examples by all examples."""
        return rotated @ self.weights(penalty) + self.intercepts

    def leverages(
        self, rotated: npt.NDArray[np.float32], penalty: float
    ) -> npt.NDArray[np.float32]:
        """How much each example's own label contributes to its score; below 1."""
        inverse = (1.0 / (self.eigenvalues + penalty)).astype(np.float32)
        found = rotated**2 @ inverse + np.float32(1.0 / self.n_examples)
        return np.asarray(np.minimum(found, np.float32(1.0 - 1e-6)))

    def left_out(
        self, rotated: npt.NDArray[np.float32], codes: Codes, penalty: float
    ) -> npt.NDArray[np.float32]:
        """Scores of each learnt example by all others."""
        scores = self.scores(rotated, penalty)
        return leave_out(scores, codes, self.leverages(rotated, penalty))

    def fit(self, penalty: float, rows: npt.NDArray[Any], codes: Codes) -> RidgeFit:
        """Solve for one penalty; the examples are those in the sums."""
        weights = self.basis @ self.weights(penalty)
        return RidgeFit(self, penalty, weights, rows, codes)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The solution for one penalty, and what leaving out each of its examples needs.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_classes)
        Weights of the features about their mean.
    rows, codes : ndarray
        Examples in the sums, and their classes.
    """

    ridge: RotatedRidge
    penalty: float
    weights: npt.NDArray[np.float32]
    rows: npt.NDArray[Any]
    codes: Codes

    @property
    def leverages(self) -> npt.NDArray[np.float32]:
        """Diagonal of the hat matrix."""
        return self._hat[0]

    @property
    def spreads(self) -> npt.NDArray[np.float32]:
        """Sum of the squares of each row of the hat matrix."""
        return self._hat[1]

    @cached_property
    def _hat(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Leverages and spreads, which take the longest and are not always needed."""
        ridge, eigenvalues = self.ridge, self.ridge.eigenvalues
        scale = (eigenvalues / (eigenvalues + self.penalty) ** 2).astype(np.float32)
        leverages, spreads = np.empty((2, len(self.rows)), dtype=np.float32)
        for part in blocks_of(self.rows, len(eigenvalues)):
            rotated = ridge.rotated(self.rows[part])
            leverages[part] = ridge.leverages(rotated, self.penalty)
            spreads[part] = rotated**2 @ scale + 1.0 / ridge.n_examples
        return leverages, spreads

    def blocks(self, width: int = 0) -> Iterator[slice]:
        """Slices of the examples, with room for ``width`` more columns than their scores."""
        return blocks_of(self.rows, self.weights.shape[1] + width)

    def centred(self, part: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return some examples about the mean."""
        return centred(self.rows[part], self.ridge.mean)

    def left_out(self, part: slice) -> npt.NDArray[np.float32]:
        """Scores of some examples by all others."""
        scores = self.centred(part) @ self.weights + self.ridge.intercepts
        return leave_out(scores, self.codes[part], self.leverages[part])

    def residuals(
        self, part: slice | npt.NDArray[np.int64], rows: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """Coded labels of some examples minus their scores by all examples."""
        found = -(rows @ self.weights + self.ridge.intercepts)
        found[np.arange(len(rows)), self.codes[part]] += 1.0
        return found


def centred(rows: npt.NDArray[Any], mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Subtract the mean before rounding to single precision, which an offset would use up."""
    if rows.dtype == np.float32:
        return np.asarray(np.subtract(rows, mean.astype(np.float32)))
    return np.asarray(rows - mean, dtype=np.float32)


def one_hot(codes: Codes, n_classes: int) -> Any:
    """Return a sparse matrix with a one in the column of each example's class."""
    n = len(codes)
    shape = (n, n_classes)
    return sparse.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=shape)


def _eigh(
    matrix: npt.NDArray[np.float64], *, lower: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenvalues and eigenvectors by divide and conquer, the fastest way for all of them."""
    values, vectors = linalg.eigh(
        matrix, lower=lower, overwrite_a=True, check_finite=False, driver="evd"
    )
    return values, vectors


def _eigenvectors(
    gram: npt.NDArray[np.float64], *, lower: bool
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Eigenvectors and eigenvalues of the Gram matrix of the features."""
    eigenvalues, basis = _eigh(gram, lower=lower)
    return np.asarray(basis, dtype=np.float32), np.maximum(eigenvalues, 0.0)


def _rotate_few(
    X: npt.NDArray[Any], mean: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Return the same with fewer examples than features, by the products of the examples."""
    rows = X - mean
    eigenvalues, vectors = _eigh(rows @ rows.T, lower=True)
    kept = eigenvalues > _ROUNDING * max(float(eigenvalues[-1]), np.finfo(float).tiny)
    eigenvalues = eigenvalues[kept]
    basis = (rows.T @ vectors[:, kept]) / np.sqrt(eigenvalues)
    return np.asarray(basis, dtype=np.float32), eigenvalues
