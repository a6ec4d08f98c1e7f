"""How deep and how large trees become: measured on small data, followed to large data.

Cost follows from four numbers of a tree: how many nodes a row visits, how many nodes are split, how
many classes meet in them and how many class means are new in them. A tree that halves its rows at
every node has ``log2(rows / min_samples_leaf)`` levels; real ones come close, and how close depends
on the data. Each number therefore follows a law with an exponent for rows, classes and features
that is fitted to trees that were grown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.distributed.planning.workload import Workload

__all__ = ["Law", "Shape", "ShapeLaws", "measure_shape"]

# How hard exponents of leaves, classes, features and rows of a leaf are pulled towards what theory
# says. That a tree has twice the nodes for twice the rows is sure in the end, however small trees
# begin.
_STIFFNESS = (2.0, 0.1, 0.1, 0.1)


@dataclass(frozen=True)
class Shape:
    """Means over the trees of a forest.

    ``visits`` counts the splitting nodes that a row passes, ``splits`` the splitting nodes,
    ``classes_per_node`` those present in a splitting node, ``vectors`` the class means or
    directions that a tree stores and ``other_bytes`` all else that it stores but row numbers.
    """

    visits: float
    splits: float
    classes_per_node: float
    vectors: float
    other_bytes: float

    @property
    def is_tree(self) -> bool:
        """Whether there is a tree at all: learners without one have no shape."""
        return self.splits > 0


@dataclass(frozen=True)
class Law:
    """A product of powers: of the leaves there could be, classes, features, and rows of a leaf.

    Leaves are rows / min_samples_leaf, the rows of a leaf min_samples_leaf.
    """

    factor: float
    leaves: float
    classes: float
    features: float
    leaf: float

    def at(self, work: Workload) -> float:
        """The value that is expected."""
        exponents = (self.leaves, self.classes, self.features, self.leaf)
        return self.factor * math.exp(float(np.dot(exponents, _logarithms(work))))

    @classmethod
    def fitted(
        cls,
        works: Sequence[Workload],
        values: Sequence[float],
        expected: tuple[float, float, float, float],
    ) -> Law:
        """The law nearest to values that were measured; ``expected`` are exponents by theory."""
        sizes = np.array([_logarithms(work) for work in works])
        middle = sizes.mean(axis=0)
        logs = np.log(np.maximum(values, 1e-12)) - sizes @ expected
        n = len(expected)
        system = np.vstack(
            [
                np.column_stack([np.ones(len(sizes)), sizes - middle]),
                np.column_stack([np.zeros(n), np.diag(_STIFFNESS)]),
            ]
        )
        found = np.linalg.lstsq(system, np.concatenate([logs, np.zeros(n)]), rcond=None)[0]
        factor = math.exp(found[0] - float(found[1:] @ middle))
        return cls(factor, *(float(exponent) for exponent in found[1:] + expected))


def _logarithms(work: Workload) -> npt.NDArray[np.float64]:
    # Never negative: a tree of fewer rows than a leaf holds is one leaf.
    leaves = max(2.0, work.rows / work.min_samples_leaf)
    return np.log([leaves, work.classes, work.features, work.min_samples_leaf])


@dataclass(frozen=True)
class ShapeLaws:
    """One law per number of :class:`Shape`, each for what comes nearest to a product of powers.

    That of visits is for visits per level of halving; that of splits for splits per possible leaf.
    Those of classes and vectors are for the odds that a class is in a node, and that a node stores
    a vector of the ``most_vectors`` that it could: shares go to one, odds go on. That of other
    bytes is for bytes per byte that nodes, centroids and counts of classes take.
    """

    visits: Law
    splits: Law
    classes_per_node: Law
    vectors: Law
    other_bytes: Law

    @classmethod
    def fitted(
        cls, works: Sequence[Workload], shapes: Sequence[Shape], most_vectors: Sequence[int]
    ) -> ShapeLaws:
        """Laws nearest to trees that were grown."""
        known = list(zip(works, shapes, most_vectors, strict=True))

        def law(values: list[float], *expected: float) -> Law:
            leaves, classes, features, leaf = expected
            return Law.fitted(works, values, (leaves, classes, features, leaf))

        return cls(
            law([s.visits / _halvings(w) for w, s, _ in known], 0, 0, 0, 0),
            law([s.splits / _most_splits(w) for w, s, _ in known], 0, 0, 0, 0),
            law([_odds(s.classes_per_node / w.classes) for w, s, _ in known], 0, -0.75, 0, 0.95),
            law([_odds(s.vectors / s.splits / most) for _, s, most in known], 0, 0, 0, 0.5),
            law([s.other_bytes / _plain_bytes(s, most) for _, s, most in known], 0, 0, 0, 0),
        )

    def at(self, work: Workload, most_vectors: int) -> Shape:
        """The tree that is expected, within what is possible."""
        splits = max(1.0, min(1.0, self.splits.at(work)) * _most_splits(work))
        visits = self.visits.at(work) * _halvings(work)
        shape = Shape(
            visits=min(max(1.0, visits), splits),
            splits=splits,
            classes_per_node=max(1.0, work.classes * _share(self.classes_per_node.at(work))),
            vectors=splits * most_vectors * _share(self.vectors.at(work)),
            other_bytes=0.0,
        )
        other = self.other_bytes.at(work) * _plain_bytes(shape, most_vectors)
        return replace(shape, other_bytes=other)


def _odds(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-3)
    return share / (1 - share)


def _share(odds: float) -> float:
    return odds / (1 + odds)


def _most_splits(work: Workload) -> float:
    return max(1.0, work.rows / work.min_samples_leaf - 1)


def _plain_bytes(shape: Shape, most_vectors: int) -> float:
    """Two nodes for each split, its centroids, and counts of classes in node and leaf."""
    centroids = min(float(most_vectors), shape.classes_per_node)
    return shape.splits * (64 + 16 * centroids + 16 * shape.classes_per_node)


def _halvings(work: Workload) -> float:
    return max(1.0, math.log2(max(2.0, work.rows / work.min_samples_leaf)))


def measure_shape(forest: Any, n_trees: int = 2) -> Shape:
    """The shape of a forest of the core, from its first trees."""
    classes = forest.samples.classes
    width, n_rows = forest.samples.width, len(forest.samples)
    found = []
    for place in range(min(n_trees, len(forest))):
        tree = forest.tree_arrays(place)
        splits = np.flatnonzero(tree["left"] >= 0)
        begin, size = tree["row_begin"][splits], tree["row_size"][splits]
        codes = classes[tree["rows"]]
        present = [
            np.unique(codes[first : first + n]).size for first, n in zip(begin, size, strict=True)
        ]
        vectors = tree["halves"].size / width
        other = forest.nbytes / len(forest) - 2 * width * vectors - 4 * n_rows
        n_splits = max(1, len(splits))
        found.append(
            (size.sum() / n_rows, n_splits, sum(present) / n_splits, vectors, max(1.0, other))
        )
    return Shape(*(float(value) for value in np.mean(found, axis=0)))
