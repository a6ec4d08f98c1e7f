"""Nearest class means [Ristin2014 Eq. 1, 2], and a learnt metric for them [Mensink2013].

``ncm`` is the classifier, ``fitted`` what it has learnt and its scores, ``covariance`` how far
examples are from their means. Start reading with ``ncm``.
"""

from evergrow.estimators.means.ncm import NCMClassifier
from evergrow.estimators.means.ncm_metric import NCMMetric

__all__ = ["NCMClassifier", "NCMMetric"]
