"""Analytic heads of the field, written from their papers, to compare with.

Each is a scikit-learn classifier whose ``partial_fit`` accepts unseen labels and whose weights are
solved from running sums at the next prediction. They are references for experiments and
comparisons, not estimators of the package. ``head`` has what all share, ``ridge`` the choice of a
penalty; ``RanPACClassifier`` and ``FlyCLClassifier`` are ridge regression on random features,
``StreamingLDAClassifier`` and ``KLDAClassifier`` discriminant analysis with one covariance. Start
reading with ``head``.
"""

from evergrow.research.peers.discriminant import KLDAClassifier, StreamingLDAClassifier
from evergrow.research.peers.fly_cl import FlyCLClassifier
from evergrow.research.peers.ranpac import RanPACClassifier

__all__ = ["FlyCLClassifier", "KLDAClassifier", "RanPACClassifier", "StreamingLDAClassifier"]
