"""Which examples are held out, decided before anybody looks at their rows.

An example's fate is a function of the seed, its class's name and its number within the class, so
the same examples are kept however they were split into calls, or into parts of one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.priorities import priorities

__all__ = ["Choice", "choose"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChosenOfClass:
    """Which examples of a class may stay, by priority, and how many came and were held out."""

    places: npt.NDArray[np.intp]
    priorities: Integers
    n_seen: int
    n_chosen: int


@dataclass(frozen=True, eq=False)
class Choice:
    """Which of some examples are held out: a function of their classes and numbers alone.

    Attributes
    ----------
    chosen : ndarray of shape (n_samples,), bool
        Which were held out.
    of_classes : dict of int to ChosenOfClass
        By column those that may stay, no more than the share.
    n_classes, share : int
        How many classes there are, and how many examples each may keep.
    """

    chosen: Mask
    of_classes: Mapping[int, ChosenOfClass]
    n_classes: int
    share: int

    @cached_property
    def places(self) -> Integers:
        """Ascending places of those that may stay."""
        every = [np.zeros(0, dtype=np.int64), *(one.places for one in self.of_classes.values())]
        return np.sort(np.concatenate(every))


def choose(
    codes: npt.NDArray[np.int32],
    names: Sequence[Any],
    n_seen: Sequence[int],
    *,
    every: int,
    share: int,
    seed: int,
) -> Choice:
    """Choose every ``every``-th example of each class, of which no more than the share may stay.

    ``n_seen`` tells how many of each class came before.

    >>> choice = choose(np.array([0, 0, 1, 0]), ["a", "b"], [0, 1], every=2, share=9, seed=0)
    >>> choice.places
    array([1, 2])
    """
    chosen = np.zeros(len(codes), dtype=bool)
    of_classes: dict[int, ChosenOfClass] = {}
    # By class in one sort: a look at all examples for each of many classes would take long.
    order = np.argsort(codes, kind="stable")
    columns, firsts = np.unique(codes[order], return_index=True)
    for column, mine in zip(columns.tolist(), np.split(order, firsts[1:]), strict=True):
        numbers = n_seen[column] + np.arange(len(mine))
        taken = (numbers + 1) % every == 0
        chosen[mine] = taken
        ranks = priorities(f"{seed} {names[column]}", numbers[taken])
        best = np.argsort(ranks, kind="stable")[:share]
        of_classes[column] = ChosenOfClass(
            mine[taken][best], ranks[best], len(mine), int(taken.sum())
        )
    return Choice(chosen, of_classes, len(names), share)
