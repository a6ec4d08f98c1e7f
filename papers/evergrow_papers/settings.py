"""Settings of the papers' forests, whatever the defaults of ours are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evergrow import IGT, RTST, RUST, ULS
from evergrow.estimators import ClassMeans

# The strategies of the papers, which grow no tree again.
UPDATES: Mapping[str, Any] = {s.__name__.lower(): s(refresh=0.0) for s in (ULS, IGT, RTST, RUST)}
# Nodes compare with the square root of the number of classes.
SQUARE_ROOT = ClassMeans(n_centroids="sqrt")
# Forests with coarse and fine classes: features divided by their deviation.
SUBCATEGORY_TREES: Mapping[str, Any] = {
    "min_samples_leaf": 10,
    "standardize": "scale",
    "update": UPDATES["rust"],
}
# All other kinds of forests. Experiments that update them name the strategy.
TREES: Mapping[str, Any] = {**SUBCATEGORY_TREES, "update": UPDATES["igt"], "balance": 0.0}
# NCM forests.
NCM_TREES: Mapping[str, Any] = {**TREES, "splits": SQUARE_ROOT, "update": UPDATES["rust"]}
