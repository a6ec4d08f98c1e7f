"""Image classifiers whose set of classes never stops growing."""

from evergrow.errors import ModelFileError
from evergrow.forest import IGT, RTST, RUST, ULS, Explanation, NCMForestClassifier
from evergrow.loading import load
from evergrow.version import __version__

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "Explanation",
    "ModelFileError",
    "NCMForestClassifier",
    "__version__",
    "load",
]
