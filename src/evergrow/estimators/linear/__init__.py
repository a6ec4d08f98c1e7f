"""Incremental regularised least squares [Camoriano2017].

``rls`` is the public class; ``changes`` goes from one fitted value to the next and ``solver`` from
sums to weights; ``selection`` chooses parameters on held-out examples. Start with ``changes``.
"""

from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.rebalanced_rls import RebalancedRLSClassifier
from evergrow.estimators.linear.rls import RLSClassifier

__all__ = ["RFF", "RLSClassifier", "ReLU", "RebalancedRLSClassifier"]
