"""From categories to subcategories: coarse and fine classes."""

from evergrow.subcategory.answering import LevelAnswers
from evergrow.subcategory.by_forest import ForestGuesser
from evergrow.subcategory.estimator import SubcategoryForestClassifier
from evergrow.subcategory.guess_report import CoarseGuesses, GuessReport
from evergrow.subcategory.guessers import GUESSERS
from evergrow.subcategory.guessing import Guesses, guess_fine, guess_within
from evergrow.subcategory.level_metric import LevelMetric
from evergrow.subcategory.nearest import NearestGuesser
from evergrow.subcategory.ridge import RidgeGuesser

__all__ = [
    "GUESSERS",
    "CoarseGuesses",
    "ForestGuesser",
    "GuessReport",
    "Guesses",
    "LevelAnswers",
    "LevelMetric",
    "NearestGuesser",
    "RidgeGuesser",
    "SubcategoryForestClassifier",
    "guess_fine",
    "guess_within",
]
