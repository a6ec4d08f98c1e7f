"""From one fitted value to the next: train, add samples, refine labels, forget.

The functions change no value in place, so a call that fails or is interrupted changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import UpdateReport
from evergrow.estimators.forest.change import removal
from evergrow.estimators.forest.change.addition import add_samples
from evergrow.estimators.forest.change.feature_scale import measure_features
from evergrow.estimators.forest.change.growth import grow_forest, regrow_early
from evergrow.estimators.forest.change.relabeling import relabel
from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.fitted import FittedSubcategories, Stack
from evergrow.estimators.subcategory.guess import GuessReport
from evergrow.estimators.subcategory.label_tree import Classes, LabelTree, Mask
from evergrow.estimators.subcategory.methods import Stacked, SubcategoryRequest
from evergrow.estimators.subcategory.samples import (
    NewSamples,
    StoredSamples,
    UnconfirmedSamples,
    fill_missing,
)
from evergrow.estimators.subcategory.stacking import (
    extend_stack,
    forget_from_stack,
    grow_stack,
    second_request,
)
from evergrow.storage.shards import join_rows

# No node has so large a share of a class: leaves are relabelled and may grow, but no subtree is
# grown again.
_RELABEL_ONLY = 2.0
# Subtrees are grown again in which at least this share of the samples is of one refined class.
REGROW_SHARE = 0.33

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UpdateResult:
    """The next fitted value, and reports of what was done."""

    fitted: FittedSubcategories
    report: UpdateReport
    guesses: GuessReport | None


def learn_first(
    new: NewSamples,
    tree: LabelTree,
    seed: int,
    request: SubcategoryRequest,
    *,
    few: bool,
) -> UpdateResult:
    """Grow a forest from scratch; ``few`` allows fewer samples than ``max_samples``."""
    missing = tree.is_bare[new.known]
    (classes,), guesses = _guess_missing([new], [missing], tree, request, new.X)
    used = _samples_to_train(classes, tree, request)
    ids = np.arange(len(new), dtype=np.int64)
    batch, stack, forest_request = new.batch(used, classes, ids), None, request.forest_request(tree)
    if isinstance(request.method, Stacked):
        stack = grow_stack(new, tree, seed, request, request.method.scale)
        forest_request = second_request(request, tree)
        batch = replace(batch, X=stack.rows(batch.X, forest_request.n_threads))
    if few:
        forest_request = forest_request.limited_to(int(used.sum()))
    bare = used & missing
    forest, report = grow_forest(
        tree.core_labels, batch, seed, forest_request, n_seen=len(ids), expendable=ids[bare]
    )
    unconfirmed = UnconfirmedSamples.of(ids[bare], new.known[bare]).among(forest.stored_ids)
    fitted = FittedSubcategories(tree, forest, request.method._name, unconfirmed, stack)
    report = replace(report, n_samples=len(ids), n_new_classes=len(tree.columns))
    return UpdateResult(fitted, report, guesses)


def learn_more(
    known: FittedSubcategories,
    new: NewSamples,
    tree: LabelTree,
    request: SubcategoryRequest,
) -> UpdateResult:
    """Add samples; new fine labels also update the guesses within their coarse classes."""
    if known.stack is not None:
        return _learn_more_stacked(known.stack, known, new, tree, request)
    missing = tree.is_bare[new.known]
    labelled = tree.strictly_above(new.known)
    stored = StoredSamples.of(known.forest, known.unconfirmed, tree)
    wanted = ~stored.is_confirmed & np.isin(stored.known, labelled)
    (old, finest), guesses = _guess_missing(
        [stored, new], [wanted, missing], tree, request, new.X, known.forest
    )
    forest, reports = known.forest, []
    for share, classes in _regrow_shares(labelled, known.tree, tree):
        changed = wanted & np.isin(stored.known, classes)
        forest, report = _relabel(forest, stored, old, changed, tree, request, share)
        reports.append(report)
    ids = forest.history.n_seen + np.arange(len(new), dtype=np.int64)
    used = _samples_to_train(finest, tree, request)
    bare = used & missing
    unconfirmed = stored.unconfirmed.with_samples(ids[bare], new.known[bare])
    forest, report = _extend(forest, new.batch(used, finest, ids), tree, request, unconfirmed.ids)
    forest = replace(forest, history=replace(forest.history, n_seen=int(ids[-1]) + 1))
    left = unconfirmed.among(forest.stored_ids)
    for earlier in reports:
        report = report.after(earlier)
    return _result(known, tree, forest, left, request, report, len(ids), guesses)


def _learn_more_stacked(
    stack: Stack,
    known: FittedSubcategories,
    new: NewSamples,
    tree: LabelTree,
    request: SubcategoryRequest,
) -> UpdateResult:
    used = _samples_to_train(new.known, tree, request)
    bare = used & tree.is_bare[new.known]
    ids = known.forest.history.n_seen + np.arange(len(new), dtype=np.int64)
    unconfirmed = known.unconfirmed.with_samples(ids[bare], new.known[bare])
    stack, forest, report = extend_stack(
        stack, known, new, used, new.known, tree, request, unconfirmed.ids
    )
    forest = replace(forest, history=replace(forest.history, n_seen=int(ids[-1]) + 1))
    left = unconfirmed.among(forest.stored_ids)
    return _result(known, tree, forest, left, request, report, len(ids), None, stack)


def refine(
    known: FittedSubcategories,
    ids: Ids,
    tree: LabelTree,
    fine: Classes,
    request: SubcategoryRequest,
    share: float,
) -> UpdateResult:
    """Give stored samples finer labels, and guess again for others of the classes above them."""
    stored = StoredSamples.of(known.forest, known.unconfirmed, tree).relabelled(ids, fine)
    unconfirmed = stored.unconfirmed
    above = tree.strictly_above(fine)
    # With those that were given a class that has finer ones itself.
    wanted = np.isin(stored.known, above) | np.isin(stored.ids, ids)
    wanted &= ~stored.is_confirmed
    nothing = np.zeros((0, known.n_features))
    (found,), guesses = _guess_missing([stored], [wanted], tree, request, nothing, known.forest)
    changed = wanted | np.isin(stored.ids, ids)
    forest, report = _relabel(known.forest, stored, found, changed, tree, request, share)
    forest = regrow_early(forest, request.forest_request(tree))
    return _result(known, tree, forest, unconfirmed, request, report, len(ids), guesses)


def forget(
    known: FittedSubcategories, gone: list[int], ids: Ids, request: SubcategoryRequest
) -> UpdateResult:
    """Remove classes, by their numbers, and single samples, by their ids."""
    tree, place = known.tree.without(gone)
    if known.stack is not None:
        stack, forest, report = forget_from_stack(
            known.stack, known, gone, ids, tree, place, request
        )
        unconfirmed = _renumbered(known.unconfirmed.among(forest.stored_ids), place)
        fitted = FittedSubcategories(tree, forest, request.method._name, unconfirmed, stack)
        return UpdateResult(fitted, report, None)
    forest, guesses = _replace_guesses(known, gone, request)
    # Rules for the classes before and after.
    forest_request = request.forest_request(known.tree, tree)
    forest, report = removal.forget(forest, gone, ids, forest_request)
    forest = replace(forest, labels=tree.core_labels)
    unconfirmed = _renumbered(known.unconfirmed.among(forest.stored_ids), place)
    # A class without finer ones left needs no guesses.
    unconfirmed = unconfirmed.among(unconfirmed.ids[tree.is_bare[unconfirmed.coarse]])
    fitted = FittedSubcategories(tree, forest, request.method._name, unconfirmed)
    return UpdateResult(fitted, report, guesses)


def _result(
    known: FittedSubcategories,
    tree: LabelTree,
    forest: FittedForest,
    unconfirmed: UnconfirmedSamples,
    request: SubcategoryRequest,
    report: UpdateReport,
    n_samples: int,
    guesses: GuessReport | None,
    stack: Stack | None = None,
) -> UpdateResult:
    n_new = len(tree.columns) - len(known.tree.columns)
    report = replace(report, n_samples=n_samples, n_new_classes=n_new)
    fitted = FittedSubcategories(tree, forest, request.method._name, unconfirmed, stack)
    return UpdateResult(fitted, report, guesses)


def _renumbered(unconfirmed: UnconfirmedSamples, place: list[int]) -> UnconfirmedSamples:
    """The same samples after classes got new numbers."""
    coarse = np.array(place, dtype=np.int32)[unconfirmed.coarse]
    return UnconfirmedSamples(unconfirmed.ids, coarse)


def _replace_guesses(
    known: FittedSubcategories, gone: list[int], request: SubcategoryRequest
) -> tuple[FittedForest, GuessReport | None]:
    """The forest after guessing again for samples guessed to be of classes that go.

    The new guesses are made as if these classes did not exist. Samples whose coarse class goes are
    not guessed again.
    """
    tree = known.tree
    stored = StoredSamples.of(known.forest, known.unconfirmed, tree)
    wanted = ~stored.is_confirmed & np.isin(stored.classes, gone) & ~np.isin(stored.known, gone)
    nothing = np.zeros((0, known.n_features))
    group = stored.without_classes(gone)
    (found,), guesses = _guess_missing([group], [wanted], tree, request, nothing, known.forest)
    forest, _ = _relabel(known.forest, stored, found, wanted, tree, request, _RELABEL_ONLY)
    return regrow_early(forest, request.forest_request(tree)), guesses


def _guess_missing(
    groups: list[Any],
    wanted: list[Mask],
    tree: LabelTree,
    request: SubcategoryRequest,
    X: npt.NDArray[Any],
    forest: FittedForest | None = None,
) -> tuple[list[Classes], GuessReport | None]:
    """Classes of groups of samples, guessed where wanted if the method guesses."""
    if request.guess is None:
        return [group.known for group in groups], None
    scale = _feature_scale(forest, X, tree.tops[groups[-1].known], request)
    return fill_missing(groups, wanted, tree, request.guess, scale)


def _feature_scale(
    forest: FittedForest | None,
    X: npt.NDArray[Any],
    coarse: Classes,
    request: SubcategoryRequest,
) -> npt.NDArray[np.float64]:
    """The scale of the features that the forest has, or will have with these samples."""
    if request.forest.standardize == "none":
        return np.ones(X.shape[1])
    if forest is None:
        batch = ForestBatch(X, coarse.astype(np.int32), np.arange(len(coarse)))
        return measure_features(batch, int(coarse.max()) + 1, request.forest).scale
    early = forest.history.early
    if not len(early):
        return forest.standardization.scale
    return Standardization.of_each(join_rows(early.X, X)).scale


def _samples_to_train(classes: Classes, tree: LabelTree, request: SubcategoryRequest) -> Mask:
    """Which samples the method trains on."""
    if request.method._keeps_coarse_only:
        return np.ones(len(classes), dtype=bool)
    return np.asarray(tree.is_finest[classes])


def _regrow_shares(
    labelled: Classes, before: LabelTree, after: LabelTree
) -> list[tuple[float, Classes]]:
    """Pairs of (share, classes): subtrees with this share of these classes grow again.

    If a class got new finer classes, no split separates them yet. If it only got more samples of
    known ones, the trees can stay.
    """
    divided = after.strictly_above(np.arange(len(before), len(after), dtype=np.int32))
    is_new = np.isin(labelled, divided)
    both = ((REGROW_SHARE, labelled[is_new]), (_RELABEL_ONLY, labelled[~is_new]))
    return [(each, classes) for each, classes in both if len(classes)]


def _relabel(
    forest: FittedForest,
    stored: StoredSamples,
    found: Classes,
    chosen: Mask,
    tree: LabelTree,
    request: SubcategoryRequest,
    share: float,
) -> tuple[FittedForest, UpdateReport]:
    """Give chosen stored samples the classes that were found."""
    rows, classes = stored.rows[chosen], found[chosen]
    changed = forest.forest.samples.classes[rows] != classes
    if not changed.any():
        return forest, UpdateReport("refine", 0)
    forest_request = request.forest_request(tree)
    rows, classes = rows[changed], classes[changed]
    return relabel(forest, tree.core_labels, rows, classes, forest_request, share=share)


def _extend(
    forest: FittedForest,
    batch: ForestBatch,
    tree: LabelTree,
    request: SubcategoryRequest,
    expendable: Ids,
) -> tuple[FittedForest, UpdateReport]:
    if not len(batch.ids):
        return forest, UpdateReport(request.forest.strategy._name, 0)
    forest_request = request.forest_request(tree)
    return add_samples(forest, tree.core_labels, batch, forest_request, expendable=expendable)
