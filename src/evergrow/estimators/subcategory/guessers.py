"""The ways of guessing, by name."""

from __future__ import annotations

from dataclasses import dataclass

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.subcategory.by_forest import ForestGuesser
from evergrow.estimators.subcategory.guesser import Guesser
from evergrow.estimators.subcategory.nearest import NearestGuesser
from evergrow.estimators.subcategory.ridge import RidgeGuesser
from evergrow.foundation.params import Flag, Nothing, Number, Rule, check_parameters

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


@dataclass(frozen=True)
class _ForestRule:
    """A forest to clone."""

    def admits(self, value: object) -> bool:
        return isinstance(value, NCMForestClassifier)

    def __str__(self) -> str:
        return "an NCMForestClassifier"


_OPTION_RULES: dict[str, list[Rule]] = {
    "within": [Flag()],
    "discard": [Flag()],
    "scaling": [Number(0.0, 1.0)],
    "forest": [Nothing(), _ForestRule()],
}


def guesser_of(value: str | Guesser) -> Guesser:
    """The way of guessing that a name or a value stands for, its options checked."""
    guesser = GUESSERS[value] if isinstance(value, str) else value
    check_parameters({name: getattr(guesser, name, None) for name in _OPTION_RULES}, _OPTION_RULES)
    return guesser
