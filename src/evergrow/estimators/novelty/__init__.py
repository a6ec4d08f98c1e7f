"""Rejection of examples that fit no known class.

``scores`` tell how well an example fits: by the cosine to a class mean, its length, and, in
``linear_scores``, by ridge regression and distances. ``calibration`` finds the level below which an
example is rejected, ``learner`` trains the wrapped estimator. Start reading with ``rejecting``.
"""

from evergrow.estimators.novelty.rejecting import RejectingClassifier

__all__ = ["RejectingClassifier"]
