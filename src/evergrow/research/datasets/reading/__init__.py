"""Reading data sets: each format in a file of its own, and one function for all."""

from evergrow.research.datasets.reading.sources import load_dataset

__all__ = ["load_dataset"]
