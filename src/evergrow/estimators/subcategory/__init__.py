"""Coarse and fine classes [Ristin2015]: forests that learn from partly refined labels.

Every sample has a coarse class and some samples have a fine class, or classes on more levels.
``labels`` reads what callers pass, and ``label_tree`` numbers the classes. ``guess`` guesses
missing fine classes. ``fitted`` is what a forest has learnt, and ``changes`` makes the next value
from it; ``stacking`` does so for two stacked forests. Start with ``forest``, then
read ``methods`` for what the methods of the paper do, and ``changes``.
"""

from evergrow.estimators.subcategory.forest import SubcategoryForestClassifier
from evergrow.estimators.subcategory.guess import (
    CoarseGuesses,
    Guesses,
    GuessReport,
    guess_fine,
    guess_within,
)
from evergrow.estimators.subcategory.guessers import NearestGuesser, RidgeGuesser
from evergrow.estimators.subcategory.methods import FineOnly, Hierarchical, Joint, Stacked
from evergrow.estimators.subcategory.predictor import LevelAnswers

__all__ = [
    "CoarseGuesses",
    "FineOnly",
    "GuessReport",
    "Guesses",
    "Hierarchical",
    "Joint",
    "LevelAnswers",
    "NearestGuesser",
    "RidgeGuesser",
    "Stacked",
    "SubcategoryForestClassifier",
    "guess_fine",
    "guess_within",
]
