"""Why a forest answered as it did: the way of one sample through every tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.forest.standardize import Standardization

__all__ = ["Explanation", "Step", "TreePath"]


@dataclass(frozen=True)
class Step:
    """One splitting node on the way.

    Attributes
    ----------
    node : int
        Number of the node in its tree; the root is 0.
    classes : list
        Classes whose means the node compares with.
    sides : list of {"left", "right"}
        The child that each of these means leads to.
    nearest : label
        Class of the nearest mean.
    distance : float
        Euclidean distance to it, in scaled features.
    goes : {"left", "right"}
        The child the sample went to.
    """

    node: int
    classes: list[Any]
    sides: list[Literal["left", "right"]]
    nearest: Any
    distance: float
    goes: Literal["left", "right"]

    def __str__(self) -> str:
        """Write the step as one line."""
        return (
            f"node {self.node}: nearest of {len(self.classes)} means is {self.nearest!r} "
            f"at {self.distance:.3g}, goes {self.goes}"
        )


@dataclass(frozen=True)
class TreePath:
    """The way through one tree: the steps, the leaf and its class counts."""

    steps: list[Step]
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


def explain_row(
    forest: _core.Forest,
    classes: npt.NDArray[Any],
    standardization: Standardization,
    x: npt.NDArray[np.float64],
) -> Explanation:
    """Follow one row through every tree."""
    return Explanation(
        [_explain_tree(forest, t, classes.tolist(), standardization, x) for t in range(len(forest))]
    )


def _explain_tree(
    forest: _core.Forest,
    tree: int,
    labels: list[Any],
    standardization: Standardization,
    x: npt.NDArray[np.float64],
) -> TreePath:
    path, leaf, counts = forest.trace(tree, x, standardization.core)
    steps = []
    for node, right, nearest, squared, centroids in path:
        names = [labels[c] for c, _ in centroids]
        sides: list[Literal["left", "right"]] = [
            "right" if side else "left" for _, side in centroids
        ]
        goes: Literal["left", "right"] = "right" if right else "left"
        steps.append(Step(node, names, sides, names[nearest], squared**0.5, goes))
    return TreePath(steps, leaf, {labels[c]: n for c, n in counts})
