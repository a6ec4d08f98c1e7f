"""What every way of guessing fine classes offers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Codes", "Guesser", "Learnt", "OnlyOne", "leave_one_of_each_out"]

Codes = npt.NDArray[np.int32]


class Learnt(Protocol):
    """What a way of guessing took from samples whose fine class is known."""

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class of each row."""

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:
        """What the known samples would be taken for without those of their own fold."""


class Guesser(Protocol):
    """A way of guessing fine classes, as a value."""

    @property
    def within(self) -> bool:
        """Whether only samples of the same coarse class are asked."""

    @property
    def discard(self) -> bool:
        """Whether guesses that contradict the coarse class are thrown away."""

    @property
    def scaling(self) -> float:
        """Power of the standard deviation that features are divided by; 0 leaves them alone."""

    def learn(self, X: npt.NDArray[Any], fine: Codes, *, n_jobs: int | None, seed: int) -> Learnt:
        """Take in samples of at least two fine classes."""


class OnlyOne:
    """A coarse class of which one fine class is known: nothing else can be guessed."""

    def __init__(self, fine: Codes) -> None:
        self._fine = fine

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """The one fine class for each row."""
        return np.full(X.shape[0], self._fine[0], dtype=np.int32)

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:  # noqa: ARG002
        """The one fine class for each known sample."""
        return self._fine


def leave_one_of_each_out(fine: Codes, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """A fold for each sample, such that no fold has two samples of one class.

    To leave out one sample alone would put its class at a disadvantage: the others keep all
    theirs. With three samples per class that makes guesses look much worse than they are.

    >>> leave_one_of_each_out(np.array([5, 5, 7], dtype=np.int32), np.random.default_rng(0))
    array([0, 1, 0])
    """
    order = random.permutation(len(fine))
    order = order[np.argsort(fine[order], kind="stable")]
    _, firsts, counts = np.unique(fine[order], return_index=True, return_counts=True)
    folds = np.empty(len(fine), dtype=np.int64)
    folds[order] = np.arange(len(fine)) - np.repeat(firsts, counts)
    return folds
