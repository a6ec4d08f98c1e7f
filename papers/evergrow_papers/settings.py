"""Settings of the papers' forests, whatever the defaults of ours are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Forests with coarse and fine classes: features divided by their deviation, no tree grown again.
SUBCATEGORY_TREES: Mapping[str, Any] = {
    "min_samples_leaf": 10,
    "min_gain": 1e-7,
    "bootstrap": False,
    "standardize": "scale",
    "update": "rust",
    "update_fraction": 0.8,
    "node_sampling": "size",
    "refresh": 0.0,
}
# All other kinds of forests. Experiments that update them name the strategy.
TREES: Mapping[str, Any] = {**SUBCATEGORY_TREES, "update": "igt", "balance": 0.0}
# NCM forests.
NCM_TREES: Mapping[str, Any] = {**TREES, "n_centroids": "sqrt", "update": "rust"}
