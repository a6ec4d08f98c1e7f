"""Data sets: generated, read from files, or downloaded.

Every source gives a ``Dataset``: training and test samples with labels. ``load_dataset`` finds the
reader for a name or path; ``formats`` has one reader per file format. Start reading with
``sources``.
"""

from evergrow.research.datasets.built_in import digits, mixture, spirals
from evergrow.research.datasets.dataset import Dataset
from evergrow.research.datasets.downloads import download
from evergrow.research.datasets.sources import load_dataset

__all__ = ["Dataset", "digits", "download", "load_dataset", "mixture", "spirals"]
