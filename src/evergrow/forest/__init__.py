"""Forests whose classes grow."""

from evergrow.forest.explain import Explanation, Step, TreePath
from evergrow.forest.ncm import NCMForestClassifier

__all__ = ["Explanation", "NCMForestClassifier", "Step", "TreePath"]
