"""How nodes split their samples: one value for each kind of split."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.foundation.params import Choice, Fraction, Integer, Nothing, Number, Rule, Value

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

_MAX_CANDIDATES = 2**20
# With few features their square root is too small a choice to find a split worth making.
_FEW_CANDIDATES = 10


@dataclass(frozen=True, repr=False)
class Splits(Value):
    """What a forest must know about a kind of splits.

    To add splits, write a proposer of the core with its line in ``cpp/propose/proposer_table.cpp``,
    and a subclass, which a forest names in ``_kinds``.

    Attributes
    ----------
    _proposer : str
        Name of what finds the splits, in the table of the core and in model files.
    _has_class_means : bool
        Nodes compare with class means.
    """

    _: KW_ONLY
    min_gain: float = 1e-7

    _proposer: ClassVar[str]
    _has_class_means: ClassVar[bool] = False
    _rules: ClassVar[dict[str, list[Rule]]] = {"min_gain": [Number(0.0)]}

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:
        """What the core needs to find splits, for these numbers of classes and features.

        ``class_size`` is the number of samples of the median class that a tree sees.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class ClassMeans(Splits):
    """Splits by the nearest of several class means, those of an NCM forest [Ristin2014 Sec. 3].

    ``splits="auto"`` of :class:`NCMForestClassifier` is ``ClassMeans()``.

    Parameters
    ----------
    n_centroids : {"auto", "sqrt", "log2"}, float or int, default="auto"
        Number of class means that a node compares with: the square root or the binary logarithm of
        the number of classes, a fraction of the classes, or a fixed number. A forest with more
        means per node is slower and a little more accurate, or much more accurate if classes have
        few samples. ``"auto"`` depends on the number of samples of the median class. With up to 10
        samples, a node compares with all classes. With 20 samples, it compares with a quarter of
        them, and with many samples, with the square root of their number. Each update computes this
        number again.
    n_assignments : "auto" or int, default="auto"
        Number of ways to assign the means to left and right that a node tries. If fewer ways exist,
        all are tried. ``"auto"`` is 1024. A larger number takes longer in training and is rarely
        more accurate.
    min_gain : float, default=1e-7
        A node is split only if the information gain, in nats, is larger than this.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> from evergrow.estimators import ClassMeans
    >>> NCMForestClassifier(splits=ClassMeans(n_centroids="sqrt")).splits
    ClassMeans(n_centroids='sqrt')
    """

    n_centroids: Literal["auto", "sqrt", "log2"] | float | int = "auto"
    n_assignments: Literal["auto"] | int = "auto"

    _proposer = "ncm"
    _has_class_means = True
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_centroids": [
            Choice(("auto", "sqrt", "log2")),
            Fraction(),
            Integer(2, _MAX_CENTROIDS),
        ],
        "n_assignments": [Choice(("auto",)), Integer(1, _MAX_CANDIDATES)],
        **Splits._rules,
    }

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:  # noqa: ARG002
        return {
            "n_centroids": centroids_per_node(self.n_centroids, n_classes, class_size),
            "n_candidates": assignments_per_subset(self.n_assignments, 1),
        }


@dataclass(frozen=True, repr=False)
class Regularised(Splits):
    """Splits by the best of many subsets of the class means [Ristin2015 Eq. 5].

    A node keeps the split with the highest information gain minus `cost` times the number of means.
    On CIFAR-100 features, with 100 classes of 500 samples, this was 0.6 points more accurate than
    :class:`ClassMeans` and needed a fifth fewer distances to predict, but training took three times
    as long. On CUB-200 features, with 200 classes of 30 samples, it was 0.8 points less accurate
    (:doc:`/benchmarks`).

    Parameters
    ----------
    n_subsets : int, default=100
        Number of random subsets of the classes that a node tries. It never tries more than 1 % of
        all possible subsets, because the trees would become too similar. With up to nine classes,
        that is one subset, and an NCM forest has the splits of :class:`ClassMeans`.
    n_assignments : "auto" or int, default="auto"
        Number of ways to assign the means of a subset to left and right that a node tries.
        ``"auto"`` is 50.
    scale : float, default=1.0
        Size of the largest subset, as a multiple of the square root of the number of classes. The
        smallest has 2 classes. With 3.0, the forest is a little more accurate and needs nearly
        twice the distances. Use 10.0 for features of thousands of dimensions.
    cost : float, default=0.001
        Information gain, in nats, that each further mean must add. With larger values, nodes keep
        smaller subsets. Predictions are then faster, and at some point less accurate.
    scoring_samples : "auto", int or None, default="auto"
        A node compares the subsets on at most this many random samples. The best subset then splits
        all samples. ``"auto"`` is three samples per class and at least 256. On CIFAR-100 and
        CUB-200 features, this was about as accurate as all samples. None uses all samples, which is
        slower and needs up to 32 MB per thread. Raise it for the method ``"joint"`` of
        :class:`SubcategoryForestClassifier` with few fine labels: with labels for 4 % of CIFAR-100
        features, 4096 was two points more accurate than 1024.
    min_gain : float, default=1e-7
        A node is split only if the information gain, in nats, is larger than this.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> from evergrow.estimators import Regularised
    >>> NCMForestClassifier(splits=Regularised(scale=3.0)).splits
    Regularised(scale=3.0)
    """

    n_subsets: int = 100
    n_assignments: Literal["auto"] | int = "auto"
    scale: float = 1.0
    cost: float = 0.001
    scoring_samples: Literal["auto"] | int | None = "auto"

    # The nodes are those of class means; only their splits are found in another way.
    _proposer = "ncm"
    _has_class_means = True
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_subsets": [Integer(2, _MAX_SUBSETS)],
        "n_assignments": [Choice(("auto",)), Integer(1, _MAX_CANDIDATES)],
        "scale": [Number(0.0, open_low=True)],
        "cost": [Number(0.0)],
        "scoring_samples": [Choice(("auto",)), Nothing(), Integer(1, 2**28)],
        **Splits._rules,
    }

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:
        found = self._subsets(n_classes)
        if found["n_subsets"] == 1:
            plain = ClassMeans(n_assignments=self.n_assignments)
            return plain._options(n_classes, n_features, class_size)
        return found

    def _subsets(self, n_means: int) -> dict[str, Any]:
        """What the core needs to choose among subsets of so many means."""
        largest = largest_subset(self.scale, n_means)
        return {
            "proposer": "regularised",
            "n_centroids": largest,
            "n_candidates": assignments_per_subset(self.n_assignments, self.n_subsets),
            "n_subsets": subsets_per_node(self.n_subsets, largest, n_means),
            "cost_weight": self.cost,
            "max_scoring_samples": scoring_samples(self.scoring_samples, n_means),
        }


@dataclass(frozen=True, repr=False)
class Thresholds(Splits):
    """Splits by a threshold on one feature, those of :class:`AxisForestClassifier`.

    Parameters
    ----------
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Number of features that a node tries, each with one random threshold: the square root or
        the binary logarithm of the number of features (at least ten), a fraction of the features,
        or a fixed number. With more, trees are more accurate but more similar to each other.
        Features that are constant in the node do not count.
    min_gain : float, default=1e-7
        A node is split only if the information gain, in nats, is larger than this.

    Examples
    --------
    >>> from evergrow.estimators import AxisForestClassifier, Thresholds
    >>> AxisForestClassifier(splits=Thresholds(n_candidates=20)).splits
    Thresholds(n_candidates=20)
    """

    n_candidates: Literal["sqrt", "log2"] | float | int = "sqrt"

    _proposer = "axis"
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_candidates": [Choice(("sqrt", "log2")), Fraction(), Integer(1, _MAX_CANDIDATES)],
        **Splits._rules,
    }

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:  # noqa: ARG002
        return {"n_candidates": candidates_per_node(self.n_candidates, n_features)}


@dataclass(frozen=True, repr=False)
class Directions(Thresholds):
    """Splits by a threshold along a direction, those of :class:`LinearForestClassifier`.

    Parameters
    ----------
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Number of directions that a node tries, each with one random threshold: the square root or
        the binary logarithm of the number of features (at least ten), a fraction of the number of
        features, or a fixed number. With more, trees are more accurate but more similar to each
        other, and training takes proportionally longer.
    min_gain : float, default=1e-7
        A node is split only if the information gain, in nats, is larger than this.

    Examples
    --------
    >>> from evergrow.estimators import LinearForestClassifier, Directions
    >>> LinearForestClassifier(splits=Directions(n_candidates=50)).splits
    Directions(n_candidates=50)
    """

    _proposer = "linear"


@dataclass(frozen=True, repr=False)
class SVMs(Splits):
    """Splits by a linear support vector machine, those of :class:`SVMForestClassifier`.

    Parameters
    ----------
    n_candidates : int, default=20
        Number of SVMs that a node trains, each for another division of its classes into halves. If
        fewer divisions exist, all are tried. More are slower and more accurate.
    regularization : float, default=1.0
        The parameter C of the SVMs: the penalty for samples on the wrong side of the margin. Lower
        it for noisy samples, or to train faster.
    min_gain : float, default=1e-7
        A node is split only if the information gain, in nats, is larger than this.

    Examples
    --------
    >>> from evergrow.estimators import SVMForestClassifier, SVMs
    >>> SVMForestClassifier(splits=SVMs(n_candidates=5)).splits
    SVMs(n_candidates=5)
    """

    n_candidates: int = 20
    regularization: float = 1.0

    _proposer = "svm"
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_candidates": [Integer(1, _MAX_CANDIDATES)],
        "regularization": [Number(0.0, open_low=True)],
        **Splits._rules,
    }

    def _options(self, n_classes: int, n_features: int, class_size: float) -> dict[str, Any]:  # noqa: ARG002
        return {"n_candidates": self.n_candidates, "regularization": self.regularization}


# With min_samples_leaf="auto", a class could fill this many leaves, as long as leaves are not
# larger than those of the paper.
_LEAVES_PER_CLASS, _LARGEST_LEAF = 50, 10


def leaf_size(min_samples_leaf: str | int, class_size: float) -> int:
    """Fewest samples in a leaf; ``"auto"`` is a share of the size of a class, 1 to 10.

    >>> [leaf_size("auto", size) for size in (1, 60, 150, 500, 6000)]
    [1, 1, 3, 10, 10]
    """
    if not isinstance(min_samples_leaf, str):
        return int(min_samples_leaf)
    return max(1, int(min(_LARGEST_LEAF, class_size / _LEAVES_PER_CLASS)))


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


def scoring_samples(wanted: str | int | None, n_classes: int) -> int:
    """Number of samples of a node that subsets are compared on; 0 for all.

    >>> scoring_samples("auto", 10), scoring_samples("auto", 1000), scoring_samples(None, 10)
    (256, 3000, 0)
    """
    if isinstance(wanted, str):
        return max(_FEWEST_SCORED, _SCORED_PER_CLASS * n_classes)
    return int(wanted or 0)


def largest_subset(scale: float, n_classes: int) -> int:
    """Number of classes in the largest subset that a node tries: at least 2, at most all.

    >>> largest_subset(1.0, 100), largest_subset(3.0, 100)
    (10, 30)
    """
    wanted = scale * centroids_per_node("sqrt", n_classes)
    return max(2, min(math.ceil(min(wanted, n_classes)), _MAX_CENTROIDS))


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


def named_size(name: str, number: int) -> int:
    """Square root ("sqrt") or binary logarithm ("log2") of a number, rounded up."""
    return math.ceil(math.sqrt(number) if name == "sqrt" else math.log2(number))
