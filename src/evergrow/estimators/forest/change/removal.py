"""Taking samples and classes out of a forest, and giving classes other names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.change.addition import core_plan, regrow_early
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.storage.compaction import tidy_files
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.history import EarlySamples
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.turns import turn_of_file


def forget(
    known: FittedForest, codes: list[int], ids: npt.NDArray[np.int64], request: ForestRequest
) -> tuple[FittedForest, UpdateReport]:
    """Take whole classes and single samples, by their ids, out of a forest."""
    with turn_of_file(known.forest.samples.path):
        return _forget(known, codes, ids, request)


def _forget(
    known: FittedForest, codes: list[int], ids: npt.NDArray[np.int64], request: ForestRequest
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    known.check_memory()
    samples = known.forest.samples
    stored, classes = samples.ids, samples.classes
    leaving = (classes >= 0) & (np.isin(stored, ids) | np.isin(classes, codes))
    check_stored(ids, stored[classes >= 0], "forget")
    if leaving.sum() == (classes >= 0).sum() or len(codes) == len(known.labels):
        raise ValueError("forget would leave no samples: train a new forest instead")
    rows = np.flatnonzero(leaving).astype(np.int32)
    history = replace(known.history, n_updates=known.history.n_updates + 1)
    plan = core_plan(request, history, len(known.labels), known)
    with progress_bar("forgetting", len(known.forest), request.verbose) as progress:
        forest, done = known.forest.forget(
            rows=rows, classes=codes, plan=plan, n_threads=request.n_threads, progress=progress
        )
    left = samples.copy()
    left.remove(rows)
    forest = tidy_files(forest.with_samples(left), request.memory_limit)
    fitted = replace(known, forest=forest, history=history)
    fitted = _without_early(fitted, rows=stored[rows])
    if codes:
        fitted = _renumbered(fitted, *fitted.labels.without(codes))
    if fitted.history.early is not None:
        fitted = regrow_early(fitted, request)
    # Last: once these may add to their file, the samples of before may not.
    fitted.forest.samples.claim()
    seconds = time.perf_counter() - start
    return fitted, UpdateReport("forget", len(rows), seconds=seconds, **done)


def rename(known: FittedForest, names: Mapping[Any, Any]) -> FittedForest:
    """Give classes other names; classes given one name become one."""
    with turn_of_file(known.forest.samples.path):
        return _rename(known, names)


def _rename(known: FittedForest, names: Mapping[Any, Any]) -> FittedForest:
    known.check_memory()
    renamed = _renumbered(known, *known.labels.renamed(names))
    renamed.forest.samples.claim()
    return renamed


def as_ids(samples: npt.ArrayLike, name: str = "samples") -> npt.NDArray[np.int64]:
    """Ids that a caller lists, each once and sorted."""
    ids = np.atleast_1d(np.asarray(samples))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of integer ids, got {samples!r}")
    return np.unique(ids.astype(np.int64))


def check_stored(ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64], what: str) -> None:
    """Raise a ``ValueError`` that lists ids of samples that are not stored."""
    unknown = np.setdiff1d(ids, stored)
    if len(unknown):
        shown = ", ".join(str(i) for i in unknown[:5].tolist())
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise ValueError(
            f"{what} got samples that are not stored: {shown}{more}; "
            "ids are in sample_ids_ after each fit and partial_fit"
        )


def _without_early(fitted: FittedForest, rows: npt.NDArray[np.int64]) -> FittedForest:
    early = fitted.history.early
    if early is None:
        return fitted
    kept = ~np.isin(early.ids, rows)
    left = EarlySamples(early.X[kept], early.codes[kept], early.ids[kept])
    return replace(fitted, history=fitted.history.with_early(left))


def _renumbered(fitted: FittedForest, labels: ClassList, columns: list[int]) -> FittedForest:
    samples = fitted.forest.samples.copy()
    samples.rename_classes(columns)
    forest = fitted.forest.relabel(samples=samples, columns=columns, n_classes=len(labels))
    history = fitted.history
    if history.early is not None:
        codes = np.array(columns)[history.early.codes].astype(np.int32)
        history = history.with_early(replace(history.early, codes=codes))
    return replace(fitted, labels=labels, forest=forest, history=history)
