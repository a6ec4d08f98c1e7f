"""Class means: scores that are linear in the features, and a softmax."""

from __future__ import annotations

import numpy as np

from evergrow.estimators.means.fitted import LinearScores
from evergrow.estimators.means.ncm import NCMClassifier
from evergrow.export.onnx.graph import Graph
from evergrow.export.onnx.heads.head import Head
from evergrow.export.onnx.weights import HeadTypes


def add_means_head(graph: Graph, rows: str, model: NCMClassifier, types: HeadTypes) -> Head:
    """Add the scores and probabilities of the nearest class means."""
    linear = model._portable_scores()
    exact = graph.cast(rows, np.float64)
    centred = graph.add("Sub", exact, graph.constant(linear.centre))
    products = graph.add("MatMul", centred, graph.matrix(linear.directions, types.weights))
    scores = graph.add("Add", products, graph.constant(linear.offsets))

    def add_comparable() -> str:
        """Subtract what all classes share: half the squared length of the centred row."""
        half = graph.add("Mul", _squares(graph, centred, linear, types), graph.constant(0.5))
        return graph.add("Sub", scores, half)

    return Head(scores, graph.add("Softmax", scores, axis=1), add_comparable)


def _squares(graph: Graph, centred: str, linear: LinearScores, types: HeadTypes) -> str:
    """Squared lengths of rows in the metric of the distance, of shape (n, 1)."""
    matrix = linear.form.directions(np.eye(len(linear.centre)))
    diagonal = np.diagonal(matrix)
    if np.array_equal(matrix, np.diag(diagonal)):
        turned = graph.add("Mul", centred, graph.constant(diagonal))
    else:
        turned = graph.add("MatMul", centred, graph.matrix(matrix, types.weights))
    return graph.row_sums(centred, turned)
