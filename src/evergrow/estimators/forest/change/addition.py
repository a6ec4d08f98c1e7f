"""From what a forest knows and new samples to what it knows then.

Functions of values: they take a :class:`FittedForest` and give another, so whoever fails or is
interrupted has changed nothing.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.eviction import choose_evicted
from evergrow.estimators.forest.cluster.driver_grow import can_grow_in_groups, grow_in_groups
from evergrow.estimators.forest.cluster.driver_update import note_update, resident_trees
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.splits import rows_per_tree
from evergrow.estimators.forest.storage.budget import MemoryBudget
from evergrow.estimators.forest.storage.compaction import tidy_files
from evergrow.estimators.forest.storage.placement import (
    ForestBatch,
    Ids,
    budget_to_change,
    budget_to_grow,
    store_first,
    store_more,
)
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.history import EarlySamples, History
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.engine import current_engine
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.turns import turn_of_file

# Fewer samples than this do not fix the scale of the features.
_SETTLED = 50

_NONE: Ids = np.zeros(0, dtype=np.int64)


def begin(
    labels: ClassList,
    batch: ForestBatch,
    seed: int,
    request: ForestRequest,
    n_seen: int | None = None,
    *,
    expendable: Ids = _NONE,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest from scratch.

    Where only some samples of a class may stay, those of the ids ``expendable`` go first.
    """
    start = time.perf_counter()
    budget = budget_to_grow(request, batch.X.shape, len(labels))
    scaling = Standardization.of_each if request.standardize else Standardization.common
    standardization = scaling(batch.X)
    n_samples = batch.X.shape[0]
    n_drawn = rows_per_tree(request.max_samples, n_samples)
    growth = {
        "n_classes": len(labels),
        "seed": seed,
        "rows_per_tree": n_drawn,
        "bootstrap": request.bootstrap,
        "rules": request.split_rules(len(labels), batch.X.shape[1]),
    }
    forest = _grown(batch, standardization, growth, request, budget)
    early = None
    if n_samples < _SETTLED:
        X = np.array(batch.X[:], dtype=np.float64)
        # A copy of the ids: the caller gets them as sample_ids_ and may change them.
        early = EarlySamples(X, batch.codes, batch.ids.copy())
    history = History(
        seed,
        0,
        n_samples if n_seen is None else n_seen,
        n_drawn / n_samples,
        early=early,
    )
    fitted = FittedForest(labels, standardization, forest, history, request.proposer)
    fitted = _let_go(fitted, request, expendable) if early is None else fitted
    fitted.forest.samples.claim()
    report = UpdateReport(
        "fit",
        n_samples,
        n_new_classes=len(labels),
        n_added=n_drawn * request.n_estimators,
        n_comparisons=sum(fitted.forest.n_comparisons),
        seconds=time.perf_counter() - start,
    )
    return fitted, report


def _grown(
    batch: ForestBatch,
    standardization: Standardization,
    growth: dict[str, Any],
    request: ForestRequest,
    budget: MemoryBudget,
) -> _core.Forest:
    """The trees, by the engine in use if there is one and it is worth it."""
    engine = current_engine() if batch.X.shape[0] >= _SETTLED else None
    if engine is not None and can_grow_in_groups(engine, batch.X, request, budget):
        return grow_in_groups(engine, batch, standardization, growth, request, budget)
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


def extend(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    *,
    expendable: Ids = _NONE,
) -> tuple[FittedForest, UpdateReport]:
    """Add samples to a forest; ``labels`` are the classes known afterwards."""
    if known.history.early is not None:
        return _begin_again(known, labels, batch, request, expendable)
    with turn_of_file(known.forest.samples.path):
        return _update(known, labels, batch, request, expendable)


def _begin_again(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    """So few samples that the scale of the features is taken anew, and the forest with it."""
    history, early = known.history, known.history.early
    everything = batch if early is None else batch.after(early)
    n_seen = history.n_seen + len(batch.ids)
    request = request.for_few(len(everything.ids))
    fitted, report = begin(labels, everything, history.seed, request, n_seen, expendable=expendable)
    fitted = replace(fitted, history=replace(fitted.history, n_updates=history.n_updates + 1))
    n_new = len(labels) - len(known.labels)
    return fitted, replace(report, n_samples=len(batch.ids), n_new_classes=n_new)


def regrow_early(fitted: FittedForest, request: ForestRequest) -> FittedForest:
    """A forest of so few samples that it is grown anew from them whenever one changes."""
    history, early = fitted.history, fitted.history.early
    if early is None:
        return fitted
    batch = ForestBatch(early.X, early.codes, early.ids)
    request = replace(request, n_estimators=len(fitted.forest)).for_few(len(early.ids))
    grown, _ = begin(fitted.labels, batch, history.seed, request, history.n_seen)
    return replace(grown, history=replace(grown.history, n_updates=history.n_updates))


def _update(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    known.check_memory()
    stored = known.forest.samples
    budget = budget_to_change(request, stored, len(labels), n_new=len(batch.ids))
    samples, numbers = store_more(stored, batch, known.standardization, request, budget)
    history = replace(
        known.history,
        n_updates=known.history.n_updates + 1,
        n_seen=known.history.n_seen + len(batch.ids),
        refresh_due=known.history.refresh_due + request.refresh * len(known.forest),
    )
    plan = core_plan(request, history, len(labels), known, row_budget=budget.row_budget)
    keep = request.keep_per_class if plan["keep_rows"] else None
    evicted = choose_evicted(samples, keep, history.seed, expendable)
    kept = resident_trees(known, request)
    if kept is None:
        forest, done = _updated(known.forest, samples, numbers, evicted, request, plan)
    else:
        forest, done = kept.update(samples, numbers, evicted, request, plan)
    if not plan["keep_rows"]:
        forest = forest.with_samples(stored)
    elif len(evicted):
        forest = forest.with_samples(_without(samples, evicted))
    forest = tidy_files(forest, request.memory_limit)
    forest.samples.claim()
    report = UpdateReport(
        request.strategy,
        len(numbers),
        n_new_classes=len(labels) - len(known.labels),
        n_refreshed=plan["n_refreshed"],
        seconds=time.perf_counter() - start,
        **done,
    )
    fitted = replace(known, labels=labels, forest=forest, history=history)
    note_update(fitted, kept)
    return fitted, report


def _updated(
    forest: _core.Forest,
    samples: _core.Samples,
    numbers: npt.NDArray[np.int32],
    evicted: npt.NDArray[np.int32],
    request: ForestRequest,
    plan: dict[str, Any],
) -> tuple[_core.Forest, dict[str, Any]]:
    with progress_bar("updating trees", len(forest), request.verbose) as progress:
        return forest.update(
            samples=samples,
            rows=numbers,
            evicted=evicted,
            plan=plan,
            n_threads=request.n_threads,
            progress=progress,
        )


def core_plan(
    request: ForestRequest,
    history: History,
    n_classes: int,
    known: FittedForest,
    *,
    row_budget: int | None = None,
) -> dict[str, Any]:
    """What the core is told about one update; the row budget is that of the stored samples."""
    if row_budget is None:
        row_budget = budget_to_change(request, known.forest.samples, n_classes).row_budget
    n_trees = len(known.forest)
    # What rounding takes from a sum of shares must not hold a tree back.
    due = (known.history.refresh_due, history.refresh_due)
    first, last = (math.floor(n + 1e-6) for n in due)
    return {
        "n_classes": n_classes,
        "seed": history.seed,
        "update": history.n_updates,
        "strategy": request.strategy,
        "share": request.share,
        "node_sampling": request.node_sampling,
        "row_rate": history.row_rate,
        "bootstrap": request.bootstrap,
        "first_refreshed": first % n_trees,
        "n_refreshed": min(last - first, n_trees),
        "n_trees": n_trees,
        "row_budget": row_budget,
        "rules": request.split_rules(n_classes, known.n_features),
        "keep_rows": known.has_training_rows,
    }


def _without(samples: _core.Samples, rows: npt.NDArray[np.int32]) -> _core.Samples:
    left = samples.copy()
    left.remove(rows)
    return left


def _let_go(fitted: FittedForest, request: ForestRequest, expendable: Ids) -> FittedForest:
    """Take samples beyond ``keep_per_class`` out of a forest that was just grown."""
    samples, history = fitted.forest.samples, fitted.history
    evicted = choose_evicted(samples, request.keep_per_class, history.seed, expendable)
    if not len(evicted):
        return fitted
    plan = core_plan(request, history, len(fitted.labels), fitted) | {"n_refreshed": 0}
    forest, _ = fitted.forest.update(
        samples=samples,
        rows=np.zeros(0, dtype=np.int32),
        evicted=evicted,
        plan=plan,
        n_threads=request.n_threads,
        progress=None,
    )
    forest = tidy_files(forest.with_samples(_without(samples, evicted)), request.memory_limit)
    return replace(fitted, forest=forest)
