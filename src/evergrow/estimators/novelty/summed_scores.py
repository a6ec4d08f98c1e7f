"""Five scores of how well an example fits a class: to be added, because each finds other things.

These are the cosine to the nearest class mean, the best ridge score, the lowest relative and the
lowest plain Mahalanobis distance, and the length of the example: what a network recognises has long
features.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.solver import back_substitute, factorise
from evergrow.estimators.novelty.linear_scores import (
    LinearScores,
    batch_with_constant,
    default_shrinkage,
    with_constant,
)
from evergrow.estimators.novelty.nearest_means import (
    BestScores,
    NearestMeans,
    Rehearsal,
    best_of,
)
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.rows import float_blocks

Floats = npt.NDArray[np.float64]
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
                others[places, :-1] = self.linear.left_out(batch_with_constant(some)).best
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
            nothing = Moments.none(self.moments.n_features, self.moments.n_classes, gram=True)
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
        unknown[:, 1:-1] = linear.foreign(batch_with_constant(batch))
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
