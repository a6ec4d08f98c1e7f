"""Give stored samples other classes, and classes other names or columns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.change.growth import update_plan
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar

Rows = npt.NDArray[np.int32]


def rename_classes(known: FittedForest, names: Mapping[Any, Any]) -> FittedForest:
    """Rename classes; classes that get the same name are merged."""
    return with_columns(known, *known.labels.renamed(names))


def with_columns(fitted: FittedForest, labels: ClassList, columns: list[int]) -> FittedForest:
    """The same forest with classes renumbered: class ``c`` becomes ``columns[c]``."""
    samples = fitted.forest.samples.copy()
    samples.rename_classes(columns)
    forest = fitted.forest.relabel(samples=samples, columns=columns, n_classes=len(labels))
    history = replace(
        fitted.history,
        ages=fitted.history.ages.with_columns(columns, len(labels)),
        early=fitted.history.early.with_columns(columns),
    )
    weights = fitted.balance_weights
    if weights is not None:
        weights = _moved(weights, columns, len(labels))
    return replace(fitted, labels=labels, forest=forest, history=history, balance_weights=weights)


def _moved(
    weights: npt.NDArray[np.float64], columns: list[int], n_classes: int
) -> npt.NDArray[np.float64]:
    """Weights of renumbered classes; a merged class has the least weight of its parts."""
    moved = np.full(n_classes, np.inf)
    # Classes that came to a forest without samples are at the end and have none.
    known = np.concatenate([weights, np.ones(len(columns) - len(weights))])
    np.minimum.at(moved, columns, known)
    return moved


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
    these rows, and so are leaves that hold such rows. More samples can be added to the result;
    before it is used for anything else, regrow its early samples.
    """
    start = time.perf_counter()
    samples = known.forest.samples.copy()
    samples.set_classes(rows, classes)
    early = known.history.early.with_classes(samples.ids[rows], classes)
    n_updates = known.history.n_updates + 1
    ages = known.history.ages.with_samples(classes, len(labels), n_updates)
    history = replace(known.history, n_updates=n_updates, ages=ages, early=early)
    fitted = replace(known, labels=labels, history=history)
    counts = _core.UpdateReport()
    if not len(early):
        request = request.sized_for(samples.class_sizes(len(labels)), history.row_rate)
        plan = update_plan(request, history, len(labels), known)
        with progress_bar("refining trees", len(known.forest), request.verbose) as progress:
            forest, counts = known.forest.refine(
                samples=samples,
                rows=rows,
                share=share,
                plan=plan,
                n_threads=request.n_threads,
                progress=progress,
            )
        fitted = replace(fitted, forest=forest)
    seconds = time.perf_counter() - start
    return fitted, UpdateReport("refine", len(rows), seconds=seconds, **counts.as_dict())
