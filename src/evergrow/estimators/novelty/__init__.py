"""When to answer "unknown"."""

from evergrow.estimators.novelty.estimator import RejectingClassifier

__all__ = ["RejectingClassifier"]
