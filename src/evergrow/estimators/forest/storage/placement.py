"""Where the samples of a forest are stored: in memory, in the named file, or in a scratch file."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.budget import MemoryBudget, MemoryDemand, budget_for
from evergrow.estimators.forest.storage.compaction import spill_to_file
from evergrow.estimators.forest.storage.scratch_file import ScratchRows
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.rows import float_blocks

Numbers = npt.NDArray[np.int32]


def budget_to_grow(request: ForestRequest, shape: tuple[int, int], n_classes: int) -> MemoryBudget:
    """What the memory limit allows for growing a forest from a matrix of this shape."""
    if request.memory_limit is None:
        return MemoryBudget()
    demand = _demand("fit", request, shape[0], shape[0], shape[1], n_classes)
    return budget_for(demand, request.memory_limit, mapped=request.memory is not None)


def budget_to_change(
    request: ForestRequest, samples: _core.Samples, n_classes: int, *, n_new: int = 0
) -> MemoryBudget:
    """What the memory limit allows for a change of a forest with stored samples."""
    if request.memory_limit is None:
        return MemoryBudget()
    # New rows are written over removed ones first.
    n_rows = len(samples) - samples.n_removed + n_new
    demand = _demand("update", request, n_rows, n_new, samples.n_features, n_classes)
    demand = replace(demand, n_removed=max(0, len(samples) - n_rows))
    mapped = samples.path is not None
    return budget_for(demand, request.memory_limit, held=samples.own_nbytes, mapped=mapped)


def _demand(
    kind: str, request: ForestRequest, n_rows: int, n_new: int, n_features: int, n_classes: int
) -> MemoryDemand:
    return MemoryDemand(
        kind=kind,
        n_rows=n_rows,
        n_new=n_new,
        width=_core.padded_width(n_features),
        half=request.half_samples,
        n_classes=n_classes,
        n_threads=max(1, min(request.n_threads, request.n_estimators)),
        rules=request.splits.rules(n_classes, n_features),
        evicts=request.keep_per_class is not None,
    )


def store_first(
    batch: ForestBatch,
    standardization: Standardization,
    request: ForestRequest,
    budget: MemoryBudget,
) -> tuple[_core.Samples, Numbers]:
    """Store the first samples of a forest; returns them and their numbers."""
    n_features = batch.X.shape[1]
    path = None if request.memory is None else os.path.abspath(request.memory)
    if not budget.in_file:
        samples = _core.Samples(n_features, half=request.half_samples, path=path)
        return samples, _write(samples, batch, standardization, request.n_threads)
    scratch = _scratch(batch, standardization, request, budget)
    samples = _core.Samples.over(
        scratch.rows,
        batch.codes,
        batch.ids,
        n_features=n_features,
        places=scratch.places,
        weights=batch.weights,
    )
    return samples, np.arange(len(batch), dtype=np.int32)


def store_more(
    samples: _core.Samples,
    batch: ForestBatch,
    standardization: Standardization,
    request: ForestRequest,
    budget: MemoryBudget,
) -> tuple[_core.Samples, Numbers]:
    """Add new samples to a copy of the stored ones; returns all, and the numbers of the new."""
    samples = spill_to_file(samples, budget.chunk_bytes) if budget.spills else samples.copy()
    if not budget.in_file:
        return samples, _write(samples, batch, standardization, request.n_threads)
    scratch = _scratch(batch, standardization, request, budget)
    numbers = samples.add_over(scratch.rows, batch.codes, batch.ids, places=scratch.places)
    if batch.weights is not None:
        samples.set_weights(numbers, batch.weights)
    return samples, numbers


def _write(
    samples: _core.Samples, batch: ForestBatch, scale: Standardization, n_threads: int
) -> Numbers:
    numbers = samples.add(len(batch))
    for rows, block in float_blocks(batch.X):
        codes, ids = batch.codes[rows], batch.ids[rows]
        samples.write(numbers[rows], block, codes, ids, scale.core, n_threads)
    if batch.weights is not None:
        samples.set_weights(numbers, batch.weights)
    return numbers


def _scratch(
    batch: ForestBatch, scale: Standardization, request: ForestRequest, budget: MemoryBudget
) -> ScratchRows:
    with progress_bar("sorting samples", len(batch), request.verbose) as progress:
        return ScratchRows(
            lambda rows: np.asarray(batch.X[rows]),
            batch.codes,
            scale,
            half=request.half_samples,
            chunk_bytes=budget.chunk_bytes,
            progress=progress,
        )
