"""Image classifiers whose set of classes never stops growing."""

from evergrow.errors import BadImageWarning, CacheWarning, ImageError, ModelFileError
from evergrow.features import Embedder
from evergrow.forest import (
    IGT,
    RTST,
    RUST,
    ULS,
    AxisForestClassifier,
    Explanation,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
    UpdateReport,
)
from evergrow.linear import RLSClassifier
from evergrow.loading import load
from evergrow.means import NCMClassifier, NCMMetric
from evergrow.novelty import RejectingClassifier
from evergrow.version import __version__

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "AxisForestClassifier",
    "BadImageWarning",
    "CacheWarning",
    "Embedder",
    "Explanation",
    "ImageError",
    "LinearForestClassifier",
    "ModelFileError",
    "NCMClassifier",
    "NCMForestClassifier",
    "NCMMetric",
    "RLSClassifier",
    "RejectingClassifier",
    "SVMForestClassifier",
    "UpdateReport",
    "__version__",
    "load",
]
