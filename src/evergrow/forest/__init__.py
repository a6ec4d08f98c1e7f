"""Forests whose classes grow."""

from evergrow.forest.axis import AxisForestClassifier
from evergrow.forest.explain import AxisStep, Explanation, LinearStep, Step, TreePath
from evergrow.forest.linear import LinearForestClassifier
from evergrow.forest.ncm import NCMForestClassifier
from evergrow.forest.report import UpdateReport
from evergrow.forest.strategies import IGT, RTST, RUST, ULS
from evergrow.forest.svm import SVMForestClassifier

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
