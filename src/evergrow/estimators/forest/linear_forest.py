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
    """A random forest whose nodes split by a random hyperplane; new classes can be added.

    Each splitting node draws random directions and one random threshold along each, and keeps the
    best pair. In a high-dimensional space, a random direction separates little: the more features,
    the more candidates are needed.

    Parameters
    ----------
    {n_estimators}
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Number of directions that a node tries, each with one random threshold: the square root or
        the binary logarithm of the number of features (at least ten), a fraction of the number of
        features, or a fixed number. With more, trees are more accurate but more similar to each
        other, and training takes proportionally longer.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; more accurate on image features.
    AxisForestClassifier : Nodes compare one feature with a threshold.
    SVMForestClassifier : Nodes split by linear support vector machines.

    Examples
    --------
    {example}
    """

    _proposer: ClassVar[str] = "linear"
    _decision = LinearDecision
