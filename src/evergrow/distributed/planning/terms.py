"""What the work of each learner consists of: amounts that the algorithm fixes, per tree or in all.

How long one unit of each takes is measured by :mod:`evergrow.distributed.planning.calibration`. The
terms say what the code does: an NCM node compares each of its rows with ``k`` class means of
``width`` numbers, reads each row once, then scores up to 1024 ways of sending the means left and
right, each for the classes and rows that are there.

Trees are grown depth first, so a node finds its rows in the cache if those of its parent fitted
into it. Rows of the levels above are far, and terms of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evergrow.distributed.planning.shape import Shape
from evergrow.distributed.planning.workload import Workload, cache_bytes

__all__ = ["TERMS", "Amount", "Divided", "Term", "centroids"]

# Ways of colouring that a node of an NCM forest tries, and up to how many means it tries them all.
_ASSIGNMENTS, _ALL_OF = 1024, 11
# Directions that a node of an SVM forest trains, and the rows of a node it trains them on.
_MACHINES, _TRAINED_ROWS = 20, 2000
# Rows of a leaf up to which a threshold tree finds its range with a heap.
_HEAP_ROWS = 64
# What least squares holds out to choose by, and the penalties it chooses from.
_HELD_OUT, _HELD_OUT_EVERY, _PENALTIES = 2000, 6, 10
# The cache that a core has to itself, and a line of it.
_NEAR_BYTES, _LINE_VALUES = 1 << 20, 16
# What of a cache holds rows; values, counts and other programs have the rest.
_CACHE_SHARE = 0.25
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


def centroids(work: Workload) -> int:
    """Class means that a node of an NCM forest compares its rows with."""
    from evergrow.estimators.forest.growth import centroids_per_node

    return centroids_per_node("sqrt", work.classes)


def _candidates(work: Workload) -> int:
    from evergrow.estimators.forest.growth import candidates_per_node

    return candidates_per_node("sqrt", work.features)


def _visited(work: Workload, shape: Shape) -> float:
    return work.rows * shape.visits


def _coloured(work: Workload, shape: Shape) -> float:
    """Counts that are added up to score the colourings of a tree's nodes."""
    classes = shape.classes_per_node
    k = min(float(centroids(work)), classes)
    if k <= _ALL_OF:
        return shape.splits * math.pow(2, k) * classes
    # A class reaches no more means than it has rows.
    reached = min(_visited(work, shape) / shape.splits, classes * k)
    return shape.splits * _ASSIGNMENTS * (k + classes + reached)


def _far_bytes() -> float:
    return _CACHE_SHARE * cache_bytes()


def _far(work: Workload) -> float:
    """Rows that come from memory and not from the cache, of all levels too large for it.

    Nothing fits altogether or not at all: with as many bytes as the cache has, half are missing.
    """
    return work.rows * math.log2(1 + work.kept_bytes / _far_bytes())


def _touched(work: Workload) -> float:
    """Lines of memory that hold the candidates of a row: several may share one."""
    lines = work.width / _LINE_VALUES
    return lines * -math.expm1(_candidates(work) * math.log1p(-1 / lines)) if lines > 1 else 1.0


def _ranked(work: Workload, shape: Shape) -> float:
    """Steps of the heaps that find the values which leave a leaf full of rows on either side.

    A heap changes some ``leaf`` times however many rows pass it: most rows of a node stay out.
    """
    leaf = work.min_samples_leaf
    if leaf > _HEAP_ROWS:
        return 0.0
    return shape.splits * _candidates(work) * leaf * math.log2(1 + leaf)


def _partitioned(work: Workload, shape: Shape) -> float:
    """Values that are partitioned for the same where leaves are too large for a heap."""
    is_large = work.min_samples_leaf > _HEAP_ROWS
    return _visited(work, shape) * _candidates(work) if is_large else 0.0


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


def _tests(work: Workload, shape: Shape) -> float:
    return _levels(work, shape) * math.sqrt(work.features)


def _missed(work: Workload, cache: float) -> float:
    """Tests of rows whose numbers a cache does not hold, as every node reads other columns.

    A node of few rows takes a line for each; above the node whose lines fit, all are missing. The
    first levels, with more rows than a column has lines, find a line again if the near cache holds
    the column.
    """
    column = 4.0 * work.rows
    columns = column * work.features
    crowded = math.log2(_LINE_VALUES) * column / (column + _CACHE_SHARE * _NEAR_BYTES)
    levels = crowded + math.log2(1 + columns / cache)
    return work.rows * math.sqrt(work.features) * levels * columns / (columns + cache)


def _held_out(work: Workload) -> int:
    """Rows held out to choose by: every sixth of each class, up to a number."""
    return min(_HELD_OUT, work.classes * (work.rows // (_HELD_OUT_EVERY * work.classes)))


def _n_solutions(work: Workload) -> int:
    """Times that weights are solved for: once for each penalty that is tried, and in the end."""
    return 1 + (_PENALTIES if _held_out(work) else 0)


def _class_calls(block_bytes: int, least_rows: int) -> Amount:
    """Classes of all blocks of rows, each added up by calls of their own."""

    def amount(work: Workload, _: Shape) -> float:
        block = max(float(least_rows), block_bytes / (8 * work.features))
        return max(1.0, work.rows / block) * min(work.classes, block, work.rows)

    return amount


# What is the same for data of any size.
_START = Term("starting", "not", lambda _, __: 1.0)
# What every forest of the core does.
_FOREST = (
    _START,
    Term("standardising", "not", lambda w, _: w.rows * w.width),
    Term("handling rows", "trees", _visited),
    Term("handling nodes", "trees", lambda _, s: s.splits),
)
# What trees of thresholds do, whatever the numbers that they cut.
_THRESHOLDS = (
    Term("thresholds", "trees", lambda w, s: _visited(w, s) * _candidates(w)),
    Term(
        "scoring thresholds",
        "trees",
        lambda w, s: s.splits * _candidates(w) * s.classes_per_node,
    ),
    Term("ranking", "trees", _ranked),
    Term("partitioning", "trees", _partitioned),
)

_NCM = (
    *_FOREST,
    Term("distances", "trees", lambda w, s: _visited(w, s) * centroids(w) * w.width),
    Term("reading rows", "trees", lambda w, s: _visited(w, s) * w.width),
    Term("reading far rows", "trees", lambda w, _: _far(w) * w.width),
    Term("scoring colourings", "trees", _coloured),
)
_AXIS = (
    *_FOREST,
    *_THRESHOLDS,
    Term("choosing features", "trees", lambda w, s: s.splits * w.features),
    Term("reading far rows", "trees", lambda w, _: _far(w) * _touched(w)),
)
_LINEAR = (
    *_FOREST,
    *_THRESHOLDS,
    Term("projections", "trees", lambda w, s: _visited(w, s) * _candidates(w) * w.width),
    Term("reading far rows", "trees", lambda w, _: _far(w) * w.width),
    Term("drawing directions", "trees", lambda w, s: s.splits * _candidates(w) * w.width),
)
_SVM = (
    *_FOREST,
    Term("projections", "trees", lambda w, s: _visited(w, s) * _machines(s) * w.width),
    Term("training machines", "trees", lambda w, s: _trained(w, s) * _machines(s) * w.width),
    Term("steps of training", "trees", lambda w, s: _trained(w, s) * _machines(s)),
)
_LEAST_SQUARES = (
    _START,
    Term("products of features", "rows", lambda w, _: w.rows * (w.features + 1.0) ** 2),
    Term("reading rows", "rows", lambda w, _: w.rows * (w.features + 1.0)),
    Term("class sums", "rows", _class_calls(_PRODUCT_BLOCK_BYTES, 256)),
    Term("factors", "not", lambda w, _: _n_solutions(w) * (w.features + 1.0) ** 3),
    Term("scaling", "not", lambda w, _: _n_solutions(w) * (w.features + 1.0) ** 2),
    Term("weights", "not", lambda w, _: _n_solutions(w) * (w.features + 1.0) ** 2 * w.classes),
    Term("held-out scores", "not", lambda w, _: _held_out(w) * (w.features + 1.0) * w.classes),
    Term("choosing", "not", lambda w, _: _held_out(w) * w.classes),
)
_MEANS = (
    _START,
    Term("reading rows", "rows", lambda w, _: w.rows * w.features),
    Term("class sums", "rows", _class_calls(_MEAN_BLOCK_BYTES, 1)),
    Term("means", "not", lambda w, _: w.classes * w.features),
)
_ERC = (
    _START,
    Term("turning columns", "not", lambda w, _: w.rows * w.features),
    Term("handling rows", "trees", _levels),
    Term("tests", "trees", _tests),
    Term("near tests", "trees", lambda w, _: _missed(w, _CACHE_SHARE * _NEAR_BYTES)),
    Term("far tests", "trees", lambda w, _: _missed(w, _far_bytes())),
)

TERMS: dict[str, tuple[Term, ...]] = {
    "ncm_forest": _NCM,
    "axis": _AXIS,
    "linear": _LINEAR,
    "svm": _SVM,
    "least_squares": _LEAST_SQUARES,
    "means": _MEANS,
    "erc": _ERC,
}
