"""Settings of the papers' forests, whatever the defaults of ours are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# All kinds of forests: features divided by their deviation, trees that are not grown again.
TREES: Mapping[str, Any] = {"min_samples_leaf": 10, "refresh": 0.0, "standardize": "scale"}
# NCM forests.
NCM_TREES: Mapping[str, Any] = {**TREES, "n_centroids": "sqrt", "update": "rust"}
