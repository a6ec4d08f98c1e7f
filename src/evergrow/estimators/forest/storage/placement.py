"""Where the samples of a forest go: memory, a file that was named, or one that has no name."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.budget import MemoryBudget, MemoryDemand, budget_for
from evergrow.estimators.forest.storage.compaction import spill_to_file
from evergrow.estimators.forest.storage.scratch_file import ScratchRows
from evergrow.estimators.forest.value.history import EarlySamples
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards import join_rows

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ForestBatch:
    """New samples: features, columns of their classes, and ids."""

    X: npt.NDArray[Any]
    codes: Codes
    ids: Ids

    def after(self, early: EarlySamples) -> ForestBatch:
        """Early samples and these as one batch."""
        return ForestBatch(
            join_rows(early.X, self.X),
            np.concatenate([early.codes, self.codes]),
            np.concatenate([early.ids, self.ids]),
        )


def budget_to_grow(request: ForestRequest, shape: tuple[int, int], n_classes: int) -> MemoryBudget:
    """What the memory limit leaves for a forest of a matrix of this shape."""
    if request.memory_limit is None:
        return MemoryBudget()
    work = _work("fit", request, shape[0], shape[0], shape[1], n_classes)
    return budget_for(work, request.memory_limit, mapped=request.memory is not None)


def budget_to_change(
    request: ForestRequest, samples: _core.Samples, n_classes: int, *, n_new: int = 0
) -> MemoryBudget:
    """The same for a change of a forest of stored samples."""
    if request.memory_limit is None:
        return MemoryBudget()
    # New rows take the places of removed ones first.
    n_rows = len(samples) - samples.n_removed + n_new
    work = _work("update", request, n_rows, n_new, samples.n_features, n_classes)
    work = replace(work, n_removed=max(0, len(samples) - n_rows))
    mapped = samples.path is not None
    return budget_for(work, request.memory_limit, held=samples.own_nbytes, mapped=mapped)


def _work(
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
        rules=request.split_rules(n_classes, n_features),
        evicts=request.keep_per_class is not None,
    )


def store_first(
    batch: ForestBatch,
    standardization: Standardization,
    request: ForestRequest,
    budget: MemoryBudget,
) -> tuple[_core.Samples, Codes]:
    """The first samples of a forest, and their numbers."""
    n_features = batch.X.shape[1]
    path = None if request.memory is None else os.path.abspath(request.memory)
    if not budget.in_file:
        samples = _core.Samples(n_features, half=request.half_samples, path=path)
        return samples, _write(samples, batch, standardization)
    scratch = _scratch(batch, standardization, request, budget)
    samples = _core.Samples.over(
        scratch.rows, batch.codes, batch.ids, n_features=n_features, places=scratch.places
    )
    return samples, np.arange(len(batch.ids), dtype=np.int32)


def store_more(
    samples: _core.Samples,
    batch: ForestBatch,
    standardization: Standardization,
    request: ForestRequest,
    budget: MemoryBudget,
) -> tuple[_core.Samples, Codes]:
    """Stored samples and new ones; the numbers of these."""
    samples = spill_to_file(samples, budget.chunk_bytes) if budget.spills else samples.copy()
    if not budget.in_file:
        return samples, _write(samples, batch, standardization)
    scratch = _scratch(batch, standardization, request, budget)
    return samples, samples.add_over(scratch.rows, batch.codes, batch.ids, places=scratch.places)


def _write(samples: _core.Samples, batch: ForestBatch, scale: Standardization) -> Codes:
    numbers = samples.add(len(batch.ids))
    for rows, block in float_blocks(batch.X):
        samples.write(numbers[rows], block, batch.codes[rows], batch.ids[rows], scale.core)
    return numbers


def _scratch(
    batch: ForestBatch, scale: Standardization, request: ForestRequest, budget: MemoryBudget
) -> ScratchRows:
    with progress_bar("sorting samples", len(batch.ids), request.verbose) as progress:
        return ScratchRows(
            lambda rows: np.asarray(batch.X[rows]),
            batch.codes,
            scale,
            half=request.half_samples,
            chunk_bytes=budget.chunk_bytes,
            progress=progress,
        )
