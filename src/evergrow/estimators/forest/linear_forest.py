"""A forest of random hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evergrow.estimators.forest.axis_forest import CandidateParameters
from evergrow.estimators.forest.explanation import LinearDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import complete_docstring


@complete_docstring(has_class_means=False)
@dataclass(eq=False, repr=False, kw_only=True)
class LinearForestClassifier(ForestLearner, CandidateParameters):
    """A random forest whose nodes split by a random hyperplane.

    Each splitting node draws random directions, a random threshold along each, and keeps the
    best. Hyperplanes need neither class means nor meaningful features, but a random direction in a
    high-dimensional space separates little: the more features, the more candidates are needed.

    Parameters
    ----------
    {n_estimators}
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Directions that a node tries, each with one random threshold: the square root or binary
        logarithm of the number of features and at least ten, a fraction of it, or a fixed number.
        More make trees more accurate and more similar, in proportionally more time.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    {example}
    """

    _proposer: ClassVar[str] = "linear"
    _decision = LinearDecision
