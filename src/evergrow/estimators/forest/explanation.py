"""The path of one sample through every tree, to explain a prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest

Side: TypeAlias = Literal["left", "right"]
# A decision as the core reports it: node, whether the sample goes right, position of the nearest
# vector, score, and class and side of each vector.
Traced: TypeAlias = tuple[int, bool, int, float, list[tuple[int, int]]]


@dataclass(frozen=True)
class Query:
    """One sample in one tree of a forest."""

    fitted: FittedForest
    tree: int
    x: npt.NDArray[np.float64]


class Decision(Protocol):
    """What a splitting node compared, and where it sent the sample."""

    @classmethod
    def of(cls, query: Query, traced: Traced) -> Self:
        """Build from what the core reports."""


@dataclass(frozen=True)
class NCMDecision:
    """Decision of a node of an NCM forest, which compares a sample with class means.

    Attributes
    ----------
    node : int
        Index of the node in its tree; the root is 0.
    classes : list
        Classes whose means the node compares with.
    sides : list of {"left", "right"}
        The child that each of these means belongs to.
    nearest : object
        The class of the nearest mean.
    distance : float
        Euclidean distance from the nearest mean, in scaled features.
    goes : {"left", "right"}
        The child the sample went to.
    """

    node: int
    classes: list[Any]
    sides: list[Side]
    nearest: Any
    distance: float
    goes: Side

    @classmethod
    def of(cls, query: Query, traced: Traced) -> Self:
        """Build from what the core reports.

        :meta private:
        """
        node, right, nearest, squared, centroids = traced
        names = query.fitted.labels.classes[[c for c, _ in centroids]].tolist()
        sides = [_side(side) for _, side in centroids]
        return cls(node, names, sides, names[nearest], squared**0.5, _side(right))

    def __str__(self) -> str:
        """Describe the decision in one line."""
        return (
            f"node {self.node}: nearest of {len(self.classes)} means is {self.nearest!r} "
            f"at {self.distance:.3g}, goes {self.goes}"
        )


@dataclass(frozen=True)
class AxisDecision:
    """Decision of a node of an axis forest, which compares one feature with a threshold.

    Attributes
    ----------
    node : int
        Index of the node in its tree; the root is 0.
    feature : int
        Index of the feature.
    value : float
        Value of the feature in the sample.
    threshold : float
        The threshold, in the units of the input.
    goes : {"left", "right"}
        The child the sample went to: right if the value is above the threshold.
    """

    node: int
    feature: int
    value: float
    threshold: float
    goes: Side

    @classmethod
    def of(cls, query: Query, traced: Traced) -> Self:
        """Build from what the core reports.

        :meta private:
        """
        node, right, _, score, [(feature, _)] = traced
        value = float(query.x[feature])
        threshold = value + score / float(query.fitted.standardization.scale[feature])
        return cls(node, feature, value, threshold, _side(right))

    def __str__(self) -> str:
        """Describe the decision in one line."""
        relation = "above" if self.goes == "right" else "not above"
        return (
            f"node {self.node}: feature {self.feature} is {self.value:.3g}, "
            f"{relation} {self.threshold:.3g}, goes {self.goes}"
        )


@dataclass(frozen=True)
class LinearDecision:
    """Decision of a node of a linear or SVM forest, which splits by a hyperplane.

    Attributes
    ----------
    node : int
        Index of the node in its tree; the root is 0.
    distance : float
        Euclidean distance from the hyperplane, in scaled features.
    goes : {"left", "right"}
        The child the sample went to, which depends on its side of the hyperplane.
    """

    node: int
    distance: float
    goes: Side

    @classmethod
    def of(cls, query: Query, traced: Traced) -> Self:
        """Build from what the core reports.

        :meta private:
        """
        node, right, _, score, _ = traced
        normal = query.fitted.forest.centroid(query.tree, node, 0)
        length = float(np.linalg.norm(normal.astype(np.float64)))
        # A normal of zeros, which files may hold, has no plane: all samples are on one side.
        distance = abs(score) / length if length else math.inf
        return cls(node, distance, _side(right))

    def __str__(self) -> str:
        """Describe the decision in one line."""
        return f"node {self.node}: {self.distance:.3g} from the hyperplane, goes {self.goes}"


@dataclass(frozen=True)
class TreePath:
    """The path of one sample through one tree.

    Attributes
    ----------
    decisions : list
        The decision of each splitting node on the path, from the root on: an
        :class:`NCMDecision`, :class:`AxisDecision` or :class:`LinearDecision`.
    leaf : int
        Index of the leaf that the sample reached.
    counts : dict
        Number of training samples of each class in the leaf.
    """

    decisions: list[Decision]
    leaf: int
    counts: dict[Any, int]

    def __str__(self) -> str:
        """Write the path, one decision per line."""
        counts = sorted(self.counts.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{label!r}: {count}" for label, count in counts)
        return "\n".join(
            [*(str(decision) for decision in self.decisions), f"leaf {self.leaf}: {shown}"]
        )


@dataclass(frozen=True)
class Explanation:
    """The paths of one sample through all trees of a forest; ``print`` shows them.

    The method ``explain`` of a forest returns it.

    Attributes
    ----------
    trees : list of TreePath
        One path for each tree.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> forest = NCMForestClassifier(1, min_samples_leaf=1, random_state=0)
    >>> explanation = forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).explain([7])
    >>> explanation.trees[0].counts
    {'b': 2}
    """

    trees: list[TreePath]

    def __str__(self) -> str:
        """Write all paths."""
        return "\n\n".join(f"tree {t}\n{path}" for t, path in enumerate(self.trees))


def explain_sample(
    fitted: FittedForest, x: npt.NDArray[np.float64], kind: type[Decision]
) -> Explanation:
    """Follow one sample through every tree; ``kind`` describes the decisions of the nodes."""
    trees = range(len(fitted.forest))
    return Explanation([_explain_tree(Query(fitted, tree, x), kind) for tree in trees])


def _explain_tree(query: Query, kind: type[Decision]) -> TreePath:
    fitted = query.fitted
    path, leaf, counts = fitted.forest.trace(query.tree, query.x, fitted.standardization.core)
    labels = fitted.labels.classes.tolist()
    decisions = [kind.of(query, traced) for traced in path]
    return TreePath(decisions, leaf, {labels[c]: n for c, n in counts})


def _side(right: int) -> Side:
    return "right" if right else "left"
