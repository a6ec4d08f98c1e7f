"""Why a forest answered as it did: the way of one sample through every tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest

Side: TypeAlias = Literal["left", "right"]
# As the core traces a step: node, whether it goes right, place of the nearest vector, score, and
# class and side of each vector.
_Traced: TypeAlias = tuple[int, bool, int, float, list[tuple[int, int]]]


@dataclass(frozen=True)
class Step:
    """One splitting node of class means on the way.

    Attributes
    ----------
    node : int
        Number of the node in its tree; the root is 0.
    classes : list
        Classes whose means the node compares with.
    sides : list of {"left", "right"}
        The child that each of these means leads to.
    nearest : object
        Class of the nearest mean.
    distance : float
        Euclidean distance to it, in scaled features.
    goes : {"left", "right"}
        The child the sample went to.
    """

    node: int
    classes: list[Any]
    sides: list[Side]
    nearest: Any
    distance: float
    goes: Side

    def __str__(self) -> str:
        """Write the step as one line."""
        return (
            f"node {self.node}: nearest of {len(self.classes)} means is {self.nearest!r} "
            f"at {self.distance:.3g}, goes {self.goes}"
        )


@dataclass(frozen=True)
class AxisStep:
    """One splitting node on the way that compares a feature with a threshold.

    Attributes
    ----------
    node : int
        Number of the node in its tree; the root is 0.
    feature : int
        Index of the feature.
    value : float
        The feature of the sample.
    threshold : float
        What it is compared with, in the units of the input.
    goes : {"left", "right"}
        The child the sample went to: right where the value is above the threshold.
    """

    node: int
    feature: int
    value: float
    threshold: float
    goes: Side

    def __str__(self) -> str:
        """Write the step as one line."""
        relation = "above" if self.goes == "right" else "not above"
        return (
            f"node {self.node}: feature {self.feature} is {self.value:.3g}, "
            f"{relation} {self.threshold:.3g}, goes {self.goes}"
        )


@dataclass(frozen=True)
class LinearStep:
    """One splitting node on the way that splits by a plane.

    Attributes
    ----------
    node : int
        Number of the node in its tree; the root is 0.
    distance : float
        Euclidean distance from the plane, in scaled features.
    goes : {"left", "right"}
        The child the sample went to: the side of the plane.
    """

    node: int
    distance: float
    goes: Side

    def __str__(self) -> str:
        """Write the step as one line."""
        return f"node {self.node}: {self.distance:.3g} beside the plane, goes {self.goes}"


@dataclass(frozen=True)
class TreePath:
    """The way through one tree: the steps, the leaf and its class counts."""

    steps: list[Step | AxisStep | LinearStep]
    leaf: int
    counts: dict[Any, int]

    def __str__(self) -> str:
        """Write the path, one step a line."""
        counts = sorted(self.counts.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{label!r}: {count}" for label, count in counts)
        return "\n".join([*(str(step) for step in self.steps), f"leaf {self.leaf}: {shares}"])


@dataclass(frozen=True)
class Explanation:
    """The ways of one sample through all trees of a forest."""

    trees: list[TreePath]

    def __str__(self) -> str:
        """Write all paths."""
        return "\n\n".join(f"tree {t}\n{path}" for t, path in enumerate(self.trees))


def explain_row(fitted: FittedForest, x: npt.NDArray[np.float64]) -> Explanation:
    """Follow one row through every tree."""
    return Explanation([_explain_tree(fitted, tree, x) for tree in range(len(fitted.forest))])


def _explain_tree(fitted: FittedForest, tree: int, x: npt.NDArray[np.float64]) -> TreePath:
    path, leaf, counts = fitted.forest.trace(tree, x, fitted.standardization.core)
    labels = fitted.labels.classes.tolist()
    explain_step = _STEPS[fitted.proposer]
    steps = [explain_step(fitted, tree, x, traced) for traced in path]
    return TreePath(steps, leaf, {labels[c]: n for c, n in counts})


def _side(right: int) -> Side:
    return "right" if right else "left"


def _ncm_step(
    fitted: FittedForest,
    tree: int,  # noqa: ARG001
    x: npt.NDArray[np.float64],  # noqa: ARG001
    traced: _Traced,
) -> Step:
    node, right, nearest, squared, centroids = traced
    names = fitted.labels.classes[[c for c, _ in centroids]].tolist()
    sides = [_side(side) for _, side in centroids]
    return Step(node, names, sides, names[nearest], squared**0.5, _side(right))


def _axis_step(
    fitted: FittedForest,
    tree: int,  # noqa: ARG001
    x: npt.NDArray[np.float64],
    traced: _Traced,
) -> AxisStep:
    node, right, _, score, [(feature, _)] = traced
    value = float(x[feature])
    threshold = value + score / float(fitted.standardization.scale[feature])
    return AxisStep(node, feature, value, threshold, _side(right))


def _linear_step(
    fitted: FittedForest,
    tree: int,
    x: npt.NDArray[np.float64],  # noqa: ARG001
    traced: _Traced,
) -> LinearStep:
    node, right, _, score, _ = traced
    length = float(np.linalg.norm(fitted.forest.centroid(tree, node, 0).astype(np.float64)))
    return LinearStep(node, abs(score) / length, _side(right))


# By what proposed the splits.
_STEPS: dict[
    str,
    Callable[[FittedForest, int, npt.NDArray[np.float64], _Traced], Step | AxisStep | LinearStep],
] = {"ncm": _ncm_step, "axis": _axis_step, "linear": _linear_step, "svm": _linear_step}
