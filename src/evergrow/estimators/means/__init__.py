"""Nearest class means, and a metric for them."""

from evergrow.estimators.means.metric import NCMMetric
from evergrow.estimators.means.ncm import NCMClassifier

__all__ = ["NCMClassifier", "NCMMetric"]
