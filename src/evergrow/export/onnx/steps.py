"""Steps of scikit-learn pipelines between images, or vectors, and a classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import Normalizer, StandardScaler

from evergrow.export.onnx.graph import Graph


def add_step(graph: Graph, rows: str, step: Any) -> str | None:
    """Add a fitted transformer of rows; None if it is of a kind that cannot be exported."""
    adders = [add for kind, add in _STEPS.items() if type(step) is kind]
    return adders[0](graph, graph.cast(rows, np.float64), step) if adders else None


def step_names() -> list[str]:
    """The transformers that can be exported."""
    return [kind.__name__ for kind in _STEPS]


def _add_scaler(graph: Graph, rows: str, step: StandardScaler) -> str:
    if step.with_mean:
        rows = graph.add("Sub", rows, graph.constant(step.mean_))
    return graph.add("Div", rows, graph.constant(step.scale_)) if step.with_std else rows


def _add_projection(graph: Graph, rows: str, step: PCA) -> str:
    centred = graph.add("Sub", rows, graph.constant(step.mean_))
    components = np.asarray(step.components_, dtype=np.float64)
    if step.whiten:
        least = np.finfo(np.asarray(step.explained_variance_).dtype).eps
        deviations = np.sqrt(np.asarray(step.explained_variance_, dtype=np.float64))
        components = components / np.maximum(deviations, least)[:, None]
    return graph.add("MatMul", centred, graph.constant(components.T))


def _add_normalizer(graph: Graph, rows: str, step: Normalizer) -> str:
    kind = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[step.norm]
    lengths = graph.reduce(kind, graph.add("Abs", rows), [1], keep=True)
    is_zero = graph.add("Equal", lengths, graph.constant(0.0))
    return graph.add("Div", rows, graph.add("Where", is_zero, graph.constant(1.0), lengths))


_STEPS: dict[type, Callable[[Graph, str, Any], str]] = {
    StandardScaler: _add_scaler,
    PCA: _add_projection,
    Normalizer: _add_normalizer,
}
