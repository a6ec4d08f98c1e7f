"""Data sets: built in, read from files, downloaded."""

from evergrow.research.datasets.built_in import digits, mixture, spirals
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.downloading import download
from evergrow.research.datasets.reading import load_dataset

__all__ = ["Dataset", "digits", "download", "load_dataset", "mixture", "spirals"]
