"""Scores of learnt examples by all others, without solving again for each example.

A class of weight ``N`` and mean ``m`` without examples of weights ``w``, that differ from ``m`` by
``r``, has the weight ``n = N - sum w`` and the mean ``m - sum e r`` with ``e = w / n``. If its mean
counts ``c(n)`` times in the equations (:mod:`evergrow.estimators.linear.equations`), ``A`` becomes
``A - U C U'`` with ``U = [r, m]`` and

    ``C = [[diag(w) + (n - c(n)) e e', c(n) e], [c(n) e', c(N) - c(n)]]``.

So with ``K = U' A^-1 U`` the inverse of ``A`` grows by ``A^-1 U F U' A^-1``, where
``F = (I - C K)^-1 C``. If nothing is left of the class, ``e`` and ``c(n)`` are zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.equations import Equations, Ridge, mean_counts
from evergrow.estimators.linear.scoring import cosine_factors, mean_product
from evergrow.estimators.linear.solver import factorise, forward_substitute
from evergrow.estimators.sums.moments import Batch, Moments

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Scores = TypeVar("Scores", npt.NDArray[np.float32], npt.NDArray[np.float64])

_EPS = np.finfo(np.float64).eps


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


def leave_out(scores: Scores, codes: npt.NDArray[np.int32], leverages: Scores) -> Scores:
    """Turn regressions by all examples into regressions by all others, in place."""
    scores[np.arange(len(codes)), codes] -= leverages
    # Leverages are below 1 as long as there is a penalty.
    scores /= np.maximum(1.0 - leverages, np.finfo(scores.dtype).eps)[:, None]
    return scores
