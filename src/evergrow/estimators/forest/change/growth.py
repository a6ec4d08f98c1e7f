"""Grow a forest from scratch, or again from its early samples."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from evergrow import _core
from evergrow.estimators.forest.change.eviction import evict_samples
from evergrow.estimators.forest.cluster.driver_grow import can_grow_in_groups, grow_in_groups
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.budget import MemoryBudget
from evergrow.estimators.forest.storage.placement import budget_to_grow, store_first
from evergrow.estimators.forest.value.batch import EarlySamples, ForestBatch, Ids
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.history import History
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import current_engine
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar

NO_IDS: Ids = np.zeros(0, dtype=np.int64)


def grow_forest(
    labels: ClassList,
    batch: ForestBatch,
    seed: int,
    request: ForestRequest,
    n_seen: int | None = None,
    *,
    expendable: Ids = NO_IDS,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest from scratch.

    With ``keep_per_class``, the samples with the ids ``expendable`` are evicted first.
    """
    start = time.perf_counter()
    budget = budget_to_grow(request, batch.X.shape, len(labels))
    measure_scale = Standardization.of_each if request.standardize else Standardization.common
    standardization = measure_scale(batch.X)
    early = EarlySamples.of(batch)
    n_drawn = request.rows_per_tree(len(batch))
    growth = {
        "n_classes": len(labels),
        "seed": seed,
        "rows_per_tree": n_drawn,
        "bootstrap": request.bootstrap,
        "rules": request.splits.rules(len(labels), batch.X.shape[1]),
    }
    # Few samples are not worth handing out to workers.
    grow = _grow_here if len(early) else _grow_trees
    forest = grow(batch, standardization, growth, request, budget)
    n_seen = len(batch) if n_seen is None else n_seen
    history = History(seed, 0, n_seen, n_drawn / len(batch), early=early)
    fitted = FittedForest(labels, standardization, forest, history, request.splits.proposer)
    if not len(early):
        fitted = evict_samples(fitted, request, expendable)
    fitted.forest.samples.claim()
    report = UpdateReport(
        "fit",
        len(batch),
        n_new_classes=len(labels),
        n_added=n_drawn * request.n_estimators,
        n_comparisons=sum(fitted.forest.n_comparisons),
        seconds=time.perf_counter() - start,
    )
    return fitted, report


def _grow_trees(
    batch: ForestBatch,
    standardization: Standardization,
    growth: dict[str, Any],
    request: ForestRequest,
    budget: MemoryBudget,
) -> _core.Forest:
    """Grow the trees with the engine in use, or in this process if it has none or cannot."""
    engine = current_engine()
    if engine is not None and can_grow_in_groups(engine, batch.X, request, budget):
        return grow_in_groups(engine, batch, standardization, growth, request, budget)
    return _grow_here(batch, standardization, growth, request, budget)


def _grow_here(
    batch: ForestBatch,
    standardization: Standardization,
    growth: dict[str, Any],
    request: ForestRequest,
    budget: MemoryBudget,
) -> _core.Forest:
    samples, _ = store_first(batch, standardization, request, budget)
    with progress_bar("growing trees", request.n_estimators, request.verbose) as progress:
        return _core.Forest.grow(
            samples=samples,
            n_trees=request.n_estimators,
            n_threads=request.n_threads,
            progress=progress,
            row_budget=budget.row_budget,
            **growth,
        )


def regrow_early(fitted: FittedForest, request: ForestRequest) -> FittedForest:
    """Grow a forest again from its early samples, some of which changed; else return it."""
    history, early = fitted.history, fitted.history.early
    if not len(early):
        return fitted
    request = replace(request, n_estimators=len(fitted.forest)).limited_to(len(early))
    grown, _ = grow_forest(fitted.labels, early, history.seed, request, history.n_seen)
    return replace(grown, history=replace(grown.history, n_updates=history.n_updates))


def regrow_with(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest again from its early samples and new ones."""
    history = known.history
    everything = history.early.with_batch(batch)
    n_seen = history.n_seen + len(batch)
    request = request.limited_to(len(everything))
    fitted, report = grow_forest(
        labels, everything, history.seed, request, n_seen, expendable=expendable
    )
    fitted = replace(fitted, history=replace(fitted.history, n_updates=history.n_updates + 1))
    n_new = len(labels) - len(known.labels)
    return fitted, replace(report, n_samples=len(batch), n_new_classes=n_new)
