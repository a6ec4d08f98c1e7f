"""Grow a forest from scratch or again from its early samples, and evict samples beyond a limit.

The checks and the plan that all changes of a forest need are here too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.feature_scale import measure_features
from evergrow.estimators.forest.cluster.driver_grow import can_grow_in_groups, grow_in_groups
from evergrow.estimators.forest.cluster.worker_grow import GrowthPlan
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage import store_batch
from evergrow.estimators.forest.value.ages import Ages
from evergrow.estimators.forest.value.fitted import (
    EarlySamples,
    FittedForest,
    ForestBatch,
    History,
    Ids,
)
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.estimators.forest.value.sample_matrix import as_floats
from evergrow.estimators.forest.value.standardization import LEAST_DEVIATION, Standardization
from evergrow.estimators.forest.value.weights import class_weights, in_unit
from evergrow.foundation.engine import Engine, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.rows import float_blocks, priorities

NO_IDS: Ids = np.zeros(0, dtype=np.int64)
# The transform of the features is measured again when there are so many times more samples, until
# there are so many per feature,
_MORE_SAMPLES, _SAMPLES_PER_FEATURE = 4, 4
# and when there are so many times more classes, until there are so many.
_MORE_CLASSES, _MEASURED_CLASSES = 3, 8
# It is also measured again when a feature of this share of the new samples is so many standard
# deviations from the centre. Chebyshev's inequality rules out that this happens by chance.
_OUTSIDE_SHARE, _FAR_OUTSIDE = 0.1, 64.0
# Larger values are not measured.
_WILD = 1e100


def grow_forest(
    labels: ClassList,
    batch: ForestBatch,
    seed: int,
    request: ForestRequest,
    n_seen: int | None = None,
    *,
    expendable: Ids = NO_IDS,
    weight_unit: float | None = None,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest from scratch.

    With ``Storage.per_class``, the samples with the ids ``expendable`` are evicted first. The
    weights of the batch are in units of ``weight_unit``; without one, their mean becomes the unit.
    """
    start = time.perf_counter()
    if weight_unit is None:
        weight_unit = 1.0 if batch.weights is None else float(batch.weights.mean())
        batch = replace(batch, weights=in_unit(batch.weights, weight_unit))
    totals = np.bincount(batch.codes, batch.weights, minlength=len(labels))
    of_classes = class_weights(request.class_weight, labels, totals)
    n_drawn = request.rows_per_tree(len(batch))
    request = request.sized_for(np.bincount(batch.codes), n_drawn / len(batch))
    standardization = measure_features(batch, len(labels), request)
    early = EarlySamples.of(batch)
    growth = GrowthPlan(
        n_classes=len(labels),
        seed=seed,
        rows_per_tree=n_drawn,
        bootstrap=request.bootstrap,
        rules=request.rules(len(labels), batch.X.shape[1]),
        n_threads=request.n_threads,
        class_weights=of_classes,
    )
    # Few samples are not worth handing out to workers.
    engine = None if len(early) else current_engine()
    forest = _grow_trees(batch, standardization, growth, request, engine)
    n_seen = len(batch) if n_seen is None else n_seen
    ages = Ages.of_first(request.n_estimators, len(labels), batch.codes)
    history = History(
        seed,
        0,
        n_seen,
        n_drawn / len(batch),
        ages,
        n_measured=len(batch),
        n_measured_classes=ages.n_seen_classes,
        weight_unit=weight_unit,
        early=early,
    )
    fitted = FittedForest(labels, standardization, forest, history, request.splits._proposer)
    if not len(early):
        fitted = evict_samples(fitted, request, expendable)
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
    growth: GrowthPlan,
    request: ForestRequest,
    engine: Engine | None,
) -> _core.Forest:
    """Grow the trees with an engine, or in this process if there is none or it cannot."""
    if engine is not None and can_grow_in_groups(engine, batch.X, request):
        return grow_in_groups(engine, batch, standardization, growth, request)
    samples = _core.Samples(batch.X.shape[1], half=request.storage._half)
    store_batch(samples, batch, standardization, request.storage, request.n_threads)
    with progress_bar("growing trees", request.n_estimators, request.verbose) as progress:
        return _core.Forest.grow(
            samples=samples, n_trees=request.n_estimators, progress=progress, **growth
        )


def regrow_early(fitted: FittedForest, request: ForestRequest) -> FittedForest:
    """Grow a forest again from its early samples if it has any; otherwise return it."""
    history, early = fitted.history, fitted.history.early
    if not len(early):
        return fitted
    request = replace(request, n_estimators=len(fitted.forest)).limited_to(len(early))
    grown, _ = grow_forest(
        fitted.labels,
        early,
        history.seed,
        request,
        history.n_seen,
        weight_unit=history.weight_unit,
    )
    return replace(grown, history=replace(grown.history, n_updates=history.n_updates))


def is_outgrown(known: FittedForest, batch: ForestBatch, request: ForestRequest) -> bool:
    """Whether the transform of the features was measured on too little for the forest with a batch.

    With ``refresh="auto"`` it is measured again, and the forest grown again, each time the
    samples are four times as many, until it was measured on four samples per feature, and each
    time the classes are three times as many, until it was measured on eight. A feature that hardly
    varies in the first few samples would otherwise outweigh all others for ever. For the same
    reason it is measured again if a feature of new samples lies far outside of the old ones.
    """
    return (
        request.strategy.refresh == "auto"
        # Thresholds of single features do not depend on their scale.
        and request.splits._proposer != "axis"
        # A number of samples per tree was set for fewer samples.
        and not request.has_fixed_rows
        # Evicted samples are counted in leaves but not stored.
        and request.storage.per_class is None
        and known.n_stored == known.history.n_seen
        and known.has_training_rows
        and (
            (
                request.standardize != "none"
                and (_has_more_samples(known, len(batch)) or _has_more_classes(known, batch.codes))
            )
            or _lies_outside(known, batch)
        )
        and not _has_wild_values(batch)
    )


def _lies_outside(known: FittedForest, batch: ForestBatch) -> bool:
    """Whether a feature of many new samples is far from what the transform was measured on."""
    # Whitening multiplies a feature by at most one over the least deviation.
    is_whitened = known.standardization.kind == "whiten"
    limit = _FAR_OUTSIDE / LEAST_DEVIATION if is_whitened else _FAR_OUTSIDE
    n_outside = np.zeros(known.n_features, dtype=np.int64)
    for _, block in float_blocks(batch.X):
        scaled = np.abs((block - known.standardization.mean) * known.standardization.scale)
        n_outside += (scaled > limit).sum(axis=0)
    return bool(n_outside.max() > _OUTSIDE_SHARE * len(batch))


def _has_wild_values(batch: ForestBatch) -> bool:
    """Whether values are too large to be measured; an update clips them."""
    return any(float(np.abs(block).max()) > _WILD for _, block in float_blocks(batch.X))


def _has_more_samples(known: FittedForest, n_new: int) -> bool:
    n_measured, n_samples = known.history.n_measured, known.n_stored + n_new
    equal_lengths = known.standardization.equal_lengths
    # Equal lengths are for small classes, which may have become large.
    few = n_measured < _SAMPLES_PER_FEATURE * known.n_features or equal_lengths
    return few and n_measured > 0 and n_samples >= _MORE_SAMPLES * n_measured


def _has_more_classes(known: FittedForest, codes: npt.NDArray[np.int32]) -> bool:
    n_measured = known.history.n_measured_classes
    if not 0 < n_measured < _MEASURED_CLASSES:
        return False
    stored = np.flatnonzero(known.samples.class_sizes(len(known.labels)))
    return len(np.union1d(stored, codes)) >= _MORE_CLASSES * n_measured


def stored_batch(known: FittedForest) -> ForestBatch:
    """The early samples, or all stored samples in the units of the input."""
    if len(known.history.early):
        return known.history.early
    samples = known.forest.samples
    rows = np.flatnonzero(samples.classes >= 0).astype(np.int32)
    X = known.standardization.undo(as_floats(samples.take(rows)).astype(np.float64))
    weights = None if samples.weights is None else samples.weights[rows]
    return ForestBatch(X, samples.classes[rows], samples.ids[rows], weights)


def regrow_with(
    known: FittedForest,
    labels: ClassList,
    batch: ForestBatch,
    request: ForestRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest again from its samples and new ones."""
    history = known.history
    everything = stored_batch(known).with_batch(batch)
    n_seen = history.n_seen + len(batch)
    request = request.limited_to(len(everything))
    fitted, report = grow_forest(
        labels,
        everything,
        history.seed,
        request,
        n_seen,
        expendable=expendable,
        weight_unit=history.weight_unit,
    )
    fitted = replace(fitted, history=replace(fitted.history, n_updates=history.n_updates + 1))
    n_new = len(labels) - len(known.labels)
    n_trees = len(fitted.forest)
    return fitted, replace(report, n_samples=len(batch), n_new_classes=n_new, n_refreshed=n_trees)


def choose_evicted(
    samples: _core.Samples, per_class: int | None, seed: int, expendable: Ids
) -> npt.NDArray[np.int32]:
    """Stored and new rows to remove, so that each class keeps a uniform choice of its samples.

    Of each class ``per_class`` samples may stay, or all if it is None. The samples with the
    ids ``expendable`` are evicted before any others of their class.
    """
    if per_class is None:
        return np.zeros(0, dtype=np.int32)
    rows = np.flatnonzero(samples.classes >= 0)
    classes, ids = samples.classes[rows], samples.ids[rows]
    # Ids break ties between equal random priorities.
    order = np.lexsort((ids, priorities(f"{seed} kept", ids), np.isin(ids, expendable), classes))
    _, firsts, counts = np.unique(classes[order], return_index=True, return_counts=True)
    rank = np.arange(len(rows)) - np.repeat(firsts, counts)
    return np.sort(rows[order[rank >= per_class]]).astype(np.int32)


def evict_samples(fitted: FittedForest, request: ForestRequest, expendable: Ids) -> FittedForest:
    """Evict samples beyond ``Storage.per_class`` from a forest that was just grown."""
    samples, history = fitted.forest.samples, fitted.history
    evicted = choose_evicted(samples, request.storage.per_class, history.seed, expendable)
    if not len(evicted):
        return fitted
    plan = update_plan(request, history, len(fitted.labels), fitted)
    forest, _ = fitted.forest.update(
        samples=samples,
        rows=np.zeros(0, dtype=np.int32),
        evicted=evicted,
        plan=plan,
        n_threads=request.n_threads,
        progress=None,
    )
    return replace(fitted, forest=forest.with_samples(without_rows(samples, evicted)))


def without_rows(samples: _core.Samples, rows: npt.NDArray[np.int32]) -> _core.Samples:
    """A copy of the samples from which some rows are removed."""
    left = samples.copy()
    left.remove(rows)
    return left


def update_plan(
    request: ForestRequest,
    history: History,
    n_classes: int,
    known: FittedForest,
    *,
    of_classes: Sequence[float] = (),
) -> _core.UpdatePlan:
    """The plan of one update of ``known``; ``history`` is the one after the update.

    ``of_classes`` are the weights of the classes, if any.
    """
    first_refreshed, n_refreshed = refreshed_trees(known, history)
    share, node_sampling = request.strategy._chosen_nodes
    return _core.UpdatePlan(
        n_classes=n_classes,
        seed=history.seed,
        update=history.n_updates,
        strategy=request.strategy._name,
        share=share,
        node_sampling=node_sampling,
        row_rate=history.row_rate,
        bootstrap=request.bootstrap,
        first_refreshed=first_refreshed,
        n_refreshed=n_refreshed,
        rules=request.rules(n_classes, known.n_features),
        keep_rows=known.has_training_rows,
        class_weights=of_classes,
    )


def refreshed_trees(known: FittedForest, history: History) -> tuple[int, int]:
    """The first tree that an update grows again, and how many, in turn.

    ``history`` is the one after the update.
    """
    n_trees, first = len(known.forest), n_due(known.history)
    return first % n_trees, min(n_due(history) - first, n_trees)


def n_due(history: History) -> int:
    """Number of trees that were due to be grown again so far."""
    # Rounding errors in the sum of shares must not delay a tree.
    return math.floor(history.refresh_due + 1e-6)


def check_growable(known: FittedForest, request: ForestRequest) -> None:
    """Raise a ``ValueError`` if a forest cannot be updated with these parameters."""
    if len(known.forest) != request.n_estimators:
        raise InvalidInputError(
            f"n_estimators is {request.n_estimators} but the forest has {len(known.forest)} "
            "trees: fit again to change their number"
        )
    if known.has_training_rows and known.forest.samples.half != request.storage._half:
        raise InvalidInputError(
            f"Storage.dtype is {request.storage.dtype!r} but the forest stores samples of another "
            "precision: fit again to change it"
        )
    # "auto" grows no tree again where it cannot. Weights of classes are relative to all samples.
    if (
        request.strategy._needs_rows
        or request.strategy.refresh not in (0, "auto")
        or request.class_weight is not None
    ):
        check_has_rows(known, "update")


def check_has_rows(known: FittedForest, action: str) -> None:
    """Raise a ``ValueError`` if a forest has no training samples."""
    if not known.has_training_rows:
        raise InvalidInputError(
            f"cannot {action}: the forest was saved with inference_only=True and has no training "
            "samples; update='uls' without class_weight needs none"
        )
