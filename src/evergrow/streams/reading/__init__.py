"""Reading data sets: each format in a file of its own, and one function for all."""

from evergrow.streams.reading.sources import load_dataset

__all__ = ["load_dataset"]
