"""Ridge scores of classes, and the Mahalanobis distances that follow from them.

The relative Mahalanobis distance of an example to a class is its Mahalanobis distance to the class
mean, with one covariance for all classes, minus that to the mean of all examples, with the
covariance of all. Both covariances are shrunk by the penalty of the ridge regression. Then both
need not be computed: with ``s`` the ridge scores of the example, ``e_c`` the coded label of class
``c``, ``n_c`` and ``n`` the weights of the class and of all examples, ``A`` the penalised Gram
matrix, ``M`` the class sums and ``N`` the diagonal matrix of the class weights, it is

    ``(s - e_c)' K (s - e_c) - 1 / n_c + 1 / n``  with  ``K = (N - M A^-1 M')^-1``.

The distance to the mean of all examples is the leverage ``x' A^-1 x`` minus ``1 / n``, so that the
distance to a class mean is the sum of both.

Without an example of class ``o`` and weight ``w``, with ``h = w x' A^-1 x`` and ``r = s - e_o``,
the scores are ``(s - h e_o) / (1 - h)``, the leverage is divided by ``1 - h``, and ``K`` becomes
``K + w K r r' K / (1 - h - w r' K r)``.

Without all examples ``X`` of class ``o``, with weights ``W``, with ``G = X A^-1 X'``, ``S`` their
scores and ``K_o`` the inverse of ``K^-1`` without the class, their scores become ``L S`` with
``L = (I - G W)^-1``, their leverages the diagonal of ``L G``, and ``K_o`` becomes
``K_o + K_o S' (W^-1 - G - S K_o S')^-1 S K_o``.

Ridge scores of rare classes are low. So that their examples are not called unknown more often, the
scores are recoded: divided by the square root of the class weight, times a common factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from evergrow.estimators.linear.solver import forward_substitute
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import to_host
from evergrow.foundation.lapack import solve_plain

Floats = npt.NDArray[np.float64]

# Residuals below this share of the class weights are rounding errors.
_ROUNDING = 1e-11
_LARGEST = 1e100
# Of drawings and digits, a tenth to a third found the most unknown ones.
_SHRINKAGE = 0.2
# With more classes the matrix K would take longer than everything else.
_MOST_CLASSES = 500
# The power of the class weight. Without recoding, examples of the rarest third of the classes were
# called unknown almost twice as often as others, on drawings and on photographs.
_RECODING = 0.5


class LinearMatrices(NamedTuple):
    """Scores of rows: two for each class, and one of the row alone.

    Attributes
    ----------
    ridge : ndarray of shape (n_rows, n_classes)
        Recoded ridge scores; minus infinity for classes without examples.
    distances : ndarray of shape (n_rows, n_classes)
        Relative distances; infinity for classes without examples.
    apart : ndarray of shape (n_rows,)
        Distances to the mean of all examples.
    """

    ridge: Floats
    distances: Floats
    apart: Floats

    @property
    def best(self) -> Floats:
        """The best ridge score, relative distance and distance of each row, as columns."""
        lowest = self.distances.min(axis=1)
        return np.column_stack([self.ridge.max(axis=1), -lowest, -(lowest + self.apart)])


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Ridge regression of the classes, as the scores of examples.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1)
        Weights of the features and of the constant 1.
    metric : ndarray of shape (n_classes, n_classes)
        The matrix ``K``.
    shortfall : ndarray of shape (n_features + 1,)
        How far the given weights of all classes together are from those of the constant 1. They
        would be equal if the constant were not penalised.
    factor : ndarray of shape (n_features + 1, n_features + 1)
        Cholesky factor of the penalised Gram matrix.
    moments : Moments
        The sums over features with the constant 1.
    """

    weights: Floats
    metric: Floats
    shortfall: Floats
    factor: Floats
    moments: Moments

    @classmethod
    def of(cls, moments: Moments, weights: Floats, factor: Floats) -> LinearScores | None:
        """Return the scores by weights that were solved for on the sums; None if there are none.

        At least two classes need examples, and ridge regression must not fit them exactly. There
        are at most 500 classes. ``factor`` is the Cholesky factor that the weights were solved by.
        """
        if not can_score(moments):
            return None
        known = moments.class_examples > 0
        shortfall = -weights.sum(axis=0)
        shortfall[-1] += 1.0
        # The weights without a penalty of the constant: scores of an example then add up to 1.
        weights = weights + np.outer(weights[:, -1] / (1.0 - shortfall[-1]), shortfall)
        counts = np.where(known, moments.class_weights, 1.0)
        residual = np.diag(counts) - moments.sums @ weights.T
        if not (np.diagonal(residual) > _ROUNDING * counts).all():
            return None
        # Residuals add up to 0, so the matrix is singular in that direction. Its value there has no
        # effect.
        residual[np.ix_(known, known)] += moments.weight / known.sum() ** 2
        metric = _inverse((residual + residual.T) / 2)
        if not np.isfinite(metric).all():
            return None
        return cls(weights, metric, shortfall, factor, moments)

    def matrices(self, rows: Floats) -> LinearMatrices:
        """Return the scores of each row, without the constant 1."""
        shift = self.moments.shift
        rows = np.column_stack([rows, np.ones(len(rows))])
        rows = rows if shift is None else rows - shift
        # Squares of larger scores would overflow.
        scores = np.clip(rows @ self.weights.T, -_LARGEST, _LARGEST)
        left = self.moments.class_weights[None]
        distances = self._distances(scores, scores @ self.metric, left)
        return self._finished(scores, distances, self._leverages(rows), left)

    def left_out(self, batch: Batch) -> LinearMatrices:
        """Return the same for learnt examples, as if each had not been learnt.

        ``batch`` has the constant 1 as its last feature.
        """
        rows, own, weights = batch.rows, batch.codes, batch.weights
        leverages = self._leverages(rows)
        scores = rows @ self.weights.T
        place = (np.arange(len(own)), own)
        residuals = scores.copy()
        residuals[place] -= 1.0
        turned = residuals @ self.metric
        rest = _positive(1.0 - weights * leverages)
        loss = rest - weights * np.einsum("ij,ij->i", residuals, turned)
        gains = weights / _positive(loss)
        scores[place] -= weights * leverages
        scores /= rest[:, None]
        left = np.tile(self.moments.class_weights, (len(own), 1))
        left[place] -= weights
        along = np.einsum("ij,ij->i", scores, turned)[:, None] - turned
        # The product of the new scores and the matrix, without another multiplication.
        products = turned / rest[:, None] + self.metric[own]
        distances = self._distances(scores, products, left) + gains[:, None] * along**2
        # Recoded like a new example: its class is not rarer for the example that is left out.
        found = self._finished(scores, distances, leverages / rest, left)
        recoded = scores * recoding_factors(self.moments.class_weights[None])
        return found._replace(ridge=np.where(left <= 0, -np.inf, recoded))

    def foreign(self, batch: Batch) -> Floats:
        """Return the best scores of all learnt examples, as if their classes had not been learnt.

        The columns are those of :attr:`LinearMatrices.best`. The batch has the constant 1 as its
        last feature.
        """
        halves, vectors = self._halves(batch.rows)
        scores = batch.rows @ self.weights.T
        turned = scores @ self.metric
        best = np.zeros((len(scores), 3))
        order = np.argsort(batch.codes, kind="stable")
        firsts = np.flatnonzero(np.diff(batch.codes[order], prepend=-1))
        for places in np.split(order, firsts[1:]):
            some = halves[places]
            products = some @ some.T + np.outer(*(vector[places] for vector in vectors))
            found = self._without_class(batch.at(places), products, scores[places], turned[places])
            best[places] = found.best
        return best

    def _without_class(
        self, batch: Batch, products: Floats, scores: Floats, turned: Floats
    ) -> LinearMatrices:
        """Return the scores of all examples of one class as if none of them had been learnt.

        They are computed from ``X A^-1 X'``, the scores ``S`` and ``S K``. They are NaN if rounding
        errors leave nothing of them.
        """
        own = int(batch.codes[0])
        column = self.metric[own] / self.metric[own, own]
        # The product with the matrix without the class.
        turned = turned - np.outer(turned[:, own], column)
        rest = np.diag((1.0 + _ROUNDING) / batch.weights) - products
        grown = _inverse(rest) / batch.weights[:, None]
        core = _inverse(rest - turned @ scores.T)
        scores, leverages = grown @ scores, np.einsum("ij,ji->i", grown, products)
        along, bent = scores @ turned.T, core @ turned
        left = self.moments.class_weights[None].copy()
        left[0, own] = 0.0
        distances = self._distances(scores, grown @ turned, left)
        distances += np.einsum("ij,ij->i", along @ core, along)[:, None] - 2 * along @ bent
        distances += np.einsum("ij,ij->j", turned, bent) - column * self.metric[own]
        return self._finished(scores, distances, leverages, left)

    def _leverages(self, rows: Floats) -> Floats:
        """Return ``x' A^-1 x`` without a penalty of the constant, by a factor with one."""
        halves, (left, right) = self._halves(rows)
        return cast("Floats", np.einsum("ij,ij->i", halves, halves) + left * right)

    def _halves(self, rows: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
        """Return ``H`` and two vectors: ``X A^-1 X'`` is ``H H'`` plus their outer product."""
        halves = forward_substitute(self.factor, rows)
        left, right = self.leverage_vectors
        return halves, (rows @ left, rows @ right)

    @cached_property
    def leverage_vectors(self) -> tuple[Floats, Floats]:
        """Two vectors whose products with a row, multiplied, undo the penalty of the constant.

        They are solved for once, not for each row.
        """
        solved = np.zeros((1, len(self.factor)))
        # The solution of ``R' z = e`` with the last unit vector ``e``.
        solved[0, -1] = 1.0 / self.factor[-1, -1]
        solve_plain(self.factor, solved)
        return self.shortfall / (1.0 - self.shortfall[-1]), solved[0]

    def _distances(self, scores: Floats, turned: Floats, left: Floats) -> Floats:
        """Return relative distances by scores, ``K s`` and the class weights that are left."""
        squares = np.einsum("ij,ij->i", scores, turned)[:, None]
        offsets = 1.0 / np.where(left > 0, left, 1.0) - 1.0 / left.sum(axis=1, keepdims=True)
        return cast("Floats", squares - 2 * turned + np.diagonal(self.metric) - offsets)

    def _finished(
        self, scores: Floats, distances: Floats, leverages: Floats, left: Floats
    ) -> LinearMatrices:
        """Recode the scores, by the class weights that are left, and leave out empty classes."""
        empty = np.broadcast_to(left <= 0, scores.shape)
        return LinearMatrices(
            np.where(empty, -np.inf, scores * recoding_factors(left)),
            np.where(empty, np.inf, distances),
            leverages - 1.0 / left.sum(axis=1),
        )


def recoding_factors(left: Floats) -> Floats:
    """Return factors that favour rare classes, by the class weights that are left; of mean 1."""
    powers = np.where(left > 0, left, 1.0) ** -_RECODING
    means = np.sum(left * powers, axis=1) / np.sum(left, axis=1)
    return cast("Floats", powers / means[:, None])


def can_score(moments: Moments) -> bool:
    """Whether there are classes enough, and not too many."""
    return bool((moments.class_examples > 0).sum() >= 2 and moments.n_classes <= _MOST_CLASSES)


def with_constant(moments: Moments) -> Moments:
    """Return the sums over the same examples with the constant 1 as one more feature."""
    n_features = moments.n_features
    sums = np.column_stack([moments.sums, moments.class_weights])
    gram = np.zeros((n_features + 1, n_features + 1))
    gram[:-1, :-1] = to_host(moments.gram)
    gram[:, -1] = sums.sum(axis=0)
    return Moments(
        tuple(sums),
        moments.class_weights,
        moments.class_examples,
        moments.class_squares + moments.class_weights,
        gram,
        None,
        moments.peak,
        shift=None if moments.shift is None else np.append(moments.shift, 0.0),
    )


def batch_with_constant(batch: Batch) -> Batch:
    """Return the same examples with the constant 1 as one more feature."""
    rows = np.column_stack([batch.rows, np.ones(len(batch.rows))])
    return Batch(rows, batch.codes, batch.weights)


def default_shrinkage(moments: Moments) -> float:
    """Return the penalty of ridge regression and covariances; 0 if the examples do not differ.

    It is a fifth of the squared distance of an example from the mean of all, or less with fewer
    examples than features: relative to the covariance it vanishes with many examples.
    """
    total = moments.sums.sum(axis=0)
    scatter = moments.squares - float(total @ total) / moments.weight
    if scatter <= _ROUNDING * moments.squares:
        return 0.0
    return _SHRINKAGE * scatter / max(moments.n_examples, moments.n_features)


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive definite matrix; NaN if it is not one."""
    triangle, problem = lapack.dpotrf(matrix, lower=1, clean=1)
    if problem:
        return np.full_like(matrix, np.nan)
    lower = np.tril(lapack.dpotri(triangle, lower=1)[0])
    return cast("Floats", lower + np.tril(lower, -1).T)


def _positive(values: Floats) -> Floats:
    """Return values of at least the smallest number that can be told from zero next to 1."""
    return np.maximum(values, np.finfo(np.float64).eps)
