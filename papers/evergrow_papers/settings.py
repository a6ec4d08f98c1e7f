"""Settings of the papers' forests, whatever the defaults of ours are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evergrow import IGT, RTST, RUST, ULS

# The strategies of the papers, which grow no tree again.
UPDATES: Mapping[str, Any] = {
    kind.__name__.lower(): kind(refresh=0.0) for kind in (ULS, IGT, RTST, RUST)
}
# Forests with coarse and fine classes: features divided by their deviation.
SUBCATEGORY_TREES: Mapping[str, Any] = {
    "min_samples_leaf": 10,
    "min_gain": 1e-7,
    "bootstrap": False,
    "standardize": "scale",
    "update": UPDATES["rust"],
}
# All other kinds of forests. Experiments that update them name the strategy.
TREES: Mapping[str, Any] = {**SUBCATEGORY_TREES, "update": UPDATES["igt"], "balance": 0.0}
# NCM forests.
NCM_TREES: Mapping[str, Any] = {**TREES, "n_centroids": "sqrt", "update": UPDATES["rust"]}
