"""The ways of guessing, by name."""

from __future__ import annotations

from dataclasses import dataclass

from evergrow.subcategory.by_forest import ForestGuesser
from evergrow.subcategory.guesser import Guesser
from evergrow.subcategory.nearest import NearestGuesser
from evergrow.subcategory.ridge import RidgeGuesser

__all__ = ["GUESSERS", "GuesserRule", "guesser_of"]

# By name the ways of guessing; the first is the one to take.
GUESSERS: dict[str, Guesser] = {
    "ridge": RidgeGuesser(),
    "nn": NearestGuesser(),
    "nn-unconstrained": NearestGuesser(within=False),
    "nn-discard": NearestGuesser(within=False, discard=True),
    "forest": ForestGuesser(),
}


@dataclass(frozen=True)
class GuesserRule:
    """A way of guessing: its name, or a value that carries options."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        if isinstance(value, str):
            return value in GUESSERS
        return isinstance(value, (ForestGuesser, NearestGuesser, RidgeGuesser))

    def __str__(self) -> str:
        """Say what is allowed."""
        return f"one of {sorted(GUESSERS)} or a value such as RidgeGuesser()"


def guesser_of(value: str | Guesser) -> Guesser:
    """The way of guessing that a name or a value stands for."""
    return GUESSERS[value] if isinstance(value, str) else value
