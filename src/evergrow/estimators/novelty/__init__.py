"""Rejection of examples that fit no known class.

``measures`` score how well an example fits, ``calibration`` finds the level below which it is
rejected, ``learner`` trains the wrapped estimator. Start reading with ``rejecting``.
"""

from evergrow.estimators.novelty.rejecting import RejectingClassifier

__all__ = ["RejectingClassifier"]
