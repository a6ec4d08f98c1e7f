"""Scores of how well an example fits the nearest class, and which of them a model uses.

The first is the cosine to the nearest class mean, which needs sums only. To it are added, because
each finds other things: the best ridge score, the lowest relative and the lowest plain Mahalanobis
distance, and the length of the example: what a network recognises has long features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.predictor import ScoringClassifier
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.rls import RLSClassifier
from evergrow.estimators.linear.solver import back_substitute, factorise
from evergrow.estimators.novelty.linear_scores import (
    LinearScores,
    batch_with_constant,
    default_shrinkage,
    with_constant,
)
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.rows import float_blocks

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64] | slice
_ALL = slice(None)

# Scores that are added to the cosine.
N_OTHERS = 4
# Examples that are enough to weight the scores.
_MOST_REHEARSED = 1000
# Rows that are scored at once: their scores of all classes take 16 MB, or these are 500 rows.
_SCORES, _BLOCK = 2_000_000, 500
# Rows of more than this many times the usual length are scored as of this length.
_LONGEST = 1e50
# Squares of shorter lengths lose digits or underflow.
_SHORTEST = 1e-140


class BestScores(NamedTuple):
    """The nearest class of each row, its score there, and further scores of the row."""

    columns: npt.NDArray[np.int64]
    scores: Floats
    others: Floats

    def at(self, places: npt.NDArray[Any]) -> BestScores:
        """Return those of some rows."""
        return BestScores(self.columns[places], self.scores[places], self.others[places])


class Rehearsal(NamedTuple):
    """Scores of the same examples as known and as unknown ones, of shape (n_examples, n_scores)."""

    known: Floats
    unknown: Floats
    n_classes: int


@dataclass(frozen=True, eq=False)
class NearestMeans:
    """Class means as directions.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        The origin of the directions.
    directions : ndarray of shape (n_classes, n_features)
        Unit vectors towards the class means.
    known : ndarray of shape (n_classes,)
        Which classes have examples; the others are never the nearest.
    """

    origin: Floats
    directions: Floats
    known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, moments: Moments) -> NearestMeans:
        """Return the class means of all examples."""
        present = moments.class_examples > 0
        origin = _origin(moments.means[present] + moments.origin)
        return cls(origin, _directions(moments.means + (moments.origin - origin)), present)

    def cosines(self, X: npt.NDArray[Any]) -> Floats:
        """Return the cosine of each row to each class mean; minus infinity without examples."""
        rows = _directions(X.astype(np.float64) - self.origin)
        cosines = rows @ self.directions.T
        if not self.known.all():
            cosines[:, ~self.known] = -np.inf
        return cosines

    def left_out(self, moments: Moments, batch: Batch) -> Floats:
        """Return the cosines of learnt examples; the mean of its own class excludes the example.

        Examples can be subtracted from sums, so this is exactly the mean of the other examples. The
        origin still includes the example, which hardly moves it and affects all classes alike.
        """
        own, cosines, origin = batch.codes, self.cosines(batch.rows), self.origin
        left = moments.class_weights[own] - batch.weights
        others = moments.sums[own] - batch.weights[:, None] * moments.shifted(batch).rows
        own_means = others / np.where(left > 0, left, 1.0)[:, None] + moments.origin
        cosines[np.arange(len(own)), own] = np.einsum(
            "ij,ij->i", _directions(batch.rows - origin), _directions(own_means - origin)
        )
        return cosines


def best_of(scores: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the best class of each row, and its score."""
    # A class without a score is the nearest only if no class has one.
    best: Floats = np.fmax.reduce(scores, axis=1)
    return np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1), best


def _origin(means: Floats) -> Floats:
    """Return the origin of directions: half way from zero to the mean of all class means.

    Measured from zero, every angle is small, because all pictures have much in common. Measured
    from the mean, directions in which known classes agree are lost, but new classes differ in
    them. Half way rejected more unknown examples than either end on three sets of image features.
    """
    return cast("Floats", 0.5 * means.mean(axis=0))


def _directions(rows: Floats) -> Floats:
    """Scale rows to length 1; rows of zeros stay zero."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    if lengths.size and lengths.min() > _SHORTEST and lengths.max() < np.inf:
        return cast("Floats", rows / lengths)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    # Divided by the largest first, because squares of large numbers overflow, small ones underflow.
    scaled = np.zeros_like(rows)
    np.divide(rows, largest, out=scaled, where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    np.divide(scaled, lengths, out=scaled, where=lengths > 0)
    return scaled


@dataclass(frozen=True, eq=False)
class SummedScores:
    """The five scores, from sums over features.

    Attributes
    ----------
    moments : Moments
        Sums over plain features.
    means : NearestMeans
        The class means.
    linear : LinearScores or None
        Ridge scores and relative distances; None if they cannot be computed.
    penalty : float
        That of ridge regression.
    places : ndarray or slice
        The places of these features in the rows that are scored.
    """

    moments: Moments
    means: NearestMeans
    linear: LinearScores | None
    penalty: float
    places: Places = field(default_factory=lambda: _ALL)

    @classmethod
    def of(
        cls, moments: Moments, penalty: float | None = None, places: Places = _ALL
    ) -> SummedScores:
        """Return the scores; without a Gram matrix or with a single class only the cosine.

        ``places`` are those of the features that take part.
        """
        if not isinstance(places, slice):
            moments = moments.with_features(places, gram=moments.settled is not None)
        means = NearestMeans.of(moments)
        if moments.settled is None:
            return cls(moments, means, None, 0.0, places)
        penalty = default_shrinkage(moments) if penalty is None else penalty
        if not penalty > 0:
            return cls(moments, means, None, 0.0, places)
        constant = with_constant(moments)
        factor = factorise(constant.gram, Ridge(penalty, scoring="regression"))
        linear = LinearScores.of(constant, back_substitute(factor, constant.sums), factor)
        return cls(moments, means, linear, penalty, places)

    def best(self, X: npt.NDArray[Any]) -> BestScores:
        """Return the nearest class of each row, the cosine to it, and the best other scores."""
        n_others = 0 if self.linear is None else N_OTHERS
        columns, scores = np.zeros(len(X), dtype=np.int64), np.zeros(len(X))
        others = np.zeros((len(X), n_others))
        for rows, whole in float_blocks(X, self._max_rows):
            block = whole[:, self.places]
            columns[rows], scores[rows] = best_of(self.means.cosines(block))
            if self.linear is not None:
                bounded = self._bounded(block.astype(np.float64))
                best = self.linear.matrices(bounded).best
                others[rows] = np.column_stack([best, _lengths(bounded)])
        return BestScores(columns, scores, others)

    def left_out(self, batch: Batch) -> BestScores:
        """Return the same for learnt examples, as if each had not been learnt."""
        batch, n_rows = self._with_used_features(batch), len(batch.rows)
        columns, scores = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows)
        others = np.zeros((n_rows, 0 if self.linear is None else N_OTHERS))
        for first in range(0, n_rows, self._max_rows):
            places = np.arange(first, min(first + self._max_rows, n_rows))
            some = batch.at(places)
            columns[places], scores[places] = best_of(self.means.left_out(self.moments, some))
            if self.linear is not None:
                constant = batch_with_constant(self.moments.shifted(some))
                others[places, :-1] = self.linear.left_out(constant).best
                others[places, -1] = _lengths(some.rows)
        return BestScores(columns, scores, others)

    @property
    def _max_rows(self) -> int:
        return max(1, min(_BLOCK, _SCORES // self.moments.n_classes))

    def rehearse(self, batch: Batch) -> Rehearsal | None:
        """Score examples as known and as unknown ones: without them, and without their classes.

        Both are scores by these examples alone, even if more were learnt: an example of an unknown
        class differs from the others also in how its class varies, which sums over all classes do
        not tell. None if the cosine is the only score.
        """
        if self.linear is None:
            return None
        batch, whole = _thinned(self._with_used_features(batch)), replace(self, places=_ALL)
        if len(batch.rows) < self.moments.n_examples:
            sizes = self.moments.n_features, self.moments.n_classes
            nothing = Moments.none(*sizes, gram=True, shift=self.moments.shift)
            whole = SummedScores.of(nothing.add_all([batch]), self.penalty)
        linear = whole.linear
        if linear is None:
            return None
        batch = batch.at(whole.moments.class_examples[batch.codes] > 1)
        if not len(batch.rows):
            return None
        known = whole.left_out(batch)
        cosines = whole.means.cosines(batch.rows)
        cosines[np.arange(len(cosines)), batch.codes] = -np.inf
        unknown = np.column_stack([best_of(cosines)[1], known.others])
        unknown[:, 1:-1] = linear.foreign(batch_with_constant(whole.moments.shifted(batch)))
        learnt = np.column_stack([known.scores, known.others])
        usable = np.isfinite(learnt).all(axis=1) & np.isfinite(unknown).all(axis=1)
        n_classes = len(np.unique(batch.codes[usable]))
        return Rehearsal(learnt[usable], unknown[usable], n_classes) if n_classes > 1 else None

    def _with_used_features(self, batch: Batch) -> Batch:
        if isinstance(self.places, slice):
            return batch
        return Batch(batch.rows[:, self.places], batch.codes, batch.weights)

    def _bounded(self, rows: Floats) -> Floats:
        """Return rows of a length of which the squares do not overflow."""
        most = _LONGEST * np.sqrt(self.moments.squares / self.moments.weight)
        lengths = _lengths(rows)
        if not lengths.size or lengths.max() <= most:
            return rows
        return cast("Floats", rows * np.minimum(1.0, most / lengths)[:, None])


def _thinned(batch: Batch) -> Batch:
    """Return every n-th example of each class, about :data:`_MOST_REHEARSED` of them."""
    step = -(-len(batch.rows) // _MOST_REHEARSED)
    order = np.argsort(batch.codes, kind="stable")
    ordered = batch.codes[order]
    places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return batch if step <= 1 else batch.at(np.sort(order[places % step == 0]))


def _lengths(rows: Floats) -> Floats:
    """Return the length of each row."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    # Divided by the largest first, because squares of large numbers overflow.
    units = rows / np.where(largest > 0, largest, 1.0)[:, None]
    return cast("Floats", largest * np.sqrt(np.einsum("ij,ij->i", units, units)))


class Scorer(Protocol):
    """The scores of one measure, from what a model has learnt."""

    def best(self, X: npt.NDArray[Any]) -> BestScores:
        """Return the nearest class of each row, and its scores."""

    def left_out(self, batch: Batch) -> tuple[BestScores, npt.NDArray[np.bool_]]:
        """Return the same for stored examples, as if each had never been learnt.

        Also return a mask of those that can be scored.
        """

    def rehearse(self, batch: Batch) -> Rehearsal | None:
        """Return their scores as known and as unknown examples, if there are several scores."""


@dataclass(frozen=True)
class Measure:
    """One way to score examples.

    Attributes
    ----------
    scorer : callable
        ``scorer(estimator, moments, penalty)``: the scores. The penalty is that of ridge
        regression; None for a default.
    learns_held_out : bool
        Whether the estimator learns held-out examples.
    stores_all : bool
        Whether every example may be stored for the calibration, not only every n-th.
    """

    scorer: Callable[[Any, Moments, float | None], Scorer]
    learns_held_out: bool
    stores_all: bool = False


@dataclass(frozen=True, eq=False)
class SumsScorer:
    """Scores from sums over all examples, from which single examples can be left out."""

    summed: SummedScores

    def best(self, X: npt.NDArray[Any]) -> BestScores:
        """Return the nearest class of each row, and its scores."""
        return self.summed.best(X)

    def left_out(self, batch: Batch) -> tuple[BestScores, npt.NDArray[np.bool_]]:
        """Return the same for stored examples, as if each had never been learnt."""
        # A class with one example has no mean without it.
        usable = self.summed.moments.class_examples[batch.codes] > 1
        return self.summed.left_out(batch), usable

    def rehearse(self, batch: Batch) -> Rehearsal | None:
        """Return their scores as known and as unknown examples."""
        return self.summed.rehearse(batch)


@dataclass(frozen=True, eq=False)
class EstimatorScorer:
    """The scores of the wrapped estimator, which has not learnt the stored examples."""

    estimator: Any
    n_classes: int

    def best(self, X: npt.NDArray[Any]) -> BestScores:
        """Return the best class of each row, and its score."""
        step = max(1, _SCORES // self.n_classes)
        found = [
            _best_of_estimator(self.estimator, self.n_classes, X[first : first + step])
            for first in range(0, len(X), step)
        ]
        columns, scores = map(np.concatenate, zip(*found, strict=True))
        return BestScores(columns, scores, np.zeros((len(X), 0)))

    def left_out(self, batch: Batch) -> tuple[BestScores, npt.NDArray[np.bool_]]:
        """Return the same for stored examples."""
        return self.best(batch.rows), np.ones(len(batch.rows), dtype=bool)

    def rehearse(self, _: Batch) -> None:
        """Return None: there is a single score."""
        return


def _best_of_estimator(
    estimator: Any, n_classes: int, X: npt.NDArray[Any]
) -> tuple[Columns, Floats]:
    """Return the best of ``decision_function``, or of ``predict_proba`` without one.

    Evergrow's own estimators have scores that are comparable between examples. Those of
    ``decision_function`` may leave out a term that all classes share.
    """
    if isinstance(estimator, ScoringClassifier):
        return best_of(estimator._comparable_scores(X))
    has_decision = hasattr(estimator, "decision_function")
    scores = estimator.decision_function(X) if has_decision else estimator.predict_proba(X)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1 and n_classes == 2:
        return (scores > 0).astype(np.int64), np.abs(scores)
    scores = scores.reshape(len(X), -1)
    if scores.shape[1] != n_classes:
        raise InvalidInputError(
            f"measure='estimator' needs one score per class, but {type(estimator).__name__} "
            f"returns {scores.shape[1]} for {n_classes} classes"
        )
    return best_of(scores)


def _score_sums(estimator: Any, moments: Moments, penalty: float | None) -> Scorer:
    """Return scores by the features that the estimator uses: others would add only noise."""
    is_linear = isinstance(estimator, RLSClassifier)
    places = estimator._used_features() if is_linear else slice(None)
    return SumsScorer(SummedScores.of(moments, penalty, places))


MEASURES = {
    "auto": Measure(_score_sums, learns_held_out=True, stores_all=True),
    # The same: its sums have no Gram matrix, so the cosine is the only score.
    "cosine": Measure(_score_sums, learns_held_out=True),
    "estimator": Measure(
        lambda estimator, moments, _: EstimatorScorer(estimator, moments.n_classes),
        learns_held_out=False,
    ),
}
