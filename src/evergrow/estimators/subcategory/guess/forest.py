"""Guesses by a forest trained on the samples whose fine class is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.subcategory.guess.guesser import Codes

# Forests grown to measure the accuracy; more would take longer than everything else.
_FOLDS = 3


@dataclass(frozen=True)
class ForestGuesser:
    """Guess fine classes with a forest trained on all samples that have one.

    This is a baseline of [Ristin2015 Sec. 5.2.1]. The forest does not know the coarse class, so a
    guess may contradict it. Pass a `ForestGuesser` as `guesser` to :func:`guess_fine`, or
    as `guess` to :class:`~evergrow.SubcategoryForestClassifier`.

    Parameters
    ----------
    forest : NCMForestClassifier, default=None
        The forest to clone and train. Its ``n_jobs`` and ``random_state`` are replaced. None uses
        the default parameters.
    discard : bool, default=False
        Whether guesses that contradict the coarse class are discarded.

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

    within: ClassVar[bool] = False
    # The forest standardises features itself.
    scaling: ClassVar[float] = 0.0

    def learn(
        self, X: npt.NDArray[Any], fine: Codes, *, n_jobs: int | None, seed: int
    ) -> FittedForestGuesser:
        """Grow the forest.

        :meta private:
        """
        forest = NCMForestClassifier() if self.forest is None else clone(self.forest)
        forest.set_params(n_jobs=n_jobs, random_state=seed)
        return FittedForestGuesser(forest.fit(X, fine), X, fine)


@dataclass(frozen=True, eq=False)
class FittedForestGuesser:
    """A forest and its training samples."""

    forest: NCMForestClassifier
    X: npt.NDArray[Any]
    fine: Codes

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class of each row, predicted by the forest."""
        return np.asarray(self.forest.predict(X), dtype=np.int32)

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:
        """Fine class of each sample by a forest grown without its fold; -1 if there is none."""
        found = np.full(len(self.fine), -1, dtype=np.int32)
        for part in range(_FOLDS):
            out = folds % _FOLDS == part
            # A forest needs two samples.
            if out.any() and (~out).sum() > 1:
                forest = clone(self.forest).fit(self.X[~out], self.fine[~out])
                found[out] = forest.predict(self.X[out])
        return found
