"""Data sets of the experiments: generated ones here, and those of files from the package."""

from evergrow.research.datasets import Dataset, digits, load_dataset, mixture, spirals
from evergrow.research.streams import (
    ClassStream,
    Learner,
    Measured,
    Retrained,
    follow,
    forgetting,
)

__all__ = [
    "ClassStream",
    "Dataset",
    "Learner",
    "Measured",
    "Retrained",
    "digits",
    "follow",
    "forgetting",
    "load_dataset",
    "mixture",
    "spirals",
]
