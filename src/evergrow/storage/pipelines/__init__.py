"""Pipelines of Evergrow's and a few of scikit-learn's estimators in Evergrow's model files."""

from evergrow.storage.pipelines.saving import READERS, from_file, save, to_file

__all__ = ["READERS", "from_file", "save", "to_file"]
