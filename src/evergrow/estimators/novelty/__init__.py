"""Rejection of examples that fit no known class.

``measures`` score how well an example fits: ``nearest_means`` by the cosine to a class mean,
``linear_scores`` by ridge regression and distances, ``summed_scores`` by all of them.
``calibration`` finds the level below which an example is rejected, ``learner`` trains the wrapped
estimator. Start reading with ``rejecting``.
"""

from evergrow.estimators.novelty.rejecting import RejectingClassifier

__all__ = ["RejectingClassifier"]
