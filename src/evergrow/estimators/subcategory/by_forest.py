"""Guessing by a forest that was trained on the samples whose fine class is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.subcategory.guesser import Codes

__all__ = ["ForestGuesser"]

# Forests that are grown to see how often one is right: more would take longer than all the rest.
_FOLDS = 3


@dataclass(frozen=True)
class ForestGuesser:
    """What a forest predicts that was trained on all samples with a fine class.

    It looks at all fine classes, so a guess may contradict the coarse class: one of the ways that
    Sec. 5.2.1 of Ristin 2015 compares.

    Parameters
    ----------
    forest : NCMForestClassifier, default=None
        Forest to train, as it is but for ``n_jobs`` and ``random_state``; None for one with the
        usual parameters. It is cloned.
    discard : bool, default=False
        Throw away guesses that contradict the coarse class.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> from evergrow.estimators import ForestGuesser, guess_within
    >>> forest = NCMForestClassifier(5, min_samples_leaf=1)
    >>> known, fine = [[0], [1], [8], [9]], [7, 7, 8, 8]
    >>> guess_within(known, fine, [[2], [7]], guesser=ForestGuesser(forest), random_state=0)
    array([7, 8], dtype=int32)
    """

    forest: NCMForestClassifier | None = None
    discard: bool = False

    @property
    def within(self) -> bool:
        """It looks at all fine classes."""
        return False

    @property
    def scaling(self) -> float:
        """A forest scales features by itself."""
        return 0.0

    def learn(
        self, X: npt.NDArray[Any], fine: Codes, *, n_jobs: int | None, seed: int
    ) -> GrownForest:
        """Grow the forest."""
        forest = NCMForestClassifier() if self.forest is None else clone(self.forest)
        forest.set_params(n_jobs=n_jobs, random_state=seed)
        return GrownForest(forest.fit(X, fine), X, fine)


@dataclass(frozen=True, eq=False)
class GrownForest:
    """A forest and the samples that it was grown from."""

    forest: NCMForestClassifier
    X: npt.NDArray[Any]
    fine: Codes

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class that the forest predicts for each row."""
        return np.asarray(self.forest.predict(X), dtype=np.int32)

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:
        """Fine class of each row by a forest grown from other folds; -1 where there are none."""
        found = np.full(len(self.fine), -1, dtype=np.int32)
        for part in range(_FOLDS):
            out = folds % _FOLDS == part
            # A forest needs two samples.
            if out.any() and (~out).sum() > 1:
                forest = clone(self.forest).fit(self.X[~out], self.fine[~out])
                found[out] = forest.predict(self.X[out])
        return found
