"""Image classifiers whose set of classes never stops growing."""

from evergrow.errors import ModelFileError
from evergrow.forest import Explanation, NCMForestClassifier
from evergrow.loading import load
from evergrow.version import __version__

__all__ = ["Explanation", "ModelFileError", "NCMForestClassifier", "__version__", "load"]
