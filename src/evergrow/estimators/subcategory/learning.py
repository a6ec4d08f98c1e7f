"""From what a model knows and new samples or labels to what it knows then.

Functions of values: whoever fails or is interrupted has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import UpdateReport
from evergrow.estimators.forest.change.addition import add_samples
from evergrow.estimators.forest.change.growth import grow_forest, regrow_early
from evergrow.estimators.forest.change.relabeling import relabel, settle
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.batch import ForestBatch
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.filling import Guess, NewSamples, fill_missing
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.guess_report import GuessReport
from evergrow.estimators.subcategory.hierarchy import UNKNOWN, CodedLabels, LabelTree
from evergrow.estimators.subcategory.methods import METHODS, Method
from evergrow.estimators.subcategory.stacking import Stack
from evergrow.estimators.subcategory.unconfirmed import StoredSamples, Unconfirmed
from evergrow.foundation.turns import turn_of_file
from evergrow.storage.shards import choose_rows, join_rows

__all__ = ["Lesson", "Plan", "learn_first", "learn_more", "refine", "reguess"]

# No node has so large a share of a class: leaves are relabelled and grow, nothing is cut.
_RELABEL_ONLY = 2.0

Classes = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """How to learn, fixed for one call; ``recipe`` gives that of the forest for a tree."""

    name: str
    recipe: Callable[[LabelTree], ForestRequest]
    guess: Guess | None
    refine_share: float
    stack_scale: float

    @property
    def method(self) -> Method:
        """The way of learning."""
        return METHODS[self.name]


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is known now, and what was done."""

    fitted: FittedSubcategories
    report: UpdateReport
    guesses: GuessReport | None


def learn_first(
    X: npt.NDArray[Any], tree: LabelTree, labels: CodedLabels, seed: int, plan: Plan, *, few: bool
) -> Lesson:
    """Grow a forest from scratch; ``few`` where more samples may come before it is settled."""
    (fine,), guesses = _filled([NewSamples(X, labels)], [labels.fine == UNKNOWN], tree, plan, X)
    classes = CodedLabels(labels.coarse, fine).finest
    used = _used(classes, tree, plan)
    stack = _stack(X, tree, labels, seed, plan) if plan.method.is_stacked else None
    ids = np.arange(X.shape[0], dtype=np.int64)
    recipe = plan.recipe(tree)
    if stack is not None:
        # Standardised already; see Stack.
        recipe = replace(recipe, standardize=False)
    if few:
        recipe = recipe.limited_to(int(used.sum()))
    rows = _part(X, used) if stack is None else stack.rows(_part(X, used), recipe.n_threads)
    batch = ForestBatch(rows, classes[used], ids[used])
    open_ = used & (labels.fine == UNKNOWN)
    forest, report = grow_forest(
        tree.core_labels, batch, seed, recipe, n_seen=len(ids), expendable=ids[open_]
    )
    unconfirmed = Unconfirmed.of(ids[open_], labels.coarse[open_]).kept(forest.stored_ids)
    fitted = FittedSubcategories(tree, forest, plan.name, unconfirmed, stack)
    report = replace(report, n_samples=len(ids), n_new_classes=len(tree.columns))
    return Lesson(fitted, report, guesses)


def learn_more(
    known: FittedSubcategories,
    X: npt.NDArray[Any],
    tree: LabelTree,
    labels: CodedLabels,
    plan: Plan,
) -> Lesson:
    """Add samples; where some have fine labels, those without are guessed again by them."""
    with turn_of_file(known.forest.forest.samples.path):
        return _learn_more(known, X, tree, labels, plan)


def _learn_more(
    known: FittedSubcategories,
    X: npt.NDArray[Any],
    tree: LabelTree,
    labels: CodedLabels,
    plan: Plan,
) -> Lesson:
    taught = np.unique(labels.coarse[labels.fine != UNKNOWN])
    stored = StoredSamples.of(known.forest, known.unconfirmed, tree)
    asked = ~stored.is_confirmed & np.isin(stored.coarse, taught)
    groups, missing = [stored, NewSamples(X, labels)], labels.fine == UNKNOWN
    (old, new), guesses = _filled(groups, [asked, missing], tree, plan, X, known.forest)
    forest, reports = known.forest, []
    for share, classes in _shares(taught, known.tree, tree, plan.refine_share):
        mine = asked & np.isin(stored.coarse, classes)
        forest, report = _relabelled(forest, stored, old, mine, tree, plan, share)
        reports.append(report)
    ids = forest.history.n_seen + np.arange(X.shape[0], dtype=np.int64)
    finest = CodedLabels(labels.coarse, new).finest
    used = _used(finest, tree, plan)
    open_ = used & missing
    unconfirmed = known.unconfirmed.also(ids[open_], labels.coarse[open_])
    batch = ForestBatch(_part(X, used), finest[used], ids[used])
    forest, report = _extended(forest, batch, tree, plan, unconfirmed.ids)
    history = replace(forest.history, n_seen=int(ids[-1]) + 1)
    forest = replace(forest, history=history)
    fitted = FittedSubcategories(tree, forest, plan.name, unconfirmed.kept(forest.stored_ids))
    for earlier in reports:
        report = report.after(earlier)
    n_new = len(tree.columns) - len(known.tree.columns)
    report = replace(report, n_samples=len(ids), n_new_classes=n_new)
    return Lesson(fitted, report, guesses)


def refine(
    known: FittedSubcategories, ids: Ids, tree: LabelTree, fine: Classes, plan: Plan
) -> Lesson:
    """Give stored samples fine labels, and guess anew for others of their coarse classes."""
    with turn_of_file(known.forest.forest.samples.path):
        return _refine(known, ids, tree, fine, plan)


def _refine(
    known: FittedSubcategories, ids: Ids, tree: LabelTree, fine: Classes, plan: Plan
) -> Lesson:
    unconfirmed = known.unconfirmed.without(ids)
    stored = StoredSamples.of(known.forest, unconfirmed, tree).relabelled(ids, fine)
    taught = np.unique(tree.parents[fine])
    asked = ~stored.is_confirmed & np.isin(stored.coarse, taught)
    nothing = np.zeros((0, known.n_features))
    (found,), guesses = _filled([stored], [asked], tree, plan, nothing, known.forest)
    mine = asked | np.isin(stored.ids, ids)
    forest, report = _relabelled(known.forest, stored, found, mine, tree, plan, plan.refine_share)
    forest = settle(forest, plan.recipe(tree))
    fitted = FittedSubcategories(tree, forest, plan.name, unconfirmed)
    n_new = len(tree.columns) - len(known.tree.columns)
    report = replace(report, n_samples=len(ids), n_new_classes=n_new)
    return Lesson(fitted, report, guesses)


def reguess(
    known: FittedSubcategories, gone: list[int], plan: Plan
) -> tuple[FittedForest, GuessReport | None]:
    """The forest in which no sample is only guessed to be of some classes.

    Those of other coarse classes than these are guessed again, as if these classes were not there.
    """
    tree = known.tree
    stored = StoredSamples.of(known.forest, known.unconfirmed, tree)
    asked = ~stored.is_confirmed & np.isin(stored.classes, gone) & ~np.isin(stored.coarse, gone)
    nothing = np.zeros((0, known.n_features))
    group = stored.without_fine(gone)
    (fine,), guesses = _filled([group], [asked], tree, plan, nothing, known.forest)
    forest, _ = _relabelled(known.forest, stored, fine, asked, tree, plan, _RELABEL_ONLY)
    return regrow_early(forest, plan.recipe(tree)), guesses


def _filled(
    groups: list[Any],
    asked: list[Mask],
    tree: LabelTree,
    plan: Plan,
    X: npt.NDArray[Any],
    forest: FittedForest | None = None,
) -> tuple[list[Classes], GuessReport | None]:
    """Fine classes of groups of samples, those asked for guessed if the method guesses."""
    if plan.guess is None:
        return [group.fine for group in groups], None
    scale = np.ones(X.shape[1])
    if plan.recipe(tree).standardize:
        scale = _settled_scale(forest, X)
    return fill_missing(groups, asked, tree, plan.guess, scale)


def _settled_scale(forest: FittedForest | None, X: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The scale of the features that the forest has, or will have with these samples."""
    if forest is None:
        return Standardization.of_each(X).scale
    early = forest.history.early
    if not len(early):
        return forest.standardization.scale
    return Standardization.of_each(join_rows(early.X, X)).scale


def _used(classes: Classes, tree: LabelTree, plan: Plan) -> Mask:
    """Which samples are trained on."""
    if plan.method.keeps_coarse_only:
        return np.ones(len(classes), dtype=bool)
    used: Mask = tree.is_finest[classes]
    return used


def _part(X: npt.NDArray[Any], used: Mask) -> npt.NDArray[Any]:
    return X if used.all() else choose_rows(X, used)


def _stack(
    X: npt.NDArray[Any], tree: LabelTree, labels: CodedLabels, seed: int, plan: Plan
) -> Stack:
    """A forest of coarse classes, of the samples that have no fine label or of all if all have."""
    bare = labels.fine == UNKNOWN
    chosen = bare if bare.any() else ~bare
    flat = tree.coarse_level()
    codes = np.searchsorted(tree.coarse_ids, labels.coarse[chosen]).astype(np.int32)
    # The file is the second forest's.
    recipe = replace(plan.recipe(flat), memory=None)
    ids = np.flatnonzero(chosen).astype(np.int64)
    batch = ForestBatch(_part(X, chosen), codes, ids)
    first, _ = grow_forest(flat.core_labels, batch, seed, recipe.limited_to(len(ids)), X.shape[0])
    scaling = Standardization.of_each if recipe.standardize else _unchanged
    return Stack(first, scaling(X), plan.stack_scale)


def _unchanged(X: npt.NDArray[Any]) -> Standardization:
    return Standardization.identity(X.shape[1])


def _shares(
    taught: Classes, before: LabelTree, after: LabelTree, share: float
) -> list[tuple[float, Classes]]:
    """Which share of a subtree must belong to some coarse classes for it to grow again.

    Where a coarse class got fine classes that it did not have nothing tells them apart yet; where
    it got more samples of those it had the trees can stay.
    """
    divided = np.unique(after.parents[len(before) :][~after.is_coarse[len(before) :]])
    is_new = np.isin(taught, divided)
    both = ((share, taught[is_new]), (_RELABEL_ONLY, taught[~is_new]))
    return [(each, classes) for each, classes in both if len(classes)]


def _relabelled(
    forest: FittedForest,
    stored: StoredSamples,
    fine: Classes,
    mine: Mask,
    tree: LabelTree,
    plan: Plan,
    share: float,
) -> tuple[FittedForest, UpdateReport]:
    """Give stored samples the fine class found for them, or their coarse one if none was."""
    rows = stored.rows[mine]
    classes = CodedLabels(stored.coarse[mine], fine[mine]).finest
    changed = forest.forest.samples.classes[rows] != classes
    if not changed.any():
        return forest, UpdateReport("refine", 0)
    recipe = plan.recipe(tree)
    return relabel(forest, tree.core_labels, rows[changed], classes[changed], recipe, share=share)


def _extended(
    forest: FittedForest, batch: ForestBatch, tree: LabelTree, plan: Plan, expendable: Ids
) -> tuple[FittedForest, UpdateReport]:
    recipe = plan.recipe(tree)
    if not len(batch.ids):
        return forest, UpdateReport(recipe.strategy.name, 0)
    return add_samples(forest, tree.core_labels, batch, recipe, expendable=expendable)
