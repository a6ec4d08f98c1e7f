"""Stored samples that get other classes, and the parts of a forest that grow again with them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.change.addition import core_plan, regrow_early
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.history import EarlySamples, History
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar

Rows = npt.NDArray[np.int32]


def relabel(
    known: FittedForest,
    labels: ClassList,
    rows: Rows,
    classes: Rows,
    request: ForestRequest,
    *,
    share: float,
) -> tuple[FittedForest, UpdateReport]:
    """Give stored rows other classes; ``labels`` are the classes known afterwards.

    Subtrees are grown again if at least ``share`` of their samples belong to one coarse class of
    these rows, and so are leaves that hold such rows. What this gives may be extended; if it is to
    be used as it is, :func:`settle` it.
    """
    start = time.perf_counter()
    known.check_memory()
    samples = known.forest.samples.copy()
    samples.set_classes(rows, classes)
    history = replace(known.history, n_updates=known.history.n_updates + 1)
    history = history.with_early(_relabelled(history.early, samples.ids[rows], classes))
    fitted = replace(known, labels=labels, history=history)
    done: dict[str, Any] = {}
    if history.early is None:
        forest, done = _refined(known, samples, rows, request, history, len(labels), share)
        fitted = replace(fitted, forest=forest)
    seconds = time.perf_counter() - start
    return fitted, UpdateReport("refine", len(rows), seconds=seconds, **done)


def settle(fitted: FittedForest, request: ForestRequest) -> FittedForest:
    """Make a relabelled forest one that can be used."""
    if fitted.history.early is not None:
        return regrow_early(fitted, request)
    # Last: once these may add to their file, the samples of before may not.
    fitted.forest.samples.claim()
    return fitted


def _refined(
    known: FittedForest,
    samples: Any,
    rows: Rows,
    request: ForestRequest,
    history: History,
    n_classes: int,
    share: float,
) -> tuple[Any, dict[str, Any]]:
    plan = core_plan(request, history, n_classes, known) | {"n_refreshed": 0}
    with progress_bar("refining trees", len(known.forest), request.verbose) as progress:
        forest, done = known.forest.refine(
            samples=samples,
            rows=rows,
            share=share,
            plan=plan,
            n_threads=request.n_threads,
            progress=progress,
        )
    return forest, done


def _relabelled(
    early: EarlySamples | None, ids: npt.NDArray[np.int64], classes: Rows
) -> EarlySamples | None:
    if early is None:
        return None
    place = {number: k for k, number in enumerate(early.ids.tolist())}
    codes = early.codes.copy()
    codes[[place[number] for number in ids.tolist()]] = classes
    return replace(early, codes=codes)
