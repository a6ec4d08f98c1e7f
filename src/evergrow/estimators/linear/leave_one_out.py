"""Choices judged by examples: held out from the sums, or left out of them in turn.

Scores have a closed form (:mod:`evergrow.estimators.linear.ridge`). Examples that are
nearly equal are left out together: if a burst of pictures of one scene were left out one by one,
the rest of the burst would give the answer away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaincinv

from evergrow.estimators.linear.equations import (
    Equations,
    Ridge,
    Scoring,
    intercept_penalty,
    standardisation,
)
from evergrow.estimators.linear.ridge import Halves, Leaving, Prepared, Solved
from evergrow.estimators.linear.scoring import ClassScale, normalising_factors, recode
from evergrow.estimators.linear.solver import solve
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.rows import places_by_class

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# A class with fewer training examples has no influence on the recoding.
_ENOUGH = 30
# Examples of one class are nearly equal if their squared distance is below this share of the mean
# squared distance within classes: so are two of three pairs of one scene in features of a network,
# and hardly any two other pictures (docs/method_least_squares.md).
_NEARLY_EQUAL = 0.1
# With few dimensions, examples that have nothing to do with each other are that close as well. The
# share is lower then, so that chance brings no more than half this many pairs of a class together.
_CLOSE_BY_CHANCE = 0.01
# Random directions that measure the number of dimensions; of fewer features it is exact.
_PROBES = 32
# A model with more degrees of freedom than this share of the examples nearly interpolates them, and
# what is left out is then predicted from rounding errors.
_INTERPOLATION = 0.9
# How much the accuracy counts next to the mean loss if many examples measure it; with `_FEW` of
# them half as much.
_ACCURACY_WEIGHT = 3.0
_FEW = 1000


class LeftOut(NamedTuple):
    """How well each example that can be judged is predicted, whether right, and its weight."""

    qualities: Floats
    right: npt.NDArray[np.bool_]
    weights: Floats


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out examples as features, the sums over all others, and the sums over all.

    Subclasses score examples in another way.
    """

    held: Batch
    trained: Moments
    everything: Moments

    def scores(self, ridge: Ridge) -> Floats:
        """Score the held-out examples, before recoding, with weights learnt without them."""
        weights, own_scores = solve(self.trained, ridge)
        scale = ClassScale.of(self.trained, own_scores, 0.0, ridge)
        return scale.apply(self.held.rows @ weights.T)

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores."""
        return scores * recode(self.trained, recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores and keep their scale; minus infinity for classes without examples."""
        factors = normalising_factors(self.trained, recoding)
        recoded: Floats = scores * factors
        recoded[:, factors == 0] = -np.inf
        return recoded

    def count(self, places: npt.NDArray[np.bool_]) -> int:
        """Return how many examples are at some places; equal ones may count as one."""
        return int(np.count_nonzero(places))

    @property
    def n_others(self) -> npt.NDArray[np.int64]:
        """Number of training examples of the class of each held-out example."""
        return self.trained.class_examples[self.held.codes]

    @property
    def others_weight(self) -> Floats:
        """Weight of these training examples."""
        return self.trained.class_weights[self.held.codes]

    @cached_property
    def votes(self) -> npt.NDArray[np.bool_]:
        """Which held-out examples are from classes with enough training examples.

        Without any such class, those from classes with at least half the weight of the largest.
        """
        enough: npt.NDArray[np.bool_] = self.n_others >= _ENOUGH
        if enough.any():
            return enough
        weights = self.others_weight
        large: npt.NDArray[np.bool_] = 2 * weights >= weights.max(initial=0.0)
        return (self.n_others > 0) & large

    @property
    def represented(self) -> Floats:
        """The weight of all examples that each held-out example stands for."""
        return self.held.weights

    def accuracy(self, scores: Floats) -> float:
        """Return the share of recognised examples among those with a vote."""
        votes = self.votes
        right = scores[votes].argmax(axis=1) == self.held.codes[votes]
        return float(np.average(right, weights=self.represented[votes]))


@dataclass(frozen=True, eq=False)
class LeftOutExamples(Validation):
    """Learnt examples, each scored with weights that are learnt from all others.

    Exact, for any subset of the learnt examples, but for one thing: mean and deviation of
    standardised features are those with the example.
    """

    # A cache: the equations are the same for all penalties that are compared.
    _spectra: dict[tuple[bool, bool], tuple[Floats, Floats]] = field(default_factory=dict)

    @classmethod
    def of(cls, learnt: Batch, everything: Moments) -> LeftOutExamples:
        """Return some of the examples in the sums, as features with the constant 1."""
        return cls(learnt, everything, everything)

    def scores(self, ridge: Ridge) -> Floats:
        """Score each example, before recoding, as if it had not been learnt."""
        return self._leaving.scores(self._halves(ridge), ridge)

    def solve(self, ridge: Ridge) -> Solved:
        """Return what serves any subset of the examples, for :meth:`scores_by`."""
        return Solved.of(Equations.of(self.everything, ridge), ridge)

    def scores_by(self, solved: Solved, ridge: Ridge) -> Floats:
        """Score each example with what :meth:`solve` returned."""
        return self._leaving.scores(solved.halves(self.held.rows), ridge)

    def with_features(self, places: npt.NDArray[np.int64] | slice) -> LeftOutExamples:
        """Return the same examples with some of their features."""
        if isinstance(places, slice):
            return self
        held = Batch(
            np.ascontiguousarray(self.held.rows[:, places]), self.held.codes, self.held.weights
        )
        some = LeftOutExamples.of(held, self.everything.with_features(places))
        # Examples are nearly equal if all their features are.
        some.__dict__["groups"] = self.groups
        return some

    def quality(self, ridge: Ridge) -> float:
        """Return how well a penalty predicts what is left out; minus infinity if it interpolates.

        It is the mean of the qualities that :meth:`judge` returns.
        """
        left_out = self.judge(ridge)
        if left_out is None:
            return -np.inf
        return float(np.average(left_out.qualities, weights=left_out.weights))

    def judge(self, ridge: Ridge) -> LeftOut | None:
        """Judge the examples whose class has others; None if a penalty interpolates.

        The quality is whether an example is recognised minus a loss: the squared difference of
        coded labels and scores, in the best common scale, because the scale has no effect on
        predictions. Being recognised is what matters, but a few examples do not measure it well, so
        it counts the more the more examples there are. The score of an example's own class is
        enlarged to that of a class of full size, because other classes do not lack an example.
        """
        judged = self.n_others > 0
        halves, leaving = self._halves(ridge), self._leaving
        n_distinct = int(self.groups.max(initial=-1)) + 1
        freedom = leaving.leverages(halves, ridge).sum()
        if freedom > _INTERPOLATION * n_distinct or not judged.any():
            return None
        scores = self._full_size(leaving.scores(halves, ridge), ridge.scoring)[judged]
        weights = self.held.weights[judged]
        right = scores[np.arange(len(scores)), self.held.codes[judged]]
        squares = np.einsum("ij,ij->i", scores, scores)
        size = float(weights @ squares)
        scale = max(float(weights @ right), 0.0) / size if size > 0 else 0.0
        losses = scale**2 * squares - 2 * scale * right + 1.0
        recognised = scores.argmax(axis=1) == self.held.codes[judged]
        n_judged = self.count(judged)
        share = _ACCURACY_WEIGHT * n_judged / (n_judged + _FEW)
        return LeftOut(share * recognised - losses, recognised, weights)

    def _full_size(self, scores: Floats, scoring: Scoring) -> Floats:
        """Enlarge the scores of own classes to those of classes that did not lose an example."""
        own, judged = self._own, self.n_others > 0
        ratio = self.everything.class_weights[own[1]] / np.where(judged, self.others_weight, 1.0)
        # Regressions grow with the number of examples, cosines with its root.
        scores[own] *= ratio if scoring == "regression" else np.sqrt(ratio)
        return scores

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores with the class counts without each example."""
        total = self.everything.weight - self._gone
        return self._times_powers(scores, recoding, np.maximum(total, 0.0) ** recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores and keep their scale; minus infinity for classes without examples."""
        counts = self.everything.class_weights
        powers = _powers(counts, self.everything.class_examples, recoding)
        before = (counts * powers)[self.held.codes]
        left = self.others_weight * _powers(self.others_weight, self.n_others, recoding)
        total = self.everything.weight - self._gone
        # The mean of the recoding over all other examples.
        mean = np.maximum(float(counts @ powers) - before + left, np.finfo(np.float64).tiny)
        recoded = self._times_powers(scores, recoding, total / mean)
        recoded[:, powers == 0] = -np.inf
        rows, columns = self._own
        alone = self.n_others == 0
        recoded[rows[alone], columns[alone]] = -np.inf
        return recoded

    @cached_property
    def groups(self) -> Integers:
        """Number of the group that each example is left out with."""
        return group_near_equal(self.held)

    def count(self, places: npt.NDArray[np.bool_]) -> int:
        """Return how many groups of nearly equal examples are at some places."""
        return len(np.unique(self.groups[places]))

    @property
    def n_others(self) -> Integers:
        """Number of examples in the class of each example that are not left out with it."""
        own: Integers = self.everything.class_examples[self.held.codes]
        return own - np.bincount(self.groups)[self.groups]

    @cached_property
    def represented(self) -> Floats:
        """The weight of all examples that each example stands for: its share of its class.

        Stored are as many examples of a small class as of a large one.
        """
        counts, codes = self.everything.class_weights, self.held.codes
        stored = np.bincount(codes, self.held.weights, len(counts))
        shares: Floats = self.held.weights / stored[codes]
        return shares * counts[codes]

    @cached_property
    def _gone(self) -> Floats:
        """Weight of the examples that are left out with each example."""
        totals: Floats = np.bincount(self.groups, self.held.weights).astype(np.float64)
        return totals[self.groups]

    @cached_property
    def _leaving(self) -> Leaving:
        return Leaving(self.held, self.groups, self.others_weight, self.everything.class_weights)

    @property
    def _own(self) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Index of the score of each example's own class."""
        return np.arange(len(self.held.codes)), self.held.codes

    @property
    def others_weight(self) -> Floats:
        """Weight of the other examples in the class of each example."""
        own = self.everything.class_weights[self.held.codes]
        return np.where(self.n_others > 0, own - self._gone, 0.0)

    def _halves(self, ridge: Ridge) -> Halves:
        moments = self.everything
        is_all = len(self.held.codes) == moments.n_examples
        if is_all and moments.n_examples < moments.n_features and not ridge.standardize:
            return self._halves_by_products(ridge)
        if not ridge.standardize:
            return self.solve(ridge).halves(self.held.rows)
        change = standardisation(moments, ridge)
        return Solved.of(change.equations, ridge).halves(change.rows(self.held.rows))

    def _halves_by_products(self, ridge: Ridge) -> Halves:
        """Solve with the products of all examples, of which there are fewer than features.

        One eigendecomposition serves every penalty. An intercept with penalty ``f`` adds
        ``penalty / f`` to every product.
        """
        values, vectors = self._spectrum(ridge)
        prepared, penalty = Prepared.of(self.held, self.everything, ridge), ridge.penalty
        halves = vectors * np.sqrt(values / (values + penalty))
        if ridge.intercept:
            constants = prepared.constants
            solved = vectors @ ((vectors.T @ constants) / (values + penalty))
            scale = intercept_penalty(ridge) / penalty + float(constants @ solved)
            halves = np.column_stack([halves, np.sqrt(penalty / scale) * solved])
        return prepared.restore(halves)

    def _spectrum(self, ridge: Ridge) -> tuple[Floats, Floats]:
        """Return eigenvalues and eigenvectors of the products of the prepared examples."""
        key = ridge.counts_means, ridge.intercept
        if key not in self._spectra:
            rows = Prepared.of(self.held, self.everything, ridge).rows
            rows = rows[:, : self.everything.n_features - ridge.intercept]
            values, vectors = np.linalg.eigh(rows @ rows.T)
            self._spectra[key] = np.maximum(values, 0.0), vectors
        return self._spectra[key]

    def _times_powers(self, scores: Floats, recoding: float, factors: Floats) -> Floats:
        moments = self.everything
        powers = _powers(moments.class_weights, moments.class_examples, recoding)
        recoded: Floats = scores * powers
        own = _powers(self.others_weight, self.n_others, recoding)
        recoded[self._own] = scores[self._own] * own
        recoded *= factors[:, None]
        return recoded


def group_near_equal(batch: Batch) -> Integers:
    """Return a group number per example; examples of one class that are nearly equal share one."""
    groups = np.zeros(len(batch.codes), dtype=np.int64)
    places = [mine for _, mine in places_by_class(batch.codes)]
    typical, dimension = _spread(batch, places)
    sizes = np.array([len(mine) for mine in places])
    # The squared distance of two normal examples, over its mean, has a gamma distribution.
    by_chance = gammaincinv(dimension / 2, _CLOSE_BY_CHANCE / sizes**2) / (dimension / 2)
    limits = typical * np.minimum(_NEARLY_EQUAL, by_chance)
    n_groups = 0
    for mine, limit in zip(places, limits, strict=True):
        rows = batch.rows[mine] - batch.rows[mine[0]]
        squares = np.einsum("ij,ij->i", rows, rows)
        distances = squares[:, None] + squares - 2.0 * (rows @ rows.T)
        # Equal examples may differ by rounding errors of the squares.
        near = distances <= limit + 1e-12 * squares.max()
        if np.count_nonzero(near) > len(mine):
            n_here, groups[mine] = connected_components(near, directed=False)
        else:
            n_here, groups[mine] = len(mine), np.arange(len(mine))
        groups[mine] += n_groups
        n_groups += n_here
    return groups


def _spread(batch: Batch, places: list[Integers]) -> tuple[float, float]:
    """Return the mean squared distance within classes, and the number of dimensions it is in.

    With ``e`` the variances along principal components the latter is ``(sum e)^2 / sum e^2``, and
    the sum of ``e^2`` is the mean squared length of the covariance times a random vector.
    """
    n_features = batch.rows.shape[1]
    directions = np.eye(n_features)
    if n_features > _PROBES:
        directions = np.random.default_rng(0).standard_normal((n_features, _PROBES))
        directions /= _PROBES**0.5
    total, moved = 0.0, np.zeros_like(directions)
    for mine in places:
        rows, weights = batch.rows[mine], batch.weights[mine]
        centred = rows - weights @ rows / weights.sum()
        total += float(weights @ np.einsum("ij,ij->i", centred, centred))
        moved += centred.T @ (weights[:, None] * (centred @ directions))
    # Divided first, because squares of large numbers overflow.
    moved /= total or 1.0
    squares = float(np.einsum("ij,ij->", moved, moved))
    dimension = max(1.0, 1.0 / squares) if squares > 0 else 1.0
    return 2.0 * total / max(float(batch.weights.sum()), np.finfo(np.float64).tiny), dimension


def _powers(weights: Floats, n_examples: Integers, recoding: float) -> Floats:
    """Return ``weight^-recoding`` per class; 0 without examples."""
    known = n_examples > 0
    return np.where(known, np.where(known, weights, 1.0) ** -recoding, 0.0)
