from .axis import AxisForestClassifier
from .explain import AxisStep, Explanation, LinearStep, Step, TreePath
from .linear import LinearForestClassifier
from .ncm import NCMForestClassifier
from .report import UpdateReport
from .strategies import IGT, RTST, RUST, ULS
from .svm import SVMForestClassifier

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "AxisForestClassifier",
    "AxisStep",
    "Explanation",
    "LinearForestClassifier",
    "LinearStep",
    "NCMForestClassifier",
    "SVMForestClassifier",
    "Step",
    "TreePath",
    "UpdateReport",
]
