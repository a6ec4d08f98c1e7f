from .axis_forest import AxisForestClassifier
from .explanation import AxisDecision, Explanation, LinearDecision, NCMDecision, TreePath
from .linear_forest import LinearForestClassifier
from .ncm_forest import NCMForestClassifier
from .strategies import IGT, RTST, RUST, ULS
from .svm_forest import SVMForestClassifier
from .value.report import UpdateReport

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "AxisDecision",
    "AxisForestClassifier",
    "Explanation",
    "LinearDecision",
    "LinearForestClassifier",
    "NCMDecision",
    "NCMForestClassifier",
    "SVMForestClassifier",
    "TreePath",
    "UpdateReport",
]
