"""Incremental regularised least squares."""

from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.rebalanced import RebalancedRLSClassifier
from evergrow.estimators.linear.rls import RLSClassifier

__all__ = ["RFF", "RLSClassifier", "ReLU", "RebalancedRLSClassifier"]
