"""Forests of random thresholds, on single features or along random directions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from evergrow._core import SplitRules
from evergrow.estimators.forest.explanation import AxisDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, VOTING_RULES, BasicSplits, named_size
from evergrow.foundation.params import Choice, Fraction, Integer, Rule

_MAX_CANDIDATES = 2**20
# With few features their square root is too small a choice to find a split worth making.
_FEW_CANDIDATES = 10


@dataclass(frozen=True)
class CandidateSplits(BasicSplits):
    """Splits by the best of several random candidates."""

    n_candidates: str | float | int

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for these numbers of classes and features."""
        return self._rules(n_candidates=candidates_per_node(self.n_candidates, n_features))


def candidates_per_node(n_candidates: str | float | int, n_features: int) -> int:
    """Number of random splits a node tries; a size given by name is at least ten.

    >>> candidates_per_node("sqrt", 400), candidates_per_node("sqrt", 4)
    (20, 10)
    >>> candidates_per_node(0.5, 400), candidates_per_node(7, 400)
    (200, 7)
    """
    if isinstance(n_candidates, str):
        return max(_FEW_CANDIDATES, named_size(n_candidates, n_features))
    if isinstance(n_candidates, (float, np.floating)):
        return min(math.ceil(n_candidates * n_features), _MAX_CANDIDATES)
    return int(n_candidates)


@dataclass(eq=False, repr=False, kw_only=True)
class CandidateParameters:
    """Parameters of a forest whose nodes keep the best of several random candidates."""

    _splits: ClassVar[type[BasicSplits]] = CandidateSplits
    _rules: ClassVar[dict[str, list[Rule]]] = {
        **FOREST_RULES,
        **VOTING_RULES,
        "n_candidates": [Choice(("sqrt", "log2")), Fraction(), Integer(1, _MAX_CANDIDATES)],
    }

    n_candidates: Literal["sqrt", "log2"] | float | int = "sqrt"


@complete_docstring(has_class_means=False)
@dataclass(eq=False, repr=False, kw_only=True)
class AxisForestClassifier(ForestLearner, CandidateParameters):
    """A random forest whose nodes compare one feature with a threshold; new classes can be added.

    Each splitting node draws random features and one random threshold for each, and keeps the best
    pair, like extremely randomised trees. A node reads a single number, so this forest is the
    fastest to predict. It suits tables in which each column has a meaning of its own. On image
    features, :class:`NCMForestClassifier` is more accurate.

    Parameters
    ----------
    {n_estimators}
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Number of features that a node tries, each with one random threshold: the square root or
        the binary logarithm of the number of features (at least ten), a fraction of the features,
        or a fixed number. With more, trees are more accurate but more similar to each other.
        Features that are constant in the node do not count.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; more accurate on image features.
    LinearForestClassifier : Nodes split by random hyperplanes.
    SVMForestClassifier : Nodes split by linear support vector machines.

    Examples
    --------
    {example}
    """

    _proposer: ClassVar[str] = "axis"
    _decision = AxisDecision
