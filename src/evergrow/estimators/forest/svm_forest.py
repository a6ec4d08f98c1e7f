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
    """A random forest whose nodes split by a linear support vector machine.

    Each splitting node divides its classes at random into two halves, trains a linear SVM between
    them, and keeps the best of several such hyperplanes. They are better than random hyperplanes
    or class means, so the trees have fewer nodes, but training takes many times as long.

    The SVMs minimise the hinge loss by dual coordinate descent with the bias as a constant
    feature, on samples that each node centres and scales to the spread of standardised features.
    They stop when the optimality conditions hold to 0.1 or after 5 sweeps, and a node with more
    than 2000 samples trains them on 2000 drawn at random.

    Parameters
    ----------
    {n_estimators}
    n_candidates : int, default=20
        SVMs that a node trains, each between two other halves of its classes. If there are no
        more halves than this, all of them are tried. More are slower and more accurate.
    regularization : float, default=1.0
        The C of the SVMs: the weight of samples on the wrong side relative to a wide margin.
        Lower it for noisy samples or to train faster.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

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
