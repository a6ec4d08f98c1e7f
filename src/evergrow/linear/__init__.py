"""Incremental regularised least squares."""

from evergrow.linear.feature_map import RFF, ReLU
from evergrow.linear.rebalanced import RebalancedRLSClassifier
from evergrow.linear.rls import RLSClassifier

__all__ = ["RFF", "RLSClassifier", "ReLU", "RebalancedRLSClassifier"]
