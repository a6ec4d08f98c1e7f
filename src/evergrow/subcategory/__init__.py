"""From categories to subcategories: coarse and fine classes."""

from evergrow.subcategory.by_forest import ForestGuesser
from evergrow.subcategory.guess_report import CoarseGuesses, GuessReport
from evergrow.subcategory.guessers import GUESSERS
from evergrow.subcategory.guessing import Guesses, guess_fine, guess_within
from evergrow.subcategory.nearest import NearestGuesser
from evergrow.subcategory.ridge import RidgeGuesser

__all__ = [
    "GUESSERS",
    "CoarseGuesses",
    "ForestGuesser",
    "GuessReport",
    "Guesses",
    "NearestGuesser",
    "RidgeGuesser",
    "guess_fine",
    "guess_within",
]
