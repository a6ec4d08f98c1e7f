"""Add samples to a forest by the update strategy of the request.

What a strategy does to a tree is in the core: ``cpp/update/strategy_table.cpp`` lists the
strategies, and ``cpp/update/rust.cpp`` is the longest of them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.change.growth import (
    NO_IDS,
    choose_evicted,
    regrow_with,
    update_plan,
    without_rows,
)
from evergrow.estimators.forest.cluster.driver_update import note_update, resident_trees
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.compaction import tidy_files
from evergrow.estimators.forest.storage.placement import budget_to_change, store_more
from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch, Ids
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList
from evergrow.foundation.locks import path_mutex
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
    with path_mutex(known.forest.samples.path):
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
    codes = np.concatenate([stored.classes, batch.codes])
    request = request.sized_for(codes, known.history.row_rate)
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
    if resident is not None:
        forest, counts = resident.update(samples, numbers, evicted, request, plan)
    else:
        with progress_bar("updating trees", len(known.forest), request.verbose) as progress:
            forest, counts = known.forest.update(
                samples=samples,
                rows=numbers,
                evicted=evicted,
                plan=plan,
                n_threads=request.n_threads,
                progress=progress,
            )
    if not known.has_training_rows:
        forest = forest.with_samples(stored)
    elif len(evicted):
        forest = forest.with_samples(without_rows(samples, evicted))
    forest = tidy_files(forest, request.memory_limit)
    forest.samples.claim()
    report = UpdateReport(
        request.strategy._name,
        len(numbers),
        n_new_classes=len(labels) - len(known.labels),
        n_refreshed=plan.n_refreshed,
        seconds=time.perf_counter() - start,
        **counts.as_dict(),
    )
    fitted = replace(known, labels=labels, forest=forest, history=history)
    note_update(fitted, resident)
    return fitted, report
