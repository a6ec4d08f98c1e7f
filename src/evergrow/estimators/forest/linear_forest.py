"""A forest of random hyperplanes."""

from __future__ import annotations

from typing import ClassVar

from evergrow.estimators.forest.axis_forest import CandidateForest
from evergrow.estimators.forest.explanation import LinearDecision


class LinearForestClassifier(CandidateForest):
    """A random forest whose nodes split by a random hyperplane.

    Each splitting node draws random directions, a random threshold along each, and keeps the
    best. Hyperplanes need neither class means nor meaningful features, but a random direction in a
    high-dimensional space separates little: the more features, the more candidates are needed.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More trees are more accurate, with diminishing returns.
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Directions that a node tries, each with one random threshold: the square root or binary
        logarithm of the number of features and at least ten, a fraction of it, or a fixed number.
        More make trees more accurate and more similar, in proportionally more time.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from evergrow import LinearForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> forest = LinearForestClassifier(min_samples_leaf=1, random_state=0)
    >>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.96)
    True
    """

    _proposer: ClassVar[str] = "linear"
    _decision = LinearDecision
