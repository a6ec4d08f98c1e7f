"""scikit-learn estimators over numbers, whose set of classes grows.

``classifier`` is what all classifiers share: checks of the input, prediction from scores, ``save``.
``sums`` holds the sums over examples from which least squares and class means learn, forget and
merge. It also stores the held-out examples. ``forest``, ``linear`` and ``means`` are the three
families and know nothing of each other. ``subcategory`` (coarse and fine classes) and ``novelty``
(the answer "unknown") are built on them.

Matrices and labels come in; one immutable fitted value is replaced by the next. Start reading
with ``classifier.learner``, then ``means.ncm``, the shortest family, then ``forest.learner``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
