"""What the work of each learner consists of: amounts that the algorithm fixes, per tree or in all.

How long one unit of each takes is measured by :mod:`evergrow.planning.calibration`. The terms say
what the code does: an NCM node compares each of its rows with ``k`` class means of ``width``
numbers, reads each row once, then scores up to 1024 ways of sending the means left and right, each
for the classes and rows that are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from evergrow.planning.shape import Shape
from evergrow.planning.workload import Workload, cache_bytes

__all__ = ["FAMILIES", "Family", "Term", "family_named"]

# Ways of colouring that a node of an NCM forest tries, and up to how many means it tries them all.
_ASSIGNMENTS, _ALL_OF = 1024, 11
# Directions that a node of an SVM forest trains, and the rows of a node it trains them on.
_MACHINES, _TRAINED_ROWS = 20, 2000
# What least squares holds out to choose by, and the penalties it chooses from.
_HELD_OUT, _HELD_OUT_EVERY, _PENALTIES = 2000, 6, 10
# The cache that a core has to itself; how many times more there is decides, not the number itself.
_NEAR_BYTES = 1 << 20
# Bytes of the blocks of rows whose products, and whose sums, are added up at once.
_PRODUCT_BLOCK_BYTES, _MEAN_BLOCK_BYTES = 64 << 20, 8 << 20

Amount = Callable[[Workload, Shape], float]
# Divided among workers by trees, by rows, or not at all.
Divided = Literal["trees", "rows", "not"]


@dataclass(frozen=True)
class Term:
    """A part of the work whose time grows with ``amount``; of one tree where trees divide it."""

    name: str
    divided: Divided
    amount: Amount


@dataclass(frozen=True)
class Family:
    """A learner that can be planned.

    ``make`` gives an estimator of so many trees; ``sizes`` are the rows, features, classes and
    trees of the runs that it is calibrated by, and the rows of a leaf where they are not ten.
    ``has_shape`` tells that its trees are those of the core, which can be looked at, and
    ``most_vectors`` how many vectors a node of theirs stores at most.
    """

    name: str
    make: Callable[[int], Any]
    terms: tuple[Term, ...]
    sizes: tuple[tuple[int, ...], ...]
    has_trees: bool = True
    has_shape: bool = True
    most_vectors: Callable[[Workload], int] = lambda _: 1

    def calibrated_by(self) -> list[Workload]:
        """The sizes as workloads."""
        found = []
        for rows, features, classes, trees, *leaf in self.sizes:
            work = Workload(rows, features, classes, trees)
            found.append(replace(work, min_samples_leaf=leaf[0]) if leaf else work)
        return found


def _centroids(work: Workload) -> int:
    from evergrow.forest.growth import centroids_per_node

    return centroids_per_node("sqrt", work.classes)


def _candidates(work: Workload) -> int:
    from evergrow.forest.growth import candidates_per_node

    return candidates_per_node("sqrt", work.features)


def _visited(work: Workload, shape: Shape) -> float:
    return work.rows * shape.visits


def _coloured(work: Workload, shape: Shape) -> float:
    """Counts that are added up to score the colourings of a tree's nodes."""
    classes = shape.classes_per_node
    k = min(float(_centroids(work)), classes)
    if k <= _ALL_OF:
        return shape.splits * math.pow(2, k) * classes
    # A class reaches no more means than it has rows.
    reached = min(_visited(work, shape) / shape.splits, classes * k)
    return shape.splits * _ASSIGNMENTS * (k + classes + reached)


def _trained(work: Workload, shape: Shape) -> float:
    """Rows that machines are trained on: at most so many of each node."""
    large_levels = max(0.0, math.log2(work.rows / _TRAINED_ROWS))
    return work.rows * max(1.0, shape.visits - large_levels + 1)


def _machines(shape: Shape) -> float:
    # Few classes can be told apart in few ways.
    ways = math.pow(2, min(shape.classes_per_node, 32) - 1)
    return min(float(_MACHINES), ways)


def _levels(work: Workload, _: Shape) -> float:
    return work.rows * math.log2(max(2, work.rows))


def _far(n_rows: int, row_bytes: float) -> float:
    """Rows that come from memory and not from the cache: those of nodes too large for it."""
    return n_rows * max(0.0, math.log2(n_rows * row_bytes / cache_bytes()))


def _tests(work: Workload, shape: Shape) -> float:
    return _levels(work, shape) * math.sqrt(work.features)


def _misses(work: Workload) -> float:
    """How far a number is away when every node reads other columns, none of them in order."""
    return math.log2(1 + 4.0 * work.rows * work.features / _NEAR_BYTES)


def _held_out(work: Workload) -> int:
    """Rows held out to choose by: every sixth of each class, up to a number."""
    return min(_HELD_OUT, work.classes * (work.rows // (_HELD_OUT_EVERY * work.classes)))


def _n_solutions(work: Workload) -> int:
    """Times that weights are solved for: once for each penalty that is tried, and in the end."""
    return 1 + (_PENALTIES if _held_out(work) else 0)


def _block_of_products(work: Workload) -> float:
    return max(256.0, _PRODUCT_BLOCK_BYTES / (8 * (work.features + 1)))


def _block_of_means(work: Workload) -> float:
    return max(1.0, _MEAN_BLOCK_BYTES / (8 * work.features))


def _compared(block: Callable[[Workload], float]) -> Amount:
    """Rows of each block looked through once for each class in it."""
    return lambda w, _: w.rows * min(w.classes, block(w), w.rows)


def _class_calls(block: Callable[[Workload], float]) -> Amount:
    """Classes of all blocks, each added up by calls of their own."""
    return lambda w, _: max(1.0, w.rows / block(w)) * min(w.classes, block(w), w.rows)


# What every forest of the core does.
_FOREST = (
    Term("standardising", "not", lambda w, _: w.rows * w.width),
    Term("handling rows", "trees", _visited),
    Term("handling nodes", "trees", lambda _, s: s.splits),
)

_NCM = (
    *_FOREST,
    Term("distances", "trees", lambda w, s: _visited(w, s) * _centroids(w) * w.width),
    Term("reading rows", "trees", lambda w, s: _visited(w, s) * w.width),
    Term("reading far rows", "trees", lambda w, _: _far(w.rows, 4 * w.width) * w.width),
    Term("scoring colourings", "trees", _coloured),
)
_AXIS = (
    *_FOREST,
    Term("thresholds", "trees", lambda w, s: _visited(w, s) * _candidates(w)),
    Term("choosing features", "trees", lambda w, s: s.splits * w.features),
    Term("reading far rows", "trees", lambda w, _: _far(w.rows, 4 * w.width) * _candidates(w)),
)
_LINEAR = (
    *_FOREST,
    Term("projections", "trees", lambda w, s: _visited(w, s) * _candidates(w) * w.width),
    Term("thresholds", "trees", lambda w, s: _visited(w, s) * _candidates(w)),
    Term("reading far rows", "trees", lambda w, _: _far(w.rows, 4 * w.width) * w.width),
    Term("drawing directions", "trees", lambda w, s: s.splits * _candidates(w) * w.width),
)
_SVM = (
    *_FOREST,
    Term("projections", "trees", lambda w, s: _visited(w, s) * _machines(s) * w.width),
    Term("training machines", "trees", lambda w, s: _trained(w, s) * _machines(s) * w.width),
    Term("steps of training", "trees", lambda w, s: _trained(w, s) * _machines(s)),
)
_LEAST_SQUARES = (
    Term("products of features", "rows", lambda w, _: w.rows * (w.features + 1.0) ** 2),
    Term("reading rows", "rows", lambda w, _: w.rows * (w.features + 1.0)),
    Term("finding classes", "rows", _compared(_block_of_products)),
    Term("class sums", "rows", _class_calls(_block_of_products)),
    Term("factors", "not", lambda w, _: _n_solutions(w) * (w.features + 1.0) ** 3),
    Term("weights", "not", lambda w, _: _n_solutions(w) * (w.features + 1.0) ** 2 * w.classes),
    Term("held-out scores", "not", lambda w, _: _held_out(w) * (w.features + 1.0) * w.classes),
    Term("choosing", "not", lambda w, _: _held_out(w) * w.classes),
)
_MEANS = (
    Term("reading rows", "rows", lambda w, _: w.rows * w.features),
    Term("finding classes", "rows", _compared(_block_of_means)),
    Term("class sums", "rows", _class_calls(_block_of_means)),
    Term("means", "not", lambda w, _: w.classes * w.features),
)
_ERC = (
    Term("turning columns", "not", lambda w, _: w.rows * w.features),
    Term("handling rows", "trees", _levels),
    Term("tests", "trees", _tests),
    Term("tests far away", "trees", lambda w, s: _tests(w, s) * _misses(w)),
)

_FOREST_SIZES = (
    (4000, 64, 20, 6),
    (32000, 64, 20, 3),
    (6000, 64, 100, 4),
    (24000, 64, 100, 2),
    (4000, 512, 100, 4),
    (16000, 512, 100, 1),
    (16000, 512, 100, 4),
    (8000, 64, 1000, 2),
    (24000, 64, 1000, 1),
    (12000, 512, 1000, 1),
    (8000, 1024, 300, 2),
    (24000, 256, 300, 2),
    (48000, 512, 100, 1),
    (96000, 128, 300, 1),
    (16000, 128, 100, 2, 2),
    (16000, 128, 100, 2, 50),
    (32000, 64, 400, 1, 40),
    (16000, 64, 400, 1, 3),
)
_SLOW_SIZES = (
    (1500, 32, 20, 1),
    (6000, 32, 20, 1),
    (3000, 256, 20, 1),
    (2000, 64, 100, 1),
    (6000, 64, 100, 1),
    (4000, 256, 100, 1),
    (2000, 512, 50, 1),
    (2000, 1024, 50, 1),
    (4000, 64, 400, 1),
    (16000, 64, 50, 1),
    (4000, 64, 50, 1, 3),
    (8000, 64, 50, 1, 40),
)
_SUM_SIZES = (
    (4000, 64, 50, 1),
    (40000, 64, 50, 1),
    (40000, 64, 500, 1),
    (3000, 256, 20, 1),
    (40000, 256, 50, 1),
    (12000, 256, 1000, 1),
    (2000, 768, 20, 1),
    (20000, 768, 100, 1),
    (6000, 768, 1000, 1),
    (2000, 1536, 20, 1),
    (4000, 1536, 200, 1),
)
_WORD_SIZES = (
    (4000, 32, 20, 4),
    (32000, 32, 20, 4),
    (8000, 128, 20, 4),
    (32000, 128, 100, 1),
    (32000, 128, 100, 4),
    (8000, 512, 100, 2),
    (60000, 128, 20, 2),
    (96000, 32, 100, 2),
    (64000, 128, 300, 1),
    (120000, 128, 100, 1),
)


def _ncm_forest(n_trees: int) -> Any:
    from evergrow.forest import NCMForestClassifier

    return NCMForestClassifier(n_trees, random_state=0)


def _axis_forest(n_trees: int) -> Any:
    from evergrow.forest import AxisForestClassifier

    return AxisForestClassifier(n_trees, random_state=0)


def _linear_forest(n_trees: int) -> Any:
    from evergrow.forest import LinearForestClassifier

    return LinearForestClassifier(n_trees, random_state=0)


def _svm_forest(n_trees: int) -> Any:
    from evergrow.forest import SVMForestClassifier

    return SVMForestClassifier(n_trees, random_state=0)


def _least_squares(_: int) -> Any:
    from evergrow.linear import RLSClassifier

    return RLSClassifier(random_state=0)


def _means(_: int) -> Any:
    from evergrow.means import NCMClassifier

    return NCMClassifier()


def _erc(n_trees: int) -> Any:
    from evergrow.codebook import ERCForest

    return ERCForest(n_trees, random_state=0)


FAMILIES = {
    family.name: family
    for family in (
        Family("ncm_forest", _ncm_forest, _NCM, _FOREST_SIZES, most_vectors=_centroids),
        Family("axis", _axis_forest, _AXIS, _FOREST_SIZES),
        Family("linear", _linear_forest, _LINEAR, _FOREST_SIZES),
        Family("svm", _svm_forest, _SVM, _SLOW_SIZES),
        Family("least_squares", _least_squares, _LEAST_SQUARES, _SUM_SIZES, False, False),
        Family("means", _means, _MEANS, _SUM_SIZES, False, False),
        Family("erc", _erc, _ERC, _WORD_SIZES, True, False),
    )
}


def family_named(name: object) -> Family:
    """The learner of that name; a ``ValueError`` that lists them if there is none."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"estimator must be one of {sorted(FAMILIES)}, got {name!r}")
    return FAMILIES[name]
