"""Incremental regularised least squares [Camoriano2017].

``rls`` is the public class; ``fitted`` is what it has learnt and how that changes, ``solver`` goes
from sums to weights; ``selection`` chooses parameters on held-out examples. Start with ``fitted``.
"""

from evergrow.estimators.linear.feature_map import RFF, Auto, ReLU
from evergrow.estimators.linear.request import HoldOut, LeaveOneOut
from evergrow.estimators.linear.rls import RLSClassifier

__all__ = ["RFF", "Auto", "HoldOut", "LeaveOneOut", "RLSClassifier", "ReLU"]
