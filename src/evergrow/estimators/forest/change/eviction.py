"""Eviction: which samples a forest with ``keep_per_class`` stops storing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.update_plan import update_plan
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.compaction import tidy_files
from evergrow.estimators.forest.value.batch import Ids
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.foundation.priorities import priorities


def choose_evicted(
    samples: _core.Samples, keep_per_class: int | None, seed: int, expendable: Ids
) -> npt.NDArray[np.int32]:
    """Rows to remove so that each class keeps a uniform choice of all its samples.

    Parameters
    ----------
    samples : Samples
        Stored and new samples.
    keep_per_class : int or None
        How many samples of each class may stay; None for all.
    seed : int
        Seed of the forest.
    expendable : ndarray
        Ids of samples that are evicted before any others of their class.

    Returns
    -------
    rows : ndarray
        Stored and new rows to remove.
    """
    if keep_per_class is None:
        return np.zeros(0, dtype=np.int32)
    rows = np.flatnonzero(samples.classes >= 0)
    classes, ids = samples.classes[rows], samples.ids[rows]
    # Ids break ties between equal random priorities.
    order = np.lexsort((ids, priorities(f"{seed} kept", ids), np.isin(ids, expendable), classes))
    _, firsts, counts = np.unique(classes[order], return_index=True, return_counts=True)
    rank = np.arange(len(rows)) - np.repeat(firsts, counts)
    return np.sort(rows[order[rank >= keep_per_class]]).astype(np.int32)


def evict_samples(fitted: FittedForest, request: ForestRequest, expendable: Ids) -> FittedForest:
    """Evict samples beyond ``keep_per_class`` from a forest that was just grown."""
    samples, history = fitted.forest.samples, fitted.history
    evicted = choose_evicted(samples, request.keep_per_class, history.seed, expendable)
    if not len(evicted):
        return fitted
    plan = update_plan(request, history, len(fitted.labels), fitted) | {"n_refreshed": 0}
    forest, _ = fitted.forest.update(
        samples=samples,
        rows=np.zeros(0, dtype=np.int32),
        evicted=evicted,
        plan=plan,
        n_threads=request.n_threads,
        progress=None,
    )
    forest = tidy_files(forest.with_samples(without_rows(samples, evicted)), request.memory_limit)
    return replace(fitted, forest=forest)


def without_rows(samples: _core.Samples, rows: npt.NDArray[np.int32]) -> _core.Samples:
    """A copy of the samples from which some rows are removed."""
    left = samples.copy()
    left.remove(rows)
    return left
