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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.planning.workload import Workload

__all__ = ["Law", "Shape", "ShapeLaws", "measure_shape"]

# How hard exponents of rows, classes and features are pulled towards what theory says. That a tree
# has twice the nodes for twice the rows is sure in the end, however small trees begin.
_STIFFNESS = (2.0, 0.1, 0.1)


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
    """``value = factor * leaves ** rows * classes ** classes * features ** features``.

    ``leaves`` is the number of leaves that there could be at most, rows / min_samples_leaf.
    """

    factor: float
    rows: float
    classes: float
    features: float

    def at(self, work: Workload) -> float:
        """The value that is expected."""
        return self.factor * math.exp(
            float(np.dot((self.rows, self.classes, self.features), _logarithms(work)))
        )

    @classmethod
    def fitted(
        cls,
        works: Sequence[Workload],
        values: Sequence[float],
        expected: tuple[float, float, float],
    ) -> Law:
        """The law nearest to values that were measured; ``expected`` are exponents by theory."""
        sizes = np.array([_logarithms(work) for work in works])
        middle = sizes.mean(axis=0)
        logs = np.log(np.maximum(values, 1e-12)) - sizes @ expected
        system = np.vstack(
            [
                np.column_stack([np.ones(len(sizes)), sizes - middle]),
                np.column_stack([np.zeros(3), np.diag(_STIFFNESS)]),
            ]
        )
        found = np.linalg.lstsq(system, np.concatenate([logs, np.zeros(3)]), rcond=None)[0]
        exponents = found[1:] + expected
        factor = math.exp(found[0] - float(found[1:] @ middle))
        return cls(factor, *(float(exponent) for exponent in exponents))


def _logarithms(work: Workload) -> npt.NDArray[np.float64]:
    # Never negative: a tree of fewer rows than a leaf holds is one leaf.
    leaves = max(2.0, work.rows / work.min_samples_leaf)
    return np.log([leaves, work.classes, work.features])


@dataclass(frozen=True)
class ShapeLaws:
    """One law per number of :class:`Shape`; that of visits is for visits per level of halving."""

    visits: Law
    splits: Law
    classes_per_node: Law
    vectors: Law
    other_bytes: Law

    @classmethod
    def fitted(cls, works: Sequence[Workload], shapes: Sequence[Shape]) -> ShapeLaws:
        """Laws nearest to trees that were grown."""

        def law(values: list[float], *expected: float) -> Law:
            rows, classes, features = expected
            return Law.fitted(works, values, (rows, classes, features))

        return cls(
            law([s.visits / _halvings(w) for w, s in zip(works, shapes, strict=True)], 0, 0, 0),
            law([s.splits for s in shapes], 1, 0, 0),
            law([s.classes_per_node for s in shapes], 0, 0.5, 0),
            law([s.vectors for s in shapes], 1, 0, 0),
            law([s.other_bytes for s in shapes], 1, 0.5, 0),
        )

    def at(self, work: Workload) -> Shape:
        """The tree that is expected, within what is possible."""
        most_splits = max(1.0, work.rows / work.min_samples_leaf - 1)
        splits = min(self.splits.at(work), most_splits)
        visits = self.visits.at(work) * _halvings(work)
        classes = min(self.classes_per_node.at(work), float(work.classes))
        return Shape(
            visits=min(max(1.0, visits), splits),
            splits=splits,
            classes_per_node=max(1.0, classes),
            vectors=self.vectors.at(work),
            other_bytes=self.other_bytes.at(work),
        )


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
