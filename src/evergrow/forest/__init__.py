"""Forests whose classes grow."""

from evergrow.forest.explain import Explanation, Step, TreePath
from evergrow.forest.ncm import NCMForestClassifier
from evergrow.forest.strategies import IGT, RTST, RUST, ULS

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "Explanation",
    "NCMForestClassifier",
    "Step",
    "TreePath",
]
