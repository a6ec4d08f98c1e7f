"""Samples of a forest that get other classes, finer ones mostly."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow.forest.fitted import FittedForest
from evergrow.forest.history import EarlySamples
from evergrow.forest.recipe import Recipe
from evergrow.forest.report import UpdateReport
from evergrow.forest.teach import Batch, begin, core_plan
from evergrow.labels import ClassList
from evergrow.progress import progress_bar
from evergrow.turns import turn_of_file

__all__ = ["relabel", "stored_places"]

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]


def stored_places(known: FittedForest, ids: Ids) -> npt.NDArray[np.int32]:
    """Rows that hold the samples of these ids; a ``ValueError`` that names those that are none."""
    samples = known.forest.samples
    rows = np.flatnonzero(samples.classes >= 0).astype(np.int32)
    stored = samples.ids[rows]
    order = np.argsort(stored)
    places = np.searchsorted(stored, ids, sorter=order)
    found = order[np.minimum(places, len(order) - 1)] if len(order) else np.zeros(0, np.intp)
    unknown = ids if not len(order) else ids[stored[found] != ids]
    if len(unknown):
        shown = ", ".join(str(i) for i in unknown[:5].tolist())
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise ValueError(
            f"unknown sample ids: {shown}{more}; ids are in sample_ids_ after each fit and "
            "partial_fit, and stored_ids_ holds all that are kept"
        )
    return rows[found]


def relabel(
    known: FittedForest, labels: ClassList, ids: Ids, codes: Codes, recipe: Recipe, share: float
) -> tuple[FittedForest, UpdateReport]:
    """Give distinct stored samples other classes; ``labels`` are the classes known afterwards.

    The topmost nodes of whose samples at least ``share`` belong to the coarse classes of these
    samples are grown again, and leaves that changed are offered to the grower.
    """
    with turn_of_file(known.forest.samples.path):
        return _relabel(known, labels, ids, codes, recipe, share)


def _relabel(
    known: FittedForest, labels: ClassList, ids: Ids, codes: Codes, recipe: Recipe, share: float
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    known.check_memory()
    rows = stored_places(known, ids)
    before = known.forest.samples.classes[rows]
    counts = np.zeros(len(labels), dtype=np.int64)
    counts[: len(known.labels)] = known.history.class_counts
    counts += np.bincount(codes, minlength=len(labels))
    counts -= np.bincount(before, minlength=len(labels))
    history = replace(known.history, n_updates=known.history.n_updates + 1, class_counts=counts)
    n_new = len(labels) - len(known.labels)
    if history.early is not None:
        fitted, report = _begin_again(known, history.early, labels, ids, codes, recipe)
        return fitted, replace(report, n_samples=len(ids), n_new_classes=n_new)
    samples = known.forest.samples.copy()
    samples.set_classes(rows, codes)
    plan = core_plan(recipe, history, len(labels), known) | {"n_refreshed": 0}
    with progress_bar("refining trees", len(known.forest), recipe.verbose) as progress:
        forest, done = known.forest.refine(
            samples=samples,
            rows=rows,
            share=share,
            plan=plan,
            n_threads=recipe.n_threads,
            progress=progress,
        )
    forest.samples.claim()
    report = UpdateReport(
        "refine",
        len(ids),
        n_new_classes=n_new,
        seconds=time.perf_counter() - start,
        **done,
    )
    return replace(known, labels=labels, forest=forest, history=history), report


def _begin_again(
    known: FittedForest,
    early: EarlySamples,
    labels: ClassList,
    ids: Ids,
    codes: Codes,
    recipe: Recipe,
) -> tuple[FittedForest, UpdateReport]:
    """So few samples that the forest is still grown anew with each change."""
    history = known.history
    place = {int(sample): k for k, sample in enumerate(early.ids.tolist())}
    changed = early.codes.copy()
    for sample, code in zip(ids.tolist(), codes.tolist(), strict=True):
        changed[place[sample]] = code
    batch = Batch(early.X, changed, early.ids)
    fitted, report = begin(
        labels, batch, history.seed, recipe.for_few(len(early.ids)), history.n_seen
    )
    fitted = replace(fitted, history=replace(fitted.history, n_updates=history.n_updates + 1))
    return fitted, replace(report, strategy="refine")
