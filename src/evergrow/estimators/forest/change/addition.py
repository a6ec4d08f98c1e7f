"""Add samples to a forest by the update strategy of the request.

What a strategy does to a tree is in the core: ``cpp/update/strategy_table.cpp`` lists the
strategies, and ``cpp/update/rust.cpp`` is the longest of them.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.growth import (
    NO_IDS,
    choose_evicted,
    is_outgrown,
    n_due,
    refreshed_trees,
    regrow_with,
    update_plan,
    without_rows,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage import store_batch
from evergrow.estimators.forest.value.ages import Ages
from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch, History, Ids
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.estimators.forest.value.weights import class_weights, later_weights
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar

# With refresh="auto", a tree is grown again when the number of classes or of samples has grown by
# this factor (docs/growing_tradeoffs.md).
REFRESH_FACTOR = 1.3
# For an update that adds a fifth or more, the factor is this: chunks of classes stay cheap.
_LARGE_FACTOR, _LARGE_UPDATE = 1.5, 1.2

Totals = npt.NDArray[np.float64]


def add_samples(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    *,
    expendable: Ids = NO_IDS,
) -> tuple[FittedForest, UpdateReport]:
    """Add samples to a forest; ``labels`` are the classes known afterwards.

    With ``Storage.per_class``, the samples with the ids ``expendable`` are evicted first.
    """
    weights = later_weights(batch.weights, known.history.weight_unit)
    batch = replace(batch, weights=weights)
    if len(known.history.early) or is_outgrown(known, batch, request):
        return regrow_with(known, labels, batch, request, expendable)
    return _add_samples(known, labels, batch, request, expendable)


def _total_weights(stored: _core.Samples, batch: ForestBatch, n_classes: int) -> Totals:
    """Weights of the stored and new samples of each class, added up."""
    rows = np.flatnonzero(stored.classes >= 0)
    own = np.ones(len(rows), np.float32) if stored.weights is None else stored.weights[rows]
    new = np.ones(len(batch), np.float32) if batch.weights is None else batch.weights
    codes = np.concatenate([stored.classes[rows], batch.codes])
    totals = np.bincount(codes, np.concatenate([own, new]), minlength=n_classes)
    return totals.astype(np.float64)


def _history_after(
    known: FittedForest, n_classes: int, batch: ForestBatch, request: ForestRequest
) -> History:
    """The history of the forest once a batch is added."""
    before = known.history
    update = before.n_updates + 1
    ages = before.ages.with_samples(batch.codes, n_classes, update)
    if request.strategy.refresh == "auto":
        due = _due_by_growth(known, ages, len(batch), request)
    else:
        due = before.refresh_due + len(known.forest) * float(request.strategy.refresh)
    after = replace(
        before, n_updates=update, n_seen=before.n_seen + len(batch), refresh_due=due, ages=ages
    )
    taught = refreshed_trees(known, after)
    if request.strategy._changes_splits:
        taught = (0, len(known.forest))
    return replace(after, ages=ages.with_taught(*taught, update))


def _due_by_growth(known: FittedForest, ages: Ages, n_new: int, request: ForestRequest) -> float:
    """Trees due so far, with those of an update that adds ``n_new`` samples to a forest."""
    before = known.history
    if not known.has_training_rows:
        return before.refresh_due
    classes = (before.ages.n_seen_classes, ages.n_seen_classes)
    n_samples = before.n_seen if request.storage.per_class else known.n_stored
    share = due_share(classes, (n_samples, n_samples + n_new))
    due = before.refresh_due + len(known.forest) * share
    # At least one tree must know the new classes.
    return max(due, n_due(before) + 1.0) if classes[1] > classes[0] else due


def due_share(n_classes: tuple[int, int], n_samples: tuple[int, int]) -> float:
    """Share of the trees that an update with ``refresh="auto"`` grows again.

    The numbers are those before and after the update. While they grow a little at a time, each
    tree is grown again, in turn, whenever one of the numbers has grown by ``REFRESH_FACTOR``. An
    update that grows them by half at once grows half of the trees again: large updates would
    otherwise take as long as training from scratch.

    >>> round(due_share((50, 51), (5000, 5050)), 3), round(due_share((2, 4), (100, 200)), 2)
    (0.067, 0.63)
    """
    growth = max(math.log(after / max(before, 1)) for before, after in (n_classes, n_samples))
    size = min(1.0, growth / math.log(_LARGE_UPDATE))
    due_after = (1.0 - size) * math.log(REFRESH_FACTOR) + size * math.log(_LARGE_FACTOR)
    return growth / (growth + due_after)


def _add_samples(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    stored = known.forest.samples
    sizes = stored.class_sizes(len(labels)) + np.bincount(batch.codes, minlength=len(labels))
    request = request.sized_for(sizes, known.history.row_rate)
    of_classes = []
    if request.class_weight is not None:
        totals = _total_weights(stored, batch, len(labels))
        of_classes = class_weights(request.class_weight, labels, totals)
    samples = stored.copy()
    numbers = store_batch(samples, batch, known.standardization, request.storage, request.n_threads)
    history = _history_after(known, len(labels), batch, request)
    plan = update_plan(request, history, len(labels), known, of_classes=of_classes)
    keep = request.storage.per_class if known.has_training_rows else None
    evicted = choose_evicted(samples, keep, history.seed, expendable)
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
    report = UpdateReport(
        request.strategy._name,
        len(numbers),
        n_new_classes=len(labels) - len(known.labels),
        n_refreshed=plan.n_refreshed,
        seconds=time.perf_counter() - start,
        **counts.as_dict(),
    )
    return replace(known, labels=labels, forest=forest, history=history), report
