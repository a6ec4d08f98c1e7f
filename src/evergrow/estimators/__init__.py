"""scikit-learn estimators over numbers, whose set of classes grows.

``classifier`` is what all classifiers share: checks of the input, prediction from scores, ``save``.
``sums`` holds batches of examples and the sums over them, from which least squares and class means
learn, forget and merge, and held-out examples. ``forest``, ``linear`` and ``means`` are the three
families and know nothing of each other. ``subcategory`` (coarse and fine classes) and ``novelty``
(the answer "unknown") are built on them.

Matrices and labels come in; one immutable fitted value is replaced by the next. Start reading
with ``classifier.learner``, then ``means.ncm``, the shortest family, then ``forest.learner``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
