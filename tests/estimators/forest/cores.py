"""Forests of the core without an estimator, which the tests of its parts share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from tests.estimators.forest.blobs import Array

_COMMON = {"n_candidates": 20, "min_samples_leaf": 2, "min_gain": 1e-7}

# Parameters of splitting nodes, by the name of the proposer.
RULES: dict[str, dict[str, Any]] = {
    "ncm": {**_COMMON, "n_centroids": 3, "regularization": 0.0},
    "regularised": {
        **_COMMON,
        "n_centroids": 4,
        "regularization": 0.0,
        "n_subsets": 8,
        "cost_weight": 0.001,
        "max_scoring_samples": 40,
    },
    "axis": {**_COMMON, "n_centroids": 0, "regularization": 0.0},
    "linear": {**_COMMON, "n_centroids": 0, "regularization": 0.0},
    "svm": {**_COMMON, "n_candidates": 3, "n_centroids": 0, "regularization": 1.0},
}


def rules(proposer: str) -> _core.SplitRules:
    """The rules of a proposer, with its name."""
    return _core.SplitRules(proposer=proposer, **RULES[proposer])


def standardizer(n_features: int) -> _core.Standardizer:
    """A transform that changes every feature."""
    return _core.Standardizer(np.linspace(-1, 1, n_features), np.linspace(0.5, 2, n_features))


def aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Zeros that start at a multiple of 64 bytes."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    array: Array = memory[first : first + n_bytes].view(dtype).reshape(shape)
    return array


def written(X: Array, codes: Array, *, half: bool = False) -> _core.Samples:
    """Samples in memory of their own."""
    samples = _core.Samples(X.shape[1], half=half)
    numbers = samples.add(len(X))
    ids = np.arange(len(X), dtype=np.int64)
    samples.write(numbers, X, codes, ids, standardizer(X.shape[1]))
    return samples


def grow(samples: _core.Samples, proposer: str, **options: Any) -> _core.Forest:
    """A forest, by default of 4 trees."""
    values = {
        "samples": samples,
        "n_trees": 4,
        "n_classes": int(samples.classes.max()) + 1,
        "seed": 7,
        "rows_per_tree": len(samples) - samples.n_removed,
        "bootstrap": True,
        "rules": rules(proposer),
        "n_threads": 1,
        "progress": None,
    }
    return _core.Forest.grow(**{**values, **options})


def plan(proposer: str, **options: Any) -> _core.UpdatePlan:
    """Parameters of one update of a forest that `grow` returned."""
    values = {
        "n_classes": 6,
        "seed": 7,
        "update": 1,
        "strategy": "igt",
        "share": 0.8,
        "node_sampling": "size",
        "row_rate": 0.8,
        "bootstrap": True,
        "first_refreshed": 0,
        "n_refreshed": 0,
        "rules": rules(proposer),
        "keep_rows": True,
    }
    return _core.UpdatePlan(**{**values, **options})


def equal_trees(found: _core.Forest, expected: _core.Forest) -> None:
    """Assert that two forests have the same trees to the last bit."""
    assert len(found) == len(expected)
    assert found.n_comparisons == expected.n_comparisons
    for tree in range(len(found)):
        one, other = found.tree_arrays(tree), expected.tree_arrays(tree)
        for name, array in other.items():
            np.testing.assert_array_equal(one[name], array, err_msg=f"tree {tree} {name}")
