"""When to answer "unknown"."""

from evergrow.novelty.estimator import RejectingClassifier

__all__ = ["RejectingClassifier"]
