"""Ridge regression, and the scores of its learnt examples by all others, in closed form.

In the basis of principal components a change of the penalty only scales the components, so many
penalties can be compared for the price of one. With ``z`` an example about the mean in that basis,
``e`` the eigenvalues and ``n`` the number of examples, its leverage is
``h = 1/n + sum z^2 / (e + penalty)``; the first term is that of the intercept, which is not
penalised. :class:`RotatedRidge` judges examples that way: a hundred thousand in single precision,
some hundred in double precision.

:class:`Leaving` judges stored examples of weighted sums, near-equal ones together, by a factor of
the equations of one penalty (:mod:`evergrow.estimators.linear.equations`). A class of weight ``N``
and mean ``m`` without examples of weights ``w``, that differ from ``m`` by ``r``, has the weight
``n = N - sum w`` and the mean ``m - sum e r`` with ``e = w / n``. If its mean counts ``c(n)`` times
in the equations, ``A`` becomes ``A - U C U'`` with ``U = [r, m]`` and

    ``C = [[diag(w) + (n - c(n)) e e', c(n) e], [c(n) e', c(N) - c(n)]]``.

So with ``K = U' A^-1 U`` the inverse of ``A`` grows by ``A^-1 U F U' A^-1``, where
``F = (I - C K)^-1 C``. If nothing is left of the class, ``e`` and ``c(n)`` are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import blas

from evergrow.estimators.linear.equations import Equations, Ridge, mean_counts
from evergrow.estimators.linear.scoring import cosine_factors, mean_product
from evergrow.estimators.linear.solver import factorise, forward_substitute
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import array_module, as_double, is_tensor, place_like, to_host

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
# Of single or double precision; of rows on a device a tensor.
Scores = Any

_EPS = np.finfo(np.float64).eps
# Bytes of the features that are converted at once.
_BLOCK_BYTES = 1 << 26
# Eigenvalues below this share of the largest are rounding errors of single precision.
_ROUNDING = 1e-10


def blocks_of(rows: npt.NDArray[Any], width: int = 0) -> Iterator[slice]:
    """Yield slices of rows that take bounded memory with ``width`` more columns each."""
    size = max(256, _BLOCK_BYTES // (4 * max(1, rows.shape[1] + width)))
    for first in range(0, len(rows), size):
        yield slice(first, min(first + size, len(rows)))


def centred(rows: npt.NDArray[Any], mean: Floats, dtype: Any = np.float32) -> Scores:
    """Subtract the mean before rounding to single precision, which an offset would use up."""
    if is_tensor(rows):
        return rows - mean
    return np.asarray(rows - (mean.astype(dtype) if rows.dtype == dtype else mean), dtype=dtype)


def one_hot(codes: Codes, n_classes: int) -> Any:
    """Return a sparse matrix with a one in the column of each example's class."""
    n = len(codes)
    return sparse.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, n_classes))


@dataclass(frozen=True, eq=False)
class RotatedRidge:
    """Sums over labelled examples, rotated so that the Gram matrix is diagonal.

    Of examples on a device all but the counts are tensors, in double precision.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the examples.
    basis : ndarray of shape (n_features, n_components)
        Principal components in columns, in the precision of the scores.
    eigenvalues : ndarray of shape (n_components,)
        Of the Gram matrix about the mean, without those that are zero up to rounding.
    right : ndarray of shape (n_components, n_classes)
        Class sums about the mean, in the basis.
    class_counts : ndarray of shape (n_classes,)
        Examples per class.
    """

    mean: Floats
    basis: Scores
    eigenvalues: Floats
    right: Floats
    class_counts: Floats

    @classmethod
    def of(
        cls, X: npt.NDArray[Any], codes: Codes, n_classes: int, dtype: Any = np.float32
    ) -> RotatedRidge:
        """Sum over examples in blocks of a precision; of fewer than features in double."""
        mean: Any = X.mean(axis=0) if is_tensor(X) else np.mean(X, axis=0, dtype=np.float64)
        if dtype == np.float64:
            # A second pass removes rounding errors, which would otherwise count as a direction.
            mean = mean + (X - mean).mean(axis=0)
        few = len(X) <= X.shape[1]
        sums: Any = 0.0
        gram: Any = 0.0
        for part in blocks_of(X):
            rows = centred(X[part], mean, dtype)
            coded = one_hot(codes[part], n_classes).T
            sums = sums + (place_like(coded.toarray(), X) if is_tensor(X) else coded) @ rows
            if not few:
                gram = gram + as_double(_lower_products(rows))
        rounding = max(X.shape) * _EPS if dtype == np.float64 else _ROUNDING
        if few:
            rows = X - mean
            eigenvalues, vectors = _eigh(rows @ rows.T, rounding)
            basis = rows.T @ (vectors / eigenvalues**0.5)
        else:
            eigenvalues, basis = _eigh(gram, rounding)
        counts = np.bincount(codes, minlength=n_classes)
        return cls._of(mean, basis, eigenvalues, sums, counts, dtype)

    @classmethod
    def of_moments(cls, moments: Moments) -> RotatedRidge:
        """Rotate the sums of a model whose last feature is the constant 1."""
        counts, n = moments.class_weights, moments.weight
        sums = moments.sums[:, :-1]
        mean = sums.sum(axis=0) / n
        gram = to_host(moments.gram)[:-1, :-1] - n * np.outer(mean, mean)
        eigenvalues, basis = _eigh(gram.T)
        return cls._of(mean, basis, eigenvalues, sums - counts[:, None] * mean, counts, np.float32)

    @classmethod
    def _of(
        cls, mean: Floats, basis: Floats, eigenvalues: Floats, sums: Floats, counts: Any, dtype: Any
    ) -> RotatedRidge:
        """Rotate class sums about the mean, in double precision by the rounded basis."""
        basis = basis if is_tensor(basis) else basis.astype(dtype)
        right = as_double(basis).T @ sums.T
        return cls(mean, basis, eigenvalues, right, counts.astype(np.float64))

    @property
    def n_examples(self) -> float:
        """Number of examples in the sums."""
        return float(self.class_counts.sum())

    @property
    def unit(self) -> float:
        """The unit of penalties: the variance of the features times the number of examples."""
        total = float(self.eigenvalues.sum())
        return total / len(self.mean) if total > 0 else 1.0

    def rotated(self, rows: npt.NDArray[Any]) -> Scores:
        """Express examples about the mean in the basis."""
        return self.centred(rows) @ self.basis

    def centred(self, rows: npt.NDArray[Any]) -> Scores:
        """Return examples about the mean, in the precision of the scores."""
        return centred(rows, self.mean, self.basis.dtype)

    def freedom(self, penalty: float) -> float:
        """Effective degrees of freedom per example."""
        used = float((self.eigenvalues / (self.eigenvalues + penalty)).sum())
        return (1.0 + used) / self.n_examples

    def weights(self, penalty: float) -> Scores:
        """Weights of rotated examples, of shape (n_components, n_classes)."""
        return self.rounded(self.right / (self.eigenvalues + penalty)[:, None])

    @property
    def intercepts(self) -> Scores:
        """Scores of an example at the mean: the share of each class."""
        return self.rounded(place_like(self.class_counts / self.n_examples, self.basis))

    def leverages(self, rotated: Scores, penalty: float) -> Scores:
        """How much each example's own label contributes to its score; below 1."""
        found = rotated**2 @ self.rounded(1.0 / (self.eigenvalues + penalty))
        most = 1.0 - 8 * (_EPS if is_tensor(found) else np.finfo(found.dtype).eps)
        return (found + 1.0 / self.n_examples).clip(max=most)

    def left_out(self, rotated: Scores, codes: Codes, penalty: float) -> Scores:
        """Scores of each learnt example by all others."""
        scores = rotated @ self.weights(penalty) + self.intercepts
        return leave_out(scores, codes, self.leverages(rotated, penalty))

    def fit(self, penalty: float, rows: npt.NDArray[Any], codes: Codes) -> RidgeFit:
        """Solve for one penalty; the examples are those in the sums."""
        return RidgeFit(self, penalty, self.basis @ self.weights(penalty), rows, codes)

    def rounded(self, values: Floats) -> Scores:
        """Return values in the precision of the scores."""
        return values if is_tensor(values) else values.astype(self.basis.dtype)


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
    weights: Scores
    rows: npt.NDArray[Any]
    codes: Codes

    @property
    def leverages(self) -> Scores:
        """Diagonal of the hat matrix."""
        return self._hat[0]

    @property
    def spreads(self) -> Scores:
        """Sum of the squares of each row of the hat matrix."""
        return self._hat[1]

    @cached_property
    def _hat(self) -> tuple[Scores, Scores]:
        """Leverages and spreads, which take the longest and are not always needed."""
        ridge, eigenvalues = self.ridge, self.ridge.eigenvalues
        scale = ridge.rounded(eigenvalues / (eigenvalues + self.penalty) ** 2)
        leverages, spreads = np.empty((2, len(self.rows)), dtype=self.weights.dtype)
        for part in blocks_of(self.rows, len(eigenvalues)):
            rotated = ridge.rotated(self.rows[part])
            leverages[part] = ridge.leverages(rotated, self.penalty)
            spreads[part] = rotated**2 @ scale + 1.0 / ridge.n_examples
        return leverages, spreads

    def blocks(self, width: int = 0) -> Iterator[slice]:
        """Slices of the examples, with room for ``width`` more columns than their scores."""
        return blocks_of(self.rows, self.weights.shape[1] + width)

    def centred(self, part: slice | Integers) -> Scores:
        """Return some examples about the mean."""
        return self.ridge.centred(self.rows[part])

    def scores(self, rows: npt.NDArray[Any]) -> Scores:
        """Scores of any rows by all examples."""
        return self.ridge.centred(rows) @ self.weights + self.ridge.intercepts

    def left_out(self, part: slice) -> Scores:
        """Scores of some examples by all others."""
        return leave_out(self.scores(self.rows[part]), self.codes[part], self.leverages[part])

    def residuals(self, part: slice | Integers, rows: Scores) -> Scores:
        """Coded labels of some examples minus their scores by all examples."""
        found = -(rows @ self.weights + self.ridge.intercepts)
        found[np.arange(len(rows)), self.codes[part]] += 1.0
        return found


def leave_out(scores: Scores, codes: Codes, leverages: Scores) -> Scores:
    """Turn regressions by all examples into regressions by all others, in place."""
    scores[np.arange(len(codes)), codes] -= leverages
    # Leverages are below 1 as long as there is a penalty.
    scores /= (1.0 - leverages)[:, None]
    return scores


def _lower_products(rows: Scores) -> Scores:
    """Return the lower triangle of ``Z'Z``."""
    if is_tensor(rows):
        return rows.T @ rows
    return blas.get_blas_funcs("syrk", (rows,))(1.0, rows.T, lower=1)


def _eigh(matrix: Floats, rounding: float = _ROUNDING) -> tuple[Floats, Floats]:
    """Return eigenvalues above rounding errors, and their vectors, by the lower triangle."""
    if is_tensor(matrix):
        values, vectors = array_module(matrix).linalg.eigh(matrix)
    else:
        # By divide and conquer, the fastest way for all of them.
        options: Any = {"overwrite_a": True, "check_finite": False, "driver": "evd"}
        values, vectors = linalg.eigh(matrix, lower=True, **options)
    kept = values > rounding * max(float(values[-1]), np.finfo(float).tiny)
    return values[kept], vectors[:, kept]


class Halves(NamedTuple):
    """Examples and class means in coordinates where products are those of ``A^-1``."""

    rows: Floats
    means: Floats


class Solved(NamedTuple):
    """The Cholesky factor ``R`` of ``A = R'R``, and ``R'^-1`` times the class means."""

    factor: Floats
    means: Floats

    @classmethod
    def of(cls, equations: Equations, ridge: Ridge) -> Solved:
        """Factorise the equations."""
        factor = factorise(equations.gram, ridge)
        return cls(factor, forward_substitute(factor, equations.means))

    def halves(self, rows: Floats) -> Halves:
        """Return examples in coordinates where products are those of ``A^-1``."""
        return Halves(forward_substitute(self.factor, rows), self.means)


@dataclass(frozen=True, eq=False)
class Prepared:
    """All examples as rows whose Gram matrix is ``A`` without the penalty.

    These are ``z = sqrt(w) (x - m + sqrt(c / n) m)``, if the mean ``m`` of the ``n`` examples of a
    class counts ``c`` times. The rows of a class, times ``u = sqrt(w / (n c))``, add up to ``m``.
    """

    batch: Batch
    means: Floats
    class_weights: Floats
    counts: Floats

    @classmethod
    def of(cls, batch: Batch, everything: Moments, ridge: Ridge) -> Prepared:
        """Prepare the examples of some sums, all of them."""
        weights = everything.class_weights
        return cls(batch, everything.means, weights, mean_counts(weights, ridge))

    @property
    def rows(self) -> Floats:
        """The rows ``z``."""
        rows = self.batch.rows - self.means[self.batch.codes] * (1.0 - self._shares)[:, None]
        rows *= self.batch.roots[:, None]
        return rows

    @property
    def constants(self) -> Floats:
        """What the constant feature becomes."""
        return self.batch.roots * self._shares

    @property
    def _shares(self) -> Floats:
        """``sqrt(c / n)`` of the class of each example."""
        return mean_shares(self.class_weights, self.counts)[self.batch.codes]

    def restore(self, halves: Floats) -> Halves:
        """Return examples and class means for prepared rows, in the same coordinates."""
        codes = self.batch.codes
        coded = np.zeros((len(codes), len(self.counts)))
        sizes = (self.class_weights * self.counts)[codes]
        coded[np.arange(len(codes)), codes] = self.batch.roots / np.sqrt(sizes)
        means = coded.T @ halves
        rows = halves / self.batch.roots[:, None]
        rows += means[codes] * (1.0 - self._shares)[:, None]
        return Halves(rows, means)


def mean_shares(class_weights: Floats, counts: Floats) -> Floats:
    """Return ``sqrt(c / n)`` of each class; 0 without examples."""
    return np.sqrt(np.divide(counts, class_weights, out=np.zeros_like(counts), where=counts > 0))


@dataclass(frozen=True, eq=False)
class Leaving:
    """Which examples are left out together, and what is left of their classes.

    Attributes
    ----------
    batch : Batch
        The examples, of known classes.
    groups : ndarray of shape (n_examples,)
        Number of the group that each is left out with.
    left : ndarray of shape (n_examples,)
        Weight of the others of its class; 0 if there are none.
    class_weights : ndarray of shape (n_classes,)
        Weights of the classes with all their examples.
    """

    batch: Batch
    groups: Integers
    left: Floats
    class_weights: Floats

    @property
    def own(self) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Index of the score of each example's own class."""
        return np.arange(len(self.groups)), self.batch.codes

    @property
    def several(self) -> list[Integers]:
        """The places of each group of more than one example."""
        order = np.argsort(self.groups, kind="stable")
        sizes = np.bincount(self.groups)
        parts = np.split(order, np.cumsum(sizes)[:-1])
        return [places for places in parts if len(places) > 1]

    def leverages(self, halves: Halves, ridge: Ridge) -> Floats:
        """Return the degrees of freedom that each example takes."""
        codes = self.batch.codes
        shares = mean_shares(self.class_weights, mean_counts(self.class_weights, ridge))
        rows = halves.rows - halves.means[codes] * (1.0 - shares[codes])[:, None]
        return np.asarray(self.batch.weights * np.einsum("ij,ij->i", rows, rows))

    def scores(self, halves: Halves, ridge: Ridge) -> Floats:
        """Return the left-out scores, before recoding."""
        before = mean_counts(self.class_weights, ridge)
        counts = _Counts(before[self.batch.codes], mean_counts(self.left, ridge))
        products, squares = self._single(halves, counts)
        for places in self.several:
            products[places], squares[places] = self._together(halves, places, counts)
        weights = np.repeat(self.class_weights[None], len(products), axis=0)
        weights[self.own] = self.left
        if ridge.scoring == "regression":
            return products * weights
        total = before.sum() - counts.before + counts.after
        origin = mean_product(total, ridge)[:, None]
        return (products - origin) * np.sqrt(weights) * cosine_factors(squares - origin)

    def _single(self, halves: Halves, counts: _Counts) -> tuple[Floats, Floats]:
        """Return products with class means, and squares of these, without one example each."""
        weights, codes, own = self.batch.weights, self.batch.codes, self.own
        means = halves.means
        rows = halves.rows - means[codes]
        # Products of r, and of the mean of the own class, with all class means.
        along = rows @ means.T
        across = means[codes] @ means.T if len(codes) < len(means) else (means @ means.T)[codes]
        rr, rm, mm = np.einsum("ij,ij->i", rows, rows), along[own], across[own]
        share = np.divide(weights, self.left, out=np.zeros_like(weights), where=self.left > 0)
        # C, I - C K, and F = (I - C K)^-1 C.
        c11 = weights + (self.left - counts.after) * share**2
        c12, c22 = counts.after * share, counts.before - counts.after
        d11, d12 = 1.0 - c11 * rr - c12 * rm, -c11 * rm - c12 * mm
        d21, d22 = -c12 * rr - c22 * rm, 1.0 - c12 * rm - c22 * mm
        # Positive as long as there is a penalty.
        determinant = np.maximum(d11 * d22 - d12 * d21, _EPS)
        f11 = (d22 * c11 - d12 * c12) / determinant
        f12 = (d22 * c12 - d12 * c22) / determinant
        f22 = (d11 * c22 - d21 * c12) / determinant
        xr, xm = rr + rm, rm + mm
        g1, g2 = f11 * xr + f12 * xm, f12 * xr + f22 * xm
        products = (1.0 + g1)[:, None] * along + (1.0 + g2)[:, None] * across
        squares = np.einsum("ij,ij->i", means, means) + f11[:, None] * along**2
        squares += (2 * f12)[:, None] * along * across + f22[:, None] * across**2
        # The mean of the own class moves.
        ra, ma = rm - share * rr, mm - share * rm
        products[own] = xm - share * xr + g1 * ra + g2 * ma
        squares[own] = ma - share * ra + f11 * ra**2 + 2 * f12 * ra * ma + f22 * ma**2
        return products, squares

    def _together(self, halves: Halves, places: Integers, counts: _Counts) -> tuple[Floats, Floats]:
        """Return the same for a group of examples that are left out together."""
        first = places[0]
        weights, left = self.batch.weights[places], float(self.left[first])
        before, after = float(counts.before[first]), float(counts.after[first])
        code = int(self.batch.codes[first])
        mean = halves.means[code]
        moved = np.vstack([halves.rows[places] - mean, mean])
        share = weights / left if left > 0 else np.zeros(len(places))
        change = np.diag(np.append(weights, before - after))
        change[:-1, :-1] += (left - after) * np.outer(share, share)
        change[-1, :-1] = change[:-1, -1] = after * share
        inner = moved @ moved.T
        identity = np.eye(len(moved)) * (1.0 + _EPS)
        gain = np.linalg.solve(identity - change @ inner, change)
        along = moved @ halves.means.T
        # The mean of the own class without them.
        kept = np.append(-share, 1.0)
        along[:, code] = inner @ kept
        mine = inner[:-1] + inner[-1]
        plain = halves.rows[places] @ halves.means.T
        plain[:, code] = mine @ kept
        own = np.einsum("ij,ij->i", halves.means, halves.means)
        own[code] = kept @ inner @ kept
        turned = gain @ along
        squares = own + np.einsum("ij,ij->j", along, turned)
        return plain + mine @ turned, np.broadcast_to(squares, plain.shape)


class _Counts(NamedTuple):
    """How often the mean of each example's class counts, with it and without it."""

    before: Floats
    after: Floats
