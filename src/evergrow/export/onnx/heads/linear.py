"""Scores that are linear in features, and a softmax: least squares, and class means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.rls import RLSClassifier
from evergrow.estimators.means.fitted import LinearScores
from evergrow.estimators.means.ncm import NCMClassifier
from evergrow.export.onnx.graph import Graph
from evergrow.export.onnx.heads.head import Head
from evergrow.export.onnx.weights import HeadTypes

Floats = npt.NDArray[np.float64]


def add_linear_head(graph: Graph, rows: str, model: RLSClassifier, types: HeadTypes) -> Head:
    """Add the scores and probabilities of least squares."""
    with model._scores() as plain, model._scores(normalised=True) as normalised:
        factors, n_features = plain.scale.factors, plain.features.n_features
        known = factors > 0
        weights = plain.weights[:, :n_features] * factors[:, None]
        constants = plain.weights[:, -1] if plain.intercept else np.zeros(len(factors))
        offsets = np.where(known, (constants - plain.scale.offsets) * factors, -np.inf)
        # Both differ by one factor for all classes.
        ratios = normalised.scale.factors[known] / factors[known]
        features, shift = plain.features, plain.shift
    if not plain.intercept:
        offsets = np.where(known, 0.0, -np.inf)
    scores = _weigh(graph, graph.cast(rows, np.float64), features, weights, types, shift)
    scores = graph.add("Add", scores, graph.constant(offsets))
    sharpness = float(ratios[0]) / model.temperature_
    scaled = graph.add("Mul", scores, graph.constant(sharpness))
    return Head(scores, graph.add("Softmax", scaled, axis=1), lambda: scores)


def _weigh(
    graph: Graph,
    rows: str,
    features: FeatureMap,
    weights: Floats,
    types: HeadTypes,
    shift: Floats | None,
) -> str:
    """Add the products of weights and shifted features, of those features that have weights."""
    n_copied, products = features.n_copied, []
    moves = np.zeros(weights.shape[1]) if shift is None else shift
    if n_copied:
        products.append((_moved(graph, rows, moves[:n_copied]), weights[:, :n_copied].T))
    if features.n_random:
        own = weights[:, n_copied:], moves[n_copied:]
        products += _RANDOM[features.kind](graph, rows, features, *own, types)
    parts = [
        graph.add("MatMul", value, graph.matrix(matrix, types.weights))
        for value, matrix in products
    ]
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("Add", total, part)
    return total


Products = list[tuple[str, Floats]]


def _moved(graph: Graph, rows: str, moves: Floats) -> str:
    """Subtract a number from each column, if any is not zero."""
    return graph.add("Sub", rows, graph.constant(moves)) if moves.any() else rows


def _add_relu(
    graph: Graph,
    rows: str,
    features: FeatureMap,
    weights: Floats,
    moves: Floats,
    types: HeadTypes,
) -> Products:
    used = _used(weights)
    found = _project(graph, rows, features.projection[used], types)
    found = graph.add("Max", found, graph.constant(0.0))
    return [(_moved(graph, found, moves[used]), weights[:, used].T)]


def _add_rff(
    graph: Graph,
    rows: str,
    features: FeatureMap,
    weights: Floats,
    moves: Floats,
    types: HeadTypes,
) -> Products:
    n_cosines = len(features.projection)
    scale = np.sqrt(2 / features.n_random)
    products = []
    for wave, part in (("Cos", slice(n_cosines)), ("Sin", slice(n_cosines, None))):
        own, used = weights[:, part], _used(weights[:, part])
        phases = _project(graph, rows, features.projection[used], types)
        found = _moved(graph, graph.add(wave, phases), moves[part][used] / scale)
        products.append((found, own[:, used].T * scale))
    return products


_RANDOM = {"relu": _add_relu, "rff": _add_rff}


def _project(graph: Graph, rows: str, directions: Floats, types: HeadTypes) -> str:
    stored = graph.matrix(directions, types.large)
    return graph.add("MatMul", rows, graph.add("Transpose", stored, perm=[1, 0]))


def _used(weights: Floats) -> npt.NDArray[np.int64]:
    """Places of features with a weight; of all if there is none, for a product needs some."""
    used = np.flatnonzero(weights.any(axis=0))
    return used if len(used) else np.arange(weights.shape[1])


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
