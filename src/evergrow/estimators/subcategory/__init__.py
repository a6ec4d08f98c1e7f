"""From categories to subcategories: coarse and fine classes."""

from evergrow.estimators.subcategory.answering import LevelAnswers
from evergrow.estimators.subcategory.by_forest import ForestGuesser
from evergrow.estimators.subcategory.estimator import SubcategoryForestClassifier
from evergrow.estimators.subcategory.guess_report import CoarseGuesses, GuessReport
from evergrow.estimators.subcategory.guessers import GUESSERS
from evergrow.estimators.subcategory.guessing import Guesses, guess_fine, guess_within
from evergrow.estimators.subcategory.level_metric import LevelMetric
from evergrow.estimators.subcategory.nearest import NearestGuesser
from evergrow.estimators.subcategory.ridge import RidgeGuesser

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
