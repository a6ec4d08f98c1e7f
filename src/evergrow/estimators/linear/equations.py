"""The linear equations of least squares, from sums over examples.

With ``m_k`` the mean of a class, ``n_k`` its number of examples and ``S`` the scatter within the
classes, the sum of ``(x - m)(x - m)'`` over all examples, the weights of a class solve
``A w_k = c_k m_k`` with ``A = S + sum c_k m_k m_k' + penalty I``. How often a mean counts, ``c_k``,
is one of two.

- ``c_k = n_k``: ``A = X'X + penalty I``, and the right sides are the class sums. So the coded
  labels of all examples are regressed, as in the paper [Camoriano2017 Eq. 16].
- ``c_k = min(n_k, 1)``: each class counts as one example, its mean. So the distance between classes
  does not count as noise, however many examples they have, which is more accurate with classes of
  similar sizes. With one example per class both are the same.

Both follow from the same sums. An example of weight ``w`` that joins ``n`` others of its class
changes the second ``A`` by two rows, each added or subtracted: with ``r = x - m``,
``d = w / (n + w)``, and a mean that counted ``c`` times and now ``c'`` times, the change is
``U C U'`` for ``U = [r, m]`` and ``C = [[d n + c' d^2, c' d], [c' d, c' - c]]``. The right side
changes by ``c' d r + (c' - c) m``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import place_like, to_host
from evergrow.foundation.params import Choice, Flag, Number
from evergrow.storage.models.codec import Fields

Floats = npt.NDArray[np.float64]
Scoring = Literal["cosine", "regression"]

SCORINGS: tuple[Scoring, ...] = ("cosine", "regression")
# Largest penalty of the constant feature: an intercept need not be small, least of all in the unit
# of the other features. A thousandth of an example keeps the matrix positive definite. Of class
# means there are far fewer, so each would be shifted by more.
_FREE = 1e-3
_FREE_OF_MEANS = 1e-9
# Rows of a change below this share of the other row are rounding errors.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Ridge:
    """The problem to solve: the penalty, how features are prepared, and what is regressed."""

    penalty: float
    standardize: bool = False
    # Whether the last feature is the constant 1.
    intercept: bool = True
    # Ranges of the columns that take part, besides the constant one; None for all.
    columns: tuple[tuple[int, int], ...] | None = None
    scoring: Scoring = "cosine"
    # Whether each class counts as one example, its mean; regressions are those of all examples.
    by_means: bool = True

    # Saved without columns, of which others may be chosen later.
    _stored: ClassVar[Fields] = {
        "penalty": [Number(0.0)],
        "standardize": [Flag()],
        "intercept": [Flag()],
        "scoring": [Choice(SCORINGS)],
        "by_means": [Flag()],
    }

    @property
    def counts_means(self) -> bool:
        """Whether the equations are those of class means."""
        return self.by_means and self.scoring == "cosine"

    def places(self, n_features: int) -> npt.NDArray[np.int64] | slice:
        """Return the places of the features that take part, in ascending order."""
        if self.columns is None:
            return slice(None)
        parts = [np.arange(*part, dtype=np.int64) for part in self.columns]
        constant = np.arange(n_features - self.intercept, n_features, dtype=np.int64)
        return np.concatenate([*parts, constant])


def intercept_penalty(ridge: Ridge) -> float:
    """Return the penalty of the constant feature."""
    return min(ridge.penalty, _FREE_OF_MEANS if ridge.counts_means else _FREE)


class Equations(NamedTuple):
    """The matrix without its penalty, of which the upper triangle counts, and the right sides.

    Attributes
    ----------
    gram : ndarray of shape (n_features, n_features)
        ``A`` without the penalty.
    sums : ndarray of shape (n_classes, n_features)
        The right side of each class.
    counts : ndarray of shape (n_classes,)
        How often the mean of each class counts; 0 without examples.
    """

    gram: Floats
    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, moments: Moments, ridge: Ridge) -> Equations:
        """Return the equations of all features."""
        counts = mean_counts(moments.class_weights, ridge)
        if not ridge.counts_means:
            return cls(moments.gram, moments.sums, counts)
        means = moments.means
        # The Gram matrix counts a mean as often as it has examples.
        surplus = (moments.class_weights - counts)[:, None]
        whole, sums = moments.gram, means * counts[:, None]
        gram = whole - place_like(means * surplus, whole).T @ place_like(means, whole)
        if ridge.intercept:
            # Exact, because scores are seen from what the constant feature adds to them.
            gram[:, -1] = place_like(sums.sum(axis=0), gram)
        return cls(gram, sums, counts)

    @property
    def means(self) -> Floats:
        """The class means; zero for a class without examples."""
        return self.sums / np.where(self.counts > 0, self.counts, 1.0)[:, None]


def mean_counts(class_weights: Floats, ridge: Ridge) -> Floats:
    """Return how often the means of classes of these weights count.

    A class that weighs less than one example counts by its weight.
    """
    return np.minimum(class_weights, 1.0) if ridge.counts_means else class_weights


@dataclass(frozen=True, eq=False)
class Standardisation:
    """Equations of standardised features, and the way there and back.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_inputs,)
        What is subtracted from each feature, and the factor that follows.
    equations : Equations
        Those of the standardised features, with the constant feature if there is one.
    """

    mean: Floats
    scale: Floats
    equations: Equations

    def rows(self, rows: Floats) -> Floats:
        """Standardise features; the constant one stays as it is."""
        changed = rows.copy()
        n_inputs = len(self.scale)
        changed[:, :n_inputs] = (rows[:, :n_inputs] - self.mean) * self.scale
        return changed

    def weights(self, weights: Floats) -> Floats:
        """Turn weights of standardised features into those of the features as they are."""
        changed = weights.copy()
        n_inputs = len(self.scale)
        changed[:, :n_inputs] *= self.scale
        if weights.shape[1] > n_inputs:
            changed[:, -1] -= changed[:, :n_inputs] @ self.mean
        return changed


def standardisation(moments: Moments, ridge: Ridge) -> Standardisation:
    """Standardise with the mean and deviation of all examples so far.

    So the result does not depend on their order. Without an intercept nothing is subtracted. A
    constant feature is left as it is, or left out if there is an intercept: its rounding error
    would spoil the others.
    """
    n_inputs = moments.n_features - ridge.intercept
    mean = moments.sums[:, :n_inputs].sum(axis=0) / moments.weight
    diagonal = moments.diagonal[:n_inputs] / moments.weight
    variance = diagonal - mean**2
    # For a constant feature the variance is only rounding error.
    varies = variance > 1e-13 * diagonal
    scale = np.ones(n_inputs)
    np.divide(1.0, np.sqrt(variance, where=varies, out=scale.copy()), out=scale, where=varies)
    gram, sums, counts = Equations.of(moments, ridge)
    gram = to_host(gram)
    if not ridge.intercept:
        scaled = Equations(gram * scale * scale[:, None], sums * scale, counts)
        return Standardisation(np.zeros(n_inputs), scale, scaled)
    scale = np.where(varies, scale, 0.0)
    # Of the rows x - mean c, with c the constant feature.
    whole = gram.copy()
    constants, weight = gram[:-1, -1], gram[-1, -1]
    products = np.outer(mean, constants)
    whole[:-1, :-1] += weight * np.outer(mean, mean) - products - products.T
    whole[:-1, -1] -= weight * mean
    factors = np.append(scale, 1.0)
    right = sums.copy()
    right[:, :-1] -= np.outer(sums[:, -1], mean)
    changed = Equations(whole * factors * factors[:, None], right * factors, counts)
    return Standardisation(mean, scale, changed)


class Step(NamedTuple):
    """Rows that are added to the equations, or subtracted, with the target of their class."""

    rows: Floats
    signs: Floats
    codes: npt.NDArray[np.int32]
    targets: Floats


class Followed:
    """The class sums that a solver has followed, which say what the next examples change."""

    def __init__(self, moments: Moments) -> None:
        self._sums = list(moments.class_sums)
        self._weights = moments.class_weights.tolist()
        self._examples = moments.class_examples.tolist()

    def steps(self, batch: Batch, ridge: Ridge, n_together: int) -> Iterator[Step]:
        """Yield what a batch changes, at most ``n_together`` rows at a time."""
        if not ridge.counts_means:
            signs = np.full(len(batch.rows), float(batch.sign))
            step = Step(batch.scaled, signs, batch.codes, batch.roots)
            yield from _parts([step], len(batch.rows), n_together)
            return
        changes = [
            self._change(row, code, batch.sign, weight)
            for row, code, weight in zip(
                batch.rows, batch.codes.tolist(), batch.weights.tolist(), strict=True
            )
        ]
        yield from _parts(changes, 2 * len(changes), n_together)

    def _change(self, row: Floats, code: int, sign: int, weight: float) -> Step:
        """Return the rows by which one example changes the equations of class means."""
        n_missing = code + 1 - len(self._sums)
        self._sums += [np.zeros_like(row)] * n_missing
        self._weights += [0.0] * n_missing
        self._examples += [0] * n_missing
        total, before = self._sums[code], self._weights[code]
        self._examples[code] += sign
        # Nothing is left of a class without examples but rounding errors.
        after = before + sign * weight if self._examples[code] > 0 else 0.0
        self._sums[code] = total + sign * weight * row if after > 0 else np.zeros_like(row)
        self._weights[code] = after
        codes = np.array([code, code], dtype=np.int32)
        counted, counts = min(before, 1.0), min(after, 1.0)
        if not (before > 0 and after > 0):
            # The first example of a class, or the last one that leaves: one row, the mean.
            mean = row if after > 0 else total / max(before, np.finfo(np.float64).tiny)
            root = max(counted, counts) ** 0.5
            rows = np.stack([root * mean, np.zeros_like(row)])
            signs = np.array([1.0 if after > 0 else -1.0, 1.0])
            return Step(rows, signs, codes, np.array([root, 0.0]))
        mean = total / before
        share = sign * weight / after
        shift = np.array([counts * share, counts - counted])
        change = np.array([[share * before + counts * share**2, shift[0]], shift])
        # The row that is added comes first, so that the matrix stays positive definite.
        values, vectors = (part[..., ::-1] for part in np.linalg.eigh(change))
        values = np.where(np.abs(values) > _ROUNDING * np.abs(values).max(), values, 0.0)
        roots, signs = np.sqrt(np.abs(values)), np.where(values < 0, -1.0, 1.0)
        rows = (vectors * roots).T @ np.stack([row - mean, mean])
        targets = signs * (shift @ vectors) / np.where(roots > 0, roots, 1.0)
        return Step(rows, signs, codes, np.where(roots > 0, targets, 0.0))


def _parts(steps: Sequence[Step], n_rows: int, n_together: int) -> Iterator[Step]:
    """Yield the rows of some steps together, a few at a time."""
    joined = steps[0] if len(steps) == 1 else Step(*map(np.concatenate, zip(*steps, strict=True)))
    for first in range(0, n_rows, n_together):
        part = slice(first, first + n_together)
        yield Step(
            np.ascontiguousarray(joined.rows[part]),
            joined.signs[part],
            joined.codes[part],
            joined.targets[part],
        )
