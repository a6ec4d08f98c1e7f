"""Nearest class means, and a metric for them."""

from evergrow.means.metric import NCMMetric
from evergrow.means.ncm import NCMClassifier

__all__ = ["NCMClassifier", "NCMMetric"]
