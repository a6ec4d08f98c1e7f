"""A forest of linear support vector machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evergrow._core import SplitRules
from evergrow.estimators.forest.explanation import LinearDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, VOTING_RULES, BasicSplits
from evergrow.foundation.params import Integer, Number, Rule


@dataclass(frozen=True)
class SVMSplits(BasicSplits):
    """Splits by the best of several support vector machines."""

    n_candidates: int
    regularization: float

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for these numbers of classes and features."""
        return self._rules(n_candidates=self.n_candidates, regularization=self.regularization)


@dataclass(eq=False, repr=False, kw_only=True)
class SVMParameters:
    """Parameters that only this forest has."""

    n_candidates: int = 20
    regularization: float = 1.0


@complete_docstring(has_class_means=False)
@dataclass(eq=False, repr=False, kw_only=True)
class SVMForestClassifier(ForestLearner, SVMParameters):
    """A random forest whose nodes split by a linear SVM; new classes can be added.

    Each splitting node divides its classes at random into two halves and trains a linear support
    vector machine (SVM) between them. It does so several times and keeps the best hyperplane. These
    splits are better than random hyperplanes or class means, so the trees have fewer nodes, but
    training takes many times as long.

    The SVMs minimise the hinge loss by dual coordinate descent, on samples that are centred and
    scaled in each node. They stop when the optimality conditions hold to 0.1, or after 5 passes. A
    node with more than 2000 samples trains them on 2000 random ones.

    Parameters
    ----------
    {n_estimators}
    n_candidates : int, default=20
        Number of SVMs that a node trains, each for another division of its classes into halves. If
        fewer divisions exist, all are tried. More are slower and more accurate.
    regularization : float, default=1.0
        The parameter C of the SVMs: the penalty for samples on the wrong side of the margin. Lower
        it for noisy samples, or to train faster.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; much faster to train.
    LinearForestClassifier : Nodes split by random hyperplanes.

    Examples
    --------
    {example}
    """

    _proposer: ClassVar[str] = "svm"
    _splits = SVMSplits
    _decision = LinearDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {
        **FOREST_RULES,
        **VOTING_RULES,
        "n_candidates": [Integer(1, 2**20)],
        "regularization": [Number(0.0, open_low=True)],
    }
