"""Ridge regression from sums of random features, with a penalty chosen on each batch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from evergrow.research.peers.head import (
    AnalyticHead,
    Codes,
    Floats,
    blocks,
    class_sums,
    grown,
    solve_positive,
)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over some rows: products of features, features by class, and the number of rows."""

    gram: Floats
    sums: Floats
    n_rows: int

    def __add__(self, other: Moments) -> Moments:
        n_classes = max(len(self.sums), len(other.sums))
        sums = grown(self.sums, n_classes) + grown(other.sums, n_classes)
        return Moments(self.gram + other.gram, sums, self.n_rows + other.n_rows)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of a Gram matrix above rounding error, and class sums in its eigenvectors.

    The weights for a penalty are ``vectors / (values + penalty) @ targets``.
    """

    values: Floats
    vectors: Floats
    targets: Floats

    @classmethod
    def of(cls, moments: Moments) -> Spectrum:
        """Decompose the sums over some rows."""
        values, vectors = eigh(moments.gram, check_finite=False)
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        vectors = vectors[:, kept]
        return cls(values[kept], vectors, vectors.T @ moments.sums.T)

    @classmethod
    def of_rows(cls, features: Floats, sums: Floats) -> Spectrum:
        """Decompose fewer rows than features, by the products of rows."""
        values, left = eigh(features @ features.T, check_finite=False)
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        vectors = features.T @ (left[:, kept] / np.sqrt(values[kept]))
        return cls(values[kept], vectors, vectors.T @ sums.T)

    def held_out_error(self, held: Moments, penalties: Floats) -> Floats:
        """Return the squared error on one-hot targets of held-out rows, for each penalty."""
        matched = np.sum((self.vectors.T @ held.sums.T) * self.targets, axis=1)
        products = self.vectors.T @ held.gram @ self.vectors
        products *= self.targets @ self.targets.T
        inverse = 1 / (self.values + penalties[:, None])
        squares = np.einsum("pi,ij,pj->p", inverse, products, inverse, optimize=True)
        return np.asarray(held.n_rows - 2 * inverse @ matched + squares)

    def generalised_error(self, n_rows: int, penalties: Floats) -> Floats:
        """Return the generalised cross-validation score on one-hot targets, for each penalty."""
        lengths = np.sum(self.targets**2, axis=1)
        inverse = 1 / (self.values + penalties[:, None])
        residual = n_rows - 2 * inverse @ lengths + (self.values * inverse**2) @ lengths
        free = n_rows - inverse @ self.values
        return np.asarray(np.maximum(residual, 0.0) * n_rows / np.maximum(free, 1e-9) ** 2)


class RidgeHead(AnalyticHead):
    """Ridge regression to one-hot targets without an intercept."""

    n_random_features: int

    def _begin(self, X: Floats) -> None:
        width = self.n_random_features
        self._moments = Moments(np.zeros((width, width)), np.zeros((0, width)), 0)
        self.penalty_ = 1.0
        self._rng = np.random.default_rng(self.random_state)
        self._draw(X.shape[1])

    def _update(self, X: Floats, codes: Codes) -> None:
        penalty, batch = self._choose(X, codes)
        self._moments += batch
        self.penalty_ = self.penalty_ if penalty is None else penalty

    def _solve(self) -> tuple[Floats, Floats]:
        weights = solve_positive(self._moments.gram, self.penalty_, self._moments.sums.T)
        return weights, self._bias_of_unseen()

    def _sum(self, X: Floats, codes: Codes) -> Moments:
        """Sum the features of some rows, block by block."""
        width, n_classes = self.n_random_features, len(self.classes_)
        total = Moments(np.zeros((width, width)), np.zeros((n_classes, width)), 0)
        for rows in blocks(len(X), width):
            features = self._features(X[rows])
            total += Moments(
                features.T @ features, class_sums(features, codes[rows], n_classes), len(features)
            )
        return total

    def _spectrum(self, X: Floats, moments: Moments) -> Spectrum:
        """Decompose the sums over a batch in the cheaper of two ways."""
        if len(X) >= self.n_random_features:
            return Spectrum.of(moments)
        return Spectrum.of_rows(self._features(X), moments.sums)

    @abstractmethod
    def _draw(self, n_inputs: int) -> None:
        """Draw the random projection."""

    @abstractmethod
    def _choose(self, X: Floats, codes: Codes) -> tuple[float | None, Moments]:
        """Return the penalty for a batch, or None if it cannot be chosen, and its sums."""
