"""Add samples to a forest by the update strategy of the request.

What a strategy does to a tree is in the core: ``cpp/update/`` has a file per strategy.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.eviction import choose_evicted, without_rows
from evergrow.estimators.forest.change.growth import NO_IDS, regrow_with
from evergrow.estimators.forest.change.update_plan import update_plan
from evergrow.estimators.forest.cluster.driver_update import note_update, resident_trees
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.compaction import tidy_files
from evergrow.estimators.forest.storage.placement import budget_to_change, store_more
from evergrow.estimators.forest.value.batch import ForestBatch, Ids
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList
from evergrow.foundation.locks import file_lock
from evergrow.foundation.progress import progress_bar

Numbers = npt.NDArray[np.int32]


def add_samples(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    *,
    expendable: Ids = NO_IDS,
) -> tuple[FittedForest, UpdateReport]:
    """Add samples to a forest; ``labels`` are the classes known afterwards.

    With ``keep_per_class``, the samples with the ids ``expendable`` are evicted first.
    """
    if len(known.history.early):
        return regrow_with(known, labels, batch, request, expendable)
    with file_lock(known.forest.samples.path):
        return _add_samples(known, labels, batch, request, expendable)


def _add_samples(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    known.check_memory()
    stored = known.forest.samples
    budget = budget_to_change(request, stored, len(labels), n_new=len(batch))
    samples, numbers = store_more(stored, batch, known.standardization, request, budget)
    history = replace(
        known.history,
        n_updates=known.history.n_updates + 1,
        n_seen=known.history.n_seen + len(batch),
        refresh_due=known.history.refresh_due + request.refresh * len(known.forest),
    )
    plan = update_plan(request, history, len(labels), known, row_budget=budget.row_budget)
    keep = request.keep_per_class if known.has_training_rows else None
    evicted = choose_evicted(samples, keep, history.seed, expendable)
    resident = resident_trees(known, request)
    update = _update_here if resident is None else resident.update
    forest, counts = update(known.forest, samples, numbers, evicted, request, plan)
    if not known.has_training_rows:
        forest = forest.with_samples(stored)
    elif len(evicted):
        forest = forest.with_samples(without_rows(samples, evicted))
    forest = tidy_files(forest, request.memory_limit)
    forest.samples.claim()
    report = UpdateReport(
        request.strategy.name,
        len(numbers),
        n_new_classes=len(labels) - len(known.labels),
        n_refreshed=plan["n_refreshed"],
        seconds=time.perf_counter() - start,
        **counts,
    )
    fitted = replace(known, labels=labels, forest=forest, history=history)
    note_update(fitted, resident)
    return fitted, report


def _update_here(
    forest: _core.Forest,
    samples: _core.Samples,
    numbers: Numbers,
    evicted: Numbers,
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
