"""Measures: scores of how well an example fits the nearest class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.predictor import ScoringClassifier
from evergrow.estimators.linear.rls import RLSClassifier
from evergrow.estimators.novelty.nearest_means import BestScores, Rehearsal, best_of
from evergrow.estimators.novelty.summed_scores import SummedScores
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

# Scores of classes that are computed at once.
_SCORES = 2_000_000


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
