"""What the core needs to know about one update."""

from __future__ import annotations

import math
from typing import Any

from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.placement import budget_to_change
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.history import History


def update_plan(
    request: ForestRequest,
    history: History,
    n_classes: int,
    known: FittedForest,
    *,
    row_budget: int | None = None,
) -> dict[str, Any]:
    """The plan of one update of ``known``; ``history`` is the one after the update.

    ``row_budget`` is that of the stored samples unless given.
    """
    if row_budget is None:
        row_budget = budget_to_change(request, known.forest.samples, n_classes).row_budget
    n_trees = len(known.forest)
    # Rounding errors in the sum of shares must not delay a tree.
    due = (known.history.refresh_due, history.refresh_due)
    first, last = (math.floor(n + 1e-6) for n in due)
    return {
        "n_classes": n_classes,
        "seed": history.seed,
        "update": history.n_updates,
        "strategy": request.strategy.name,
        "share": request.share,
        "node_sampling": request.node_sampling,
        "row_rate": history.row_rate,
        "bootstrap": request.bootstrap,
        "first_refreshed": first % n_trees,
        "n_refreshed": min(last - first, n_trees),
        "n_trees": n_trees,
        "row_budget": row_budget,
        "rules": request.splits.rules(n_classes, known.n_features),
        "keep_rows": known.has_training_rows,
    }
