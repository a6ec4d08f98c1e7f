"""How nodes are split: the parameters as frozen values, and the rules that the core follows.

:class:`SplitParameters` is a frozen copy of those parameters of an estimator that concern splits.
For given numbers of classes and features, it yields the rules for the core.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from evergrow.foundation.params import Choice, Fraction, Integer, Nothing, Number, Rule

SplitRules: TypeAlias = dict[str, Any]

# The position of a centroid in its node is a 16-bit number.
_MAX_CENTROIDS = 65535
_MAX_CANDIDATES = 2**20
# A node counts samples for all its subsets at the same time.
_MAX_SUBSETS = 2**14
# With few features their square root is too small a choice to find a split worth making.
_FEW_CANDIDATES = 10

# Assignments tried for a single subset of the classes, and for each of several subsets.
_ASSIGNMENTS_OF_ONE, _ASSIGNMENTS_OF_EACH = 1024, 50
# A node tries at most one of this many possible subsets.
_POSSIBLE_PER_SUBSET = 100
# With this many samples to compare subsets on, a forest is as accurate as with all samples
# (docs/benchmarks.md).
_SCORED_PER_CLASS, _FEWEST_SCORED = 3, 256

_SIZES = {"sqrt": math.sqrt, "log2": math.log2}

# Rules of the parameters, in addition to those that all forests have.
NCM_RULES: dict[str, list[Rule]] = {
    "n_centroids": [Choice(("sqrt", "log2")), Fraction(), Integer(2, _MAX_CENTROIDS)],
    "n_assignments": [Choice(("auto",)), Integer(1, _MAX_CANDIDATES)],
    "n_subsets": [Integer(1, _MAX_SUBSETS)],
    "subset_scale": [Number(0.0, open_low=True)],
    "cost_weight": [Number(0.0)],
    "max_scoring_samples": [Choice(("auto",)), Nothing(), Integer(1, 2**28)],
}
CANDIDATE_RULES: dict[str, list[Rule]] = {
    "n_candidates": [Choice(("sqrt", "log2")), Fraction(), Integer(1, _MAX_CANDIDATES)],
}
SVM_RULES: dict[str, list[Rule]] = {
    "n_candidates": [Integer(1, _MAX_CANDIDATES)],
    "regularization": [Number(0.0, open_low=True)],
}


class SplitParameters(Protocol):
    """Parameters that decide how nodes are split.

    Attributes
    ----------
    proposer : str
        Name of what finds the splits, in the table of the core and in model files.
    has_class_means : bool
        Nodes compare with class means.
    """

    has_class_means: ClassVar[bool]

    @property
    def proposer(self) -> str:
        """Name of what finds the splits."""

    def rules(self, n_classes: int, n_features: int) -> SplitRules:
        """The rules that the core follows for these numbers of classes and features."""


@dataclass(frozen=True)
class BasicSplits:
    """Parameters that all kinds of splits have."""

    has_class_means: ClassVar[bool] = False

    proposer: str
    min_samples_leaf: int
    min_gain: float

    @classmethod
    def of(cls, estimator: Any, proposer: str) -> Self:
        """Copy the parameters from an estimator; ``proposer`` names what finds the splits."""
        names = [field.name for field in fields(cls) if field.name != "proposer"]
        return cls(proposer=proposer, **{name: getattr(estimator, name) for name in names})

    @abstractmethod
    def rules(self, n_classes: int, n_features: int) -> SplitRules:
        """The rules that the core follows for these numbers of classes and features."""

    def _rules(self, **rules: Any) -> SplitRules:
        common = {
            "proposer": self.proposer,
            "n_centroids": 0,
            "min_samples_leaf": self.min_samples_leaf,
            "min_gain": self.min_gain,
            "regularization": 0.0,
        }
        return common | rules


@dataclass(frozen=True)
class ClassMeanSplits(BasicSplits):
    """Splits by the nearest of several class means."""

    has_class_means = True

    n_centroids: str | float | int
    n_assignments: str | int
    n_subsets: int
    subset_scale: float
    cost_weight: float
    max_scoring_samples: str | int | None

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for these numbers of classes and features."""
        largest = largest_subset(self.n_centroids, self.subset_scale, n_classes)
        n_subsets = subsets_per_node(self.n_subsets, largest, n_classes)
        n_candidates = assignments_per_subset(self.n_assignments, n_subsets)
        if n_subsets == 1:
            n_centroids = centroids_per_node(self.n_centroids, n_classes)
            return self._rules(n_centroids=n_centroids, n_candidates=n_candidates)
        # The nodes are the same as with one subset; only their splits are found in another way.
        return self._rules(
            proposer="regularised",
            n_centroids=largest,
            n_candidates=n_candidates,
            n_subsets=n_subsets,
            cost_weight=self.cost_weight,
            max_scoring_samples=scoring_samples(self.max_scoring_samples, n_classes),
        )


@dataclass(frozen=True)
class CandidateSplits(BasicSplits):
    """Splits by the best of several random candidates."""

    n_candidates: str | float | int

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for these numbers of classes and features."""
        return self._rules(n_candidates=candidates_per_node(self.n_candidates, n_features))


@dataclass(frozen=True)
class SVMSplits(BasicSplits):
    """Splits by the best of several support vector machines."""

    n_candidates: int
    regularization: float

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for these numbers of classes and features."""
        return self._rules(n_candidates=self.n_candidates, regularization=self.regularization)


@dataclass(frozen=True)
class FixedSplits:
    """Splits by class means with given rules, by the number of classes."""

    has_class_means: ClassVar[bool] = True

    by_n_classes: Mapping[int, SplitRules]
    proposer: str = "ncm"

    def rules(self, n_classes: int, n_features: int) -> SplitRules:  # noqa: ARG002
        """The rules that the core follows for this number of classes."""
        return self.by_n_classes[n_classes]


def centroids_per_node(n_centroids: str | float | int, n_classes: int) -> int:
    """Number of class means a node compares with: at least 2, at most all.

    >>> centroids_per_node("sqrt", 100), centroids_per_node(0.25, 100), centroids_per_node(7, 3)
    (10, 25, 3)
    """
    if isinstance(n_centroids, str):
        wanted = math.ceil(_SIZES[n_centroids](n_classes))
    elif isinstance(n_centroids, (float, np.floating)):
        wanted = math.ceil(n_centroids * n_classes)
    else:
        wanted = int(n_centroids)
    return max(2, min(wanted, n_classes, _MAX_CENTROIDS))


def assignments_per_subset(n_assignments: str | int, n_subsets: int) -> int:
    """Number of ways of sending the means of a subset of the classes left and right.

    >>> assignments_per_subset("auto", 1), assignments_per_subset("auto", 100)
    (1024, 50)
    """
    if isinstance(n_assignments, str):
        return _ASSIGNMENTS_OF_ONE if n_subsets == 1 else _ASSIGNMENTS_OF_EACH
    return int(n_assignments)


def subsets_per_node(n_subsets: int, largest: int, n_classes: int) -> int:
    """Number of subsets a node tries: at most a hundredth of all possible ones.

    With few classes every tree would otherwise try all subsets, and all trees would be the same.

    >>> subsets_per_node(100, 10, 100), subsets_per_node(100, 4, 12), subsets_per_node(100, 2, 4)
    (100, 7, 1)
    """
    possible = 0
    for size in range(2, largest + 1):
        possible += math.comb(n_classes, size)
        if possible >= _POSSIBLE_PER_SUBSET * n_subsets:
            return n_subsets
    return max(1, possible // _POSSIBLE_PER_SUBSET)


def scoring_samples(max_scoring_samples: str | int | None, n_classes: int) -> int:
    """Number of samples of a node that subsets are compared on; 0 for all.

    >>> scoring_samples("auto", 10), scoring_samples("auto", 1000), scoring_samples(None, 10)
    (256, 3000, 0)
    """
    if isinstance(max_scoring_samples, str):
        return max(_FEWEST_SCORED, _SCORED_PER_CLASS * n_classes)
    return int(max_scoring_samples or 0)


def largest_subset(n_centroids: str | float | int, subset_scale: float, n_classes: int) -> int:
    """Number of classes in the largest subset that a node tries: at least 2, at most all.

    >>> largest_subset("sqrt", 1.0, 100), largest_subset("sqrt", 3.0, 100)
    (10, 30)
    """
    wanted = subset_scale * centroids_per_node(n_centroids, n_classes)
    return max(2, min(math.ceil(min(wanted, n_classes)), _MAX_CENTROIDS))


def candidates_per_node(n_candidates: str | float | int, n_features: int) -> int:
    """Number of random splits a node tries; a size given by name is at least ten.

    >>> candidates_per_node("sqrt", 400), candidates_per_node("sqrt", 4)
    (20, 10)
    >>> candidates_per_node(0.5, 400), candidates_per_node(7, 400)
    (200, 7)
    """
    if isinstance(n_candidates, str):
        return max(_FEW_CANDIDATES, math.ceil(_SIZES[n_candidates](n_features)))
    if isinstance(n_candidates, (float, np.floating)):
        return min(math.ceil(n_candidates * n_features), _MAX_CANDIDATES)
    return int(n_candidates)
