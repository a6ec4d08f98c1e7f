"""How unlike all classes a row is, by the measures of ``RejectingClassifier``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evergrow.estimators.linear.solver import forward_substitute
from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.linear_scores import LinearScores, recoding_factors
from evergrow.estimators.novelty.rejecting import RejectingClassifier
from evergrow.estimators.novelty.scores import NearestMeans, SummedScores, SumsScorer
from evergrow.export.onnx.graph import Graph
from evergrow.export.onnx.heads.head import Head
from evergrow.export.onnx.weights import HeadTypes

# Squares of larger scores would overflow.
_LARGEST = 1e100
# Rows shorter than this have no direction.
_SHORTEST = 1e-140


def add_novelty(
    graph: Graph, rows: str, model: RejectingClassifier, head: Head, types: HeadTypes
) -> str:
    """Add the novelty of each row, of shape (n,)."""
    fitted = model._fitted
    calibration, scorer = fitted.calibration, fitted.scorer
    if not isinstance(scorer, SumsScorer):
        column, best = _best(graph, head.comparable())
        return _below_usual(graph, column, best, calibration)
    summed = scorer.summed
    block = graph.cast(rows, np.float64)
    if not isinstance(summed.places, slice):
        block = graph.add("Gather", block, graph.constant(summed.places, np.int64), axis=1)
    column, best = _best(graph, _cosines(graph, block, summed.means, types))
    novelty = _below_usual(graph, column, best, calibration)
    for k, score in _other_scores(graph, block, summed, calibration, types):
        mean, factor = calibration.scales[k]
        below = graph.add("Sub", graph.constant(mean), score)
        novelty = graph.add("Add", novelty, graph.add("Mul", below, graph.constant(factor)))
    return novelty


def add_is_unknown(graph: Graph, novelty: str, limit: float) -> str:
    """Add whether the novelty is above a limit; without a score it is not."""
    return graph.add("Greater", novelty, graph.constant(limit))


def _best(graph: Graph, scores: str) -> tuple[str, str]:
    """The best class of each row, and its score."""
    return graph.add("ArgMax", scores, axis=1, keepdims=0), graph.reduce("ReduceMax", scores, [1])


def _below_usual(graph: Graph, column: str, best: str, calibration: Calibration) -> str:
    """How far a score is below the usual one of its class, in spreads, times its weight."""
    usual = graph.add("Gather", graph.constant(calibration.usual), column)
    factors = calibration.share / calibration.spreads
    factor = graph.add("Gather", graph.constant(factors), column)
    return graph.add("Mul", graph.add("Sub", usual, best), factor)


def _cosines(graph: Graph, rows: str, means: NearestMeans, types: HeadTypes) -> str:
    """Cosines to all class means; minus infinity for classes without examples."""
    moved = graph.add("Sub", rows, graph.constant(means.origin))
    lengths = graph.add("Sqrt", graph.row_sums(moved, moved))
    is_long = graph.add("Greater", lengths, graph.constant(_SHORTEST))
    unit = graph.add("Div", moved, graph.add("Where", is_long, lengths, graph.constant(1.0)))
    cosines = graph.add("MatMul", unit, graph.matrix(means.directions.T, types.weights))
    return graph.add("Add", cosines, graph.constant(np.where(means.known, 0.0, -np.inf)))


def _other_scores(
    graph: Graph, rows: str, summed: SummedScores, calibration: Calibration, types: HeadTypes
) -> list[tuple[int, str]]:
    """The scores besides the cosine that have a weight, by their number."""
    factors = calibration.scales[:, 1]
    used = {k for k in range(len(factors)) if factors[k] != 0}
    if summed.linear is None or not used:
        return []
    shift = summed.moments.shift
    moved = rows if shift is None else graph.add("Sub", rows, graph.constant(shift))
    parts = _LinearParts.of(graph, moved, summed.linear, types)
    makers: dict[int, Callable[[], str]] = {
        0: parts.ridge,
        1: lambda: graph.add("Neg", parts.distance()),
        2: lambda: graph.add("Neg", graph.add("Add", parts.distance(), parts.apart())),
        3: lambda: graph.add("Sqrt", graph.reduce("ReduceSumSquare", rows, [1])),
    }
    return [(k, make()) for k, make in makers.items() if k in used]


@dataclass
class _LinearParts:
    """The scores by ridge regression, each added when it is asked for."""

    graph: Graph
    rows: str
    linear: LinearScores
    types: HeadTypes
    scores: str
    _distance: str | None = None

    @classmethod
    def of(cls, graph: Graph, rows: str, linear: LinearScores, types: HeadTypes) -> _LinearParts:
        products = graph.add("MatMul", rows, graph.matrix(linear.weights[:, :-1].T, types.weights))
        scores = graph.add("Add", products, graph.constant(linear.weights[:, -1]))
        bounds = graph.constant(-_LARGEST), graph.constant(_LARGEST)
        return cls(graph, rows, linear, types, graph.add("Clip", scores, *bounds))

    def ridge(self) -> str:
        """The best recoded score."""
        left = self.linear.moments.class_weights
        recoded = self.graph.add(
            "Mul", self.scores, self.graph.constant(recoding_factors(left[None])[0])
        )
        known = self.graph.constant(np.where(left > 0, 0.0, -np.inf))
        return self.graph.reduce("ReduceMax", self.graph.add("Add", recoded, known), [1])

    def distance(self) -> str:
        """The lowest relative distance."""
        if self._distance is None:
            graph, left = self.graph, self.linear.moments.class_weights
            turned = graph.add("MatMul", self.scores, graph.constant(self.linear.metric))
            squares = graph.row_sums(self.scores, turned)
            twice = graph.add("Mul", turned, graph.constant(2.0))
            offsets = 1.0 / np.where(left > 0, left, 1.0) - 1.0 / left.sum()
            own = np.where(left > 0, np.diagonal(self.linear.metric) - offsets, np.inf)
            distances = graph.add("Add", graph.add("Sub", squares, twice), graph.constant(own))
            self._distance = graph.reduce("ReduceMin", distances, [1])
        return self._distance

    def apart(self) -> str:
        """The distance to the mean of all examples."""
        graph, linear = self.graph, self.linear
        # Row i is the solution for the i-th unit vector, so that a product with it solves.
        solved = forward_substitute(linear.factor, np.eye(len(linear.factor)))
        ones = graph.add(
            "Pad", self.rows, graph.constant([0, 0, 0, 1], np.int64), graph.constant(1.0)
        )
        halves = graph.upper_matmul(ones, solved, self.types.large)
        left, right = linear.leverage_vectors
        vectors = [graph.add("MatMul", ones, graph.constant(one[:, None])) for one in (left, right)]
        leverage = graph.add("Add", graph.row_sums(halves, halves), graph.add("Mul", *vectors))
        flat = graph.add("Squeeze", leverage, graph.constant([1], np.int64))
        return graph.add("Sub", flat, graph.constant(1.0 / linear.moments.class_weights.sum()))
