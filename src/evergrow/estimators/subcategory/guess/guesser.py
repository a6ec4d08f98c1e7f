"""The protocol of guessers, and how their accuracy is measured."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]


class FittedGuesser(Protocol):
    """A guesser fitted to samples whose fine class is known."""

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """Fine class of each row."""

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:
        """Guesses for the known samples, each made without the samples of its fold."""


class Guesser(Protocol):
    """A method of guessing fine classes, with its options, as a value."""

    @property
    def within(self) -> bool:
        """Whether guesses use only samples of the same coarse class."""

    @property
    def discard(self) -> bool:
        """Whether guesses that contradict the coarse class are discarded."""

    @property
    def scaling(self) -> float:
        """Power of the standard deviation that features are divided by; 0 for none."""

    def learn(
        self, X: npt.NDArray[Any], fine: Codes, *, n_jobs: int | None, seed: int
    ) -> FittedGuesser:
        """Fit the guesser to samples of at least two fine classes."""


class SingleClass:
    """Guesses for a coarse class with a single known fine class."""

    def __init__(self, fine: Codes) -> None:
        self._fine = fine

    def guess(self, X: npt.NDArray[Any]) -> Codes:
        """The one fine class for each row."""
        return np.full(X.shape[0], self._fine[0], dtype=np.int32)

    def held_out(self, folds: npt.NDArray[np.int64]) -> Codes:  # noqa: ARG002
        """The one fine class for each known sample."""
        return self._fine


def leave_one_of_each_out(fine: Codes, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Assign folds so that no fold has two samples of one class.

    Leaving out a single sample would put its class at a disadvantage, since the others keep all
    their samples. With three samples per class the guesses would look much worse than they are.

    >>> leave_one_of_each_out(np.array([5, 5, 7], dtype=np.int32), np.random.default_rng(0))
    array([0, 1, 0])
    """
    order = random.permutation(len(fine))
    order = order[np.argsort(fine[order], kind="stable")]
    _, firsts, counts = np.unique(fine[order], return_index=True, return_counts=True)
    folds = np.empty(len(fine), dtype=np.int64)
    folds[order] = np.arange(len(fine)) - np.repeat(firsts, counts)
    return folds
