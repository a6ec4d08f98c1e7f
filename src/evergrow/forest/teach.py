"""From what a forest knows and new samples to what it knows then.

Functions of values: they take a :class:`FittedForest` and give another, so whoever fails or is
interrupted has changed nothing.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.engine import engine_in_use
from evergrow.forest.by_groups import grow_by_groups
from evergrow.forest.fitted import FittedForest
from evergrow.forest.growth import rows_per_tree
from evergrow.forest.history import EarlySamples, History
from evergrow.forest.recipe import Recipe
from evergrow.forest.report import UpdateReport
from evergrow.forest.reservoir import choose_evicted
from evergrow.forest.standardize import Standardization
from evergrow.labels import ClassList
from evergrow.progress import progress_bar
from evergrow.shards import join_rows
from evergrow.turns import turn_of_file

__all__ = ["Batch", "begin", "core_plan", "extend", "regrow_early"]

# Fewer samples than this do not fix the scale of the features.
_SETTLED = 50

Codes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]

_NONE: Ids = np.zeros(0, dtype=np.int64)


class Batch:
    """New samples: features, columns of their classes, and ids."""

    def __init__(self, X: npt.NDArray[Any], codes: Codes, ids: Ids) -> None:
        self.X, self.codes, self.ids = X, codes, ids

    def after(self, early: EarlySamples) -> Batch:
        """Early samples and these as one batch."""
        return Batch(
            join_rows(early.X, self.X),
            np.concatenate([early.codes, self.codes]),
            np.concatenate([early.ids, self.ids]),
        )


def begin(
    labels: ClassList,
    batch: Batch,
    seed: int,
    recipe: Recipe,
    n_seen: int | None = None,
    *,
    expendable: Ids = _NONE,
) -> tuple[FittedForest, UpdateReport]:
    """Grow a forest from scratch.

    Where only some samples of a class may stay, those of the ids ``expendable`` go first.
    """
    start = time.perf_counter()
    scaling = Standardization.of_each if recipe.standardize else Standardization.common
    standardization = scaling(batch.X)
    n_samples = batch.X.shape[0]
    n_drawn = rows_per_tree(recipe.max_samples, n_samples)
    growth = {
        "n_classes": len(labels),
        "seed": seed,
        "rows_per_tree": n_drawn,
        "bootstrap": recipe.bootstrap,
        "rules": recipe.split_rules(len(labels), batch.X.shape[1]),
    }
    forest = _grown(batch, standardization, growth, recipe)
    early = None
    if n_samples < _SETTLED:
        X = np.array(batch.X[:], dtype=np.float64)
        # A copy of the ids: the caller gets them as sample_ids_ and may change them.
        early = EarlySamples(X, batch.codes, batch.ids.copy())
    history = History(
        seed,
        0,
        n_samples if n_seen is None else n_seen,
        n_drawn / n_samples,
        early=early,
    )
    fitted = FittedForest(labels, standardization, forest, history, recipe.proposer)
    fitted = _let_go(fitted, recipe, expendable) if early is None else fitted
    fitted.forest.samples.claim()
    report = UpdateReport(
        "fit",
        n_samples,
        n_new_classes=len(labels),
        n_added=n_drawn * recipe.n_estimators,
        n_comparisons=sum(fitted.forest.n_comparisons),
        seconds=time.perf_counter() - start,
    )
    return fitted, report


def _grown(
    batch: Batch, standardization: Standardization, growth: dict[str, Any], recipe: Recipe
) -> _core.Forest:
    """The trees, by the engine in use if there is one and it is worth it."""
    engine = engine_in_use()
    # A file of samples is one of this machine, and trees refer to its rows in another way.
    if engine is not None and recipe.memory is None and batch.X.shape[0] >= _SETTLED:
        return grow_by_groups(
            engine, batch.X, batch.codes, batch.ids, standardization, growth, recipe
        )
    path = None if recipe.memory is None else os.path.abspath(recipe.memory)
    samples = _core.Samples(batch.X.shape[1], half=recipe.half_samples, path=path)
    _store(samples, batch, standardization)
    with progress_bar("growing trees", recipe.n_estimators, recipe.verbose) as progress:
        return _core.Forest.grow(
            samples=samples,
            n_trees=recipe.n_estimators,
            n_threads=recipe.n_threads,
            progress=progress,
            **growth,
        )


def extend(
    known: FittedForest,
    labels: ClassList,
    batch: Batch,
    recipe: Recipe,
    *,
    expendable: Ids = _NONE,
) -> tuple[FittedForest, UpdateReport]:
    """Add samples to a forest; ``labels`` are the classes known afterwards."""
    if known.history.early is not None:
        return _begin_again(known, labels, batch, recipe, expendable)
    with turn_of_file(known.forest.samples.path):
        return _update(known, labels, batch, recipe, expendable)


def _begin_again(
    known: FittedForest, labels: ClassList, batch: Batch, recipe: Recipe, expendable: Ids
) -> tuple[FittedForest, UpdateReport]:
    """So few samples that the scale of the features is taken anew, and the forest with it."""
    history, early = known.history, known.history.early
    everything = batch if early is None else batch.after(early)
    n_seen = history.n_seen + len(batch.ids)
    recipe = recipe.for_few(len(everything.ids))
    fitted, report = begin(labels, everything, history.seed, recipe, n_seen, expendable=expendable)
    fitted = replace(fitted, history=replace(fitted.history, n_updates=history.n_updates + 1))
    n_new = len(labels) - len(known.labels)
    return fitted, replace(report, n_samples=len(batch.ids), n_new_classes=n_new)


def regrow_early(fitted: FittedForest, recipe: Recipe) -> FittedForest:
    """A forest of so few samples that it is grown anew from them whenever one changes."""
    history, early = fitted.history, fitted.history.early
    if early is None:
        return fitted
    batch = Batch(early.X, early.codes, early.ids)
    recipe = replace(recipe, n_estimators=len(fitted.forest)).for_few(len(early.ids))
    grown, _ = begin(fitted.labels, batch, history.seed, recipe, history.n_seen)
    return replace(grown, history=replace(grown.history, n_updates=history.n_updates))


def _update(
    known: FittedForest, labels: ClassList, batch: Batch, recipe: Recipe, expendable: Ids
) -> tuple[FittedForest, UpdateReport]:
    start = time.perf_counter()
    known.check_memory()
    samples = known.forest.samples.copy()
    numbers = _store(samples, batch, known.standardization)
    history = replace(
        known.history,
        n_updates=known.history.n_updates + 1,
        n_seen=known.history.n_seen + len(batch.ids),
        refresh_due=known.history.refresh_due + recipe.refresh * len(known.forest),
    )
    plan = core_plan(recipe, history, len(labels), known)
    keep = recipe.keep_per_class if plan["keep_rows"] else None
    evicted = choose_evicted(samples, keep, history.seed, expendable)
    with progress_bar("updating trees", len(known.forest), recipe.verbose) as progress:
        forest, done = known.forest.update(
            samples=samples,
            rows=numbers,
            evicted=evicted,
            plan=plan,
            n_threads=recipe.n_threads,
            progress=progress,
        )
    if not plan["keep_rows"]:
        forest = forest.with_samples(known.forest.samples)
    elif len(evicted):
        forest = forest.with_samples(_without(samples, evicted))
    forest.samples.claim()
    report = UpdateReport(
        recipe.strategy,
        len(numbers),
        n_new_classes=len(labels) - len(known.labels),
        n_refreshed=plan["n_refreshed"],
        seconds=time.perf_counter() - start,
        **done,
    )
    return replace(known, labels=labels, forest=forest, history=history), report


def core_plan(
    recipe: Recipe, history: History, n_classes: int, known: FittedForest
) -> dict[str, Any]:
    """What the core is told about one update."""
    n_trees = len(known.forest)
    # What rounding takes from a sum of shares must not hold a tree back.
    due = (known.history.refresh_due, history.refresh_due)
    first, last = (math.floor(n + 1e-6) for n in due)
    return {
        "n_classes": n_classes,
        "seed": history.seed,
        "update": history.n_updates,
        "strategy": recipe.strategy,
        "share": recipe.share,
        "node_sampling": recipe.node_sampling,
        "row_rate": history.row_rate,
        "bootstrap": recipe.bootstrap,
        "first_refreshed": first % n_trees,
        "n_refreshed": min(last - first, n_trees),
        "n_trees": n_trees,
        "rules": recipe.split_rules(n_classes, known.n_features),
        "keep_rows": known.has_training_rows,
    }


def _store(samples: _core.Samples, batch: Batch, scale: Standardization) -> npt.NDArray[np.int32]:
    numbers = samples.add(len(batch.ids))
    for rows, block in float_blocks(batch.X):
        samples.write(numbers[rows], block, batch.codes[rows], batch.ids[rows], scale.core)
    return numbers


def _without(samples: _core.Samples, rows: npt.NDArray[np.int32]) -> _core.Samples:
    left = samples.copy()
    left.remove(rows)
    return left


def _let_go(fitted: FittedForest, recipe: Recipe, expendable: Ids) -> FittedForest:
    """Take samples beyond ``keep_per_class`` out of a forest that was just grown."""
    samples, history = fitted.forest.samples, fitted.history
    evicted = choose_evicted(samples, recipe.keep_per_class, history.seed, expendable)
    if not len(evicted):
        return fitted
    plan = core_plan(recipe, history, len(fitted.labels), fitted) | {"n_refreshed": 0}
    forest, _ = fitted.forest.update(
        samples=samples,
        rows=np.zeros(0, dtype=np.int32),
        evicted=evicted,
        plan=plan,
        n_threads=recipe.n_threads,
        progress=None,
    )
    return replace(fitted, forest=forest.with_samples(_without(samples, evicted)))
