"""What every head adds to a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Head:
    """The values that a head computes from rows, in double precision.

    Attributes
    ----------
    scores : str
        Scores of shape (n, n_classes): the class with the highest one is predicted.
    probabilities : str
        Probabilities of the same shape.
    comparable : callable
        Adds, and returns, scores that can be compared between rows too.
    """

    scores: str
    probabilities: str
    comparable: Callable[[], str]
