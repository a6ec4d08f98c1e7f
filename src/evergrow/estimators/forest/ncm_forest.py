"""The NCM forest of Ristin, Guillaumin, Gall and Van Gool (CVPR 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from evergrow._core import SplitRules
from evergrow.estimators.forest.explanation import NCMDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, VOTING_RULES, BasicSplits, named_size
from evergrow.foundation.params import Choice, Fraction, Integer, Nothing, Number, Rule

# The position of a centroid in its node is a 16-bit number.
_MAX_CENTROIDS = 65535
# A node counts samples for all its subsets at the same time.
_MAX_SUBSETS = 2**14

# Assignments tried for a single subset of the classes, and for each of several subsets.
_ASSIGNMENTS_OF_ONE, _ASSIGNMENTS_OF_EACH = 1024, 50
# A node tries at most one in this many of the possible subsets: 1/100 of them.
_POSSIBLE_PER_SUBSET = 100
# With this many samples to compare subsets on, a forest is as accurate as with all samples
# (docs/benchmarks.md).
_SCORED_PER_CLASS, _FEWEST_SCORED = 3, 256

# With n_centroids="auto", nodes compare with all classes if they have at most this many samples. A
# node divides a class that it does not compare with between both sides: with few samples, nothing
# of it is left after some levels. The fraction falls with the square of the size, so that forests
# of larger classes stay as fast as with the square root (docs/benchmarks.md).
_SMALL_CLASS = 10

# Rules of the parameters, in addition to those that all forests have.
NCM_RULES: dict[str, list[Rule]] = {
    "n_centroids": [Choice(("auto", "sqrt", "log2")), Fraction(), Integer(2, _MAX_CENTROIDS)],
    "n_assignments": [Choice(("auto",)), Integer(1, 2**20)],
    "n_subsets": [Integer(1, _MAX_SUBSETS)],
    "subset_scale": [Number(0.0, open_low=True)],
    "cost_weight": [Number(0.0)],
    "max_scoring_samples": [Choice(("auto",)), Nothing(), Integer(1, 2**28)],
}


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
            n_centroids = centroids_per_node(self.n_centroids, n_classes, self.class_size)
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


@dataclass(eq=False, repr=False, kw_only=True)
class NCMParameters:
    """Parameters that only this forest has."""

    n_centroids: Literal["auto", "sqrt", "log2"] | float | int = "auto"
    n_assignments: Literal["auto"] | int = "auto"
    n_subsets: int = 1
    subset_scale: float = 1.0
    cost_weight: float = 0.001
    max_scoring_samples: Literal["auto"] | int | None = "auto"


@complete_docstring(has_class_means=True)
@dataclass(eq=False, repr=False, kw_only=True)
class NCMForestClassifier(ForestLearner, NCMParameters):
    """A random forest whose nodes compare samples with class means; new classes can be added.

    Each splitting node stores the means of a few random classes. Each mean is assigned to the left
    or the right child, and a sample goes to the side of its nearest mean [Ristin2014 Eq. 6]. A node
    represents a class by its mean alone, so :meth:`partial_fit` can add classes to a trained forest
    at low cost. On network features of CIFAR-100, this forest was 14 points more accurate than the
    random forest of scikit-learn and took a seventeenth of its training time (:doc:`/benchmarks`).
    NCM stands for nearest class mean.

    Parameters
    ----------
    {n_estimators}
    n_centroids : {"auto", "sqrt", "log2"}, float or int, default="auto"
        Number of class means that a node compares with: the square root or the binary logarithm of
        the number of classes, a fraction of the classes, or a fixed number. A forest with more
        means per node is slower and a little more accurate, or much more accurate if classes have
        few samples. ``"auto"`` depends on the number of samples of the median class. With up to 10
        samples, a node compares with all classes. With 20 samples, it compares with a quarter of
        them, and with many samples, with the square root of their number. Each update computes this
        number again. With `n_subsets` above 1, ``"auto"`` is the square root.
    n_assignments : "auto" or int, default="auto"
        Number of ways to assign the means to left and right that a node tries, for each subset of
        classes. If fewer ways exist, all are tried. ``"auto"`` is 1024 with one subset, otherwise
        50. A larger number takes longer in training and is rarely more accurate.
    n_subsets : int, default=1
        Number of random subsets of the classes that a node tries. With 1, a node takes the means of
        `n_centroids` random classes. With more, the forest is regularised. Subsets then have
        between 2 and `n_centroids` classes, and a node keeps the split with the highest information
        gain minus `cost_weight` times the number of means. On CIFAR-100 features, with 100 classes
        of 500 samples, ``n_subsets=100`` was 0.6 points more accurate and needed a fifth fewer
        distances to predict, but training took three times as long. On CUB-200 features, with 200
        classes of 30 samples, it was 0.8 points less accurate (:doc:`/benchmarks`). A node never
        tries more than 1 % of all possible subsets, because the trees would become too similar.
        With up to nine classes, that is one subset.
    subset_scale : float, default=1.0
        Only with `n_subsets` above 1: size of the largest subset, as a multiple of `n_centroids`.
        With 3.0, the forest is a little more accurate and needs nearly twice the distances. Use
        10.0 for features of thousands of dimensions.
    cost_weight : float, default=0.001
        Only with `n_subsets` above 1: information gain, in nats, that each further mean must add.
        With larger values, nodes keep smaller subsets. Predictions are then faster, and at some
        point less accurate.
    max_scoring_samples : "auto", int or None, default="auto"
        Only with `n_subsets` above 1: a node compares the subsets on at most this many random
        samples. The best subset then splits all samples. ``"auto"`` is three samples per class and
        at least 256. On CIFAR-100 and CUB-200 features, this was about as accurate as all samples.
        None uses all samples, which is slower and needs up to 32 MB per thread.
    {balance}
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMClassifier : One mean per class, without trees; faster and smaller.
    RLSClassifier : Least squares, with exact updates at constant time per example.
    SubcategoryForestClassifier : An NCM forest for coarse and fine labels.

    Notes
    -----
    The user guides explain how to choose parameters (:doc:`/getting_started`), how to add and
    forget samples and classes (:doc:`/growing`), and what updates cost
    (:doc:`/growing_tradeoffs`). :doc:`/method_ncm_forests` and :doc:`/method_growing` explain the
    algorithms.

    A forest stores its training samples, because updates grow parts of the trees from them. They
    take 4 bytes per sample and feature, with the number of features rounded up to a multiple of 16,
    and 12 bytes per sample. For 50,000 samples with 256 features, this is 52 MB; the 50 trees take
    156 MB. ``sample_dtype="float16"`` and `keep_per_class` make the stored samples smaller.
    `memory` and `memory_limit` move samples to a file.

    References
    ----------
    [Ristin2014] M. Ristin, M. Guillaumin, J. Gall, L. Van Gool: *Incremental Learning of NCM
    Forests for Large-Scale Image Classification*, CVPR 2014. See :doc:`/papers`.

    Examples
    --------
    {example}
    """

    _proposer: ClassVar[str] = "ncm"
    _splits = ClassMeanSplits
    _decision = NCMDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {**FOREST_RULES, **VOTING_RULES, **NCM_RULES}


def centroids_per_node(
    n_centroids: str | float | int, n_classes: int, class_size: float = math.inf
) -> int:
    """Number of class means a node compares with: at least 2, at most all.

    >>> centroids_per_node("sqrt", 100), centroids_per_node(0.25, 100), centroids_per_node(7, 3)
    (10, 25, 3)
    >>> [centroids_per_node("auto", 100, class_size) for class_size in (1, 20, 25, 500)]
    [100, 25, 16, 10]
    """
    if n_centroids == "auto":
        of_small = min(n_classes, n_classes * _SMALL_CLASS**2 / class_size**2)
        wanted = max(named_size("sqrt", n_classes), math.ceil(of_small))
    elif isinstance(n_centroids, str):
        wanted = named_size(n_centroids, n_classes)
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
