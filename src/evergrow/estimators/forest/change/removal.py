"""Remove samples and classes from a forest."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.change.growth import regrow_early, update_plan, without_rows
from evergrow.estimators.forest.change.relabeling import with_columns
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.fitted import FittedForest, Ids
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.progress import progress_bar

_MOST_SHOWN = 5


def forget(
    known: FittedForest, codes: list[int], ids: Ids, request: ForestRequest
) -> tuple[FittedForest, UpdateReport]:
    """Remove whole classes, by their columns, and single samples, by their ids."""
    start = time.perf_counter()
    samples = known.forest.samples
    rows = _rows_to_remove(known, codes, ids)
    left = without_rows(samples, rows)
    sizes = left.class_sizes(len(known.labels))
    request = request.sized_for(sizes, known.history.row_rate)
    history = replace(
        known.history,
        n_updates=known.history.n_updates + 1,
        ages=known.history.ages.without_classes(
            np.setdiff1d(samples.classes[rows], np.flatnonzero(sizes))
        ),
        early=known.history.early.without(samples.ids[rows]),
    )
    # Trees draw by weight only if they start again; those of samples are enough for that.
    plan = update_plan(request, history, len(known.labels), known)
    with progress_bar("forgetting", len(known.forest), request.verbose) as progress:
        forest, counts = known.forest.forget(
            rows=rows, classes=codes, plan=plan, n_threads=request.n_threads, progress=progress
        )
    forest = forest.with_samples(left)
    fitted = replace(known, forest=forest, history=history)
    if codes:
        fitted = with_columns(fitted, *fitted.labels.without(codes))
    fitted = regrow_early(fitted, request)
    seconds = time.perf_counter() - start
    return fitted, UpdateReport("forget", len(rows), seconds=seconds, **counts.as_dict())


def _rows_to_remove(known: FittedForest, codes: list[int], ids: Ids) -> npt.NDArray[np.int32]:
    samples = known.forest.samples
    is_stored = samples.classes >= 0
    check_stored(ids, samples.ids[is_stored], "forget")
    leaving = is_stored & (np.isin(samples.ids, ids) | np.isin(samples.classes, codes))
    if leaving.sum() == is_stored.sum() or len(codes) == len(known.labels):
        raise InvalidInputError("forget would leave no samples: train a new forest instead")
    return np.flatnonzero(leaving).astype(np.int32)


def refuse_examples(forest: object, examples: tuple[object, ...]) -> None:
    """Raise a ``TypeError`` if ``forget`` got examples, as other classifiers take them."""
    if examples:
        raise InvalidTypeError(
            f"{type(forest).__name__}.forget needs classes= or samples= (ids from sample_ids_ or "
            "stored_ids_) by name: a forest cannot forget examples given as X and y"
        )


def as_ids(samples: npt.ArrayLike, name: str = "samples") -> Ids:
    """Sample ids given by the caller, sorted and without duplicates."""
    ids = np.atleast_1d(np.asarray(samples))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InvalidInputError(f"{name} must be a list of integer ids, got {samples!r}")
    return np.unique(ids.astype(np.int64))


def check_stored(ids: Ids, stored: Ids, action: str) -> None:
    """Raise a ``ValueError`` that lists the ids of samples that are not stored."""
    unknown = np.setdiff1d(ids, stored)
    if len(unknown):
        shown = ", ".join(str(i) for i in unknown[:_MOST_SHOWN].tolist())
        more = f" and {len(unknown) - _MOST_SHOWN} more" if len(unknown) > _MOST_SHOWN else ""
        raise InvalidInputError(
            f"{action} got samples that are not stored: {shown}{more}; "
            "ids are in sample_ids_ after each fit and partial_fit"
        )
