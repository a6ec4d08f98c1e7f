"""Two stacked forests [Ristin2015 Sec. 4.1]: grow, update and forget.

The first forest learns coarse classes from the samples without a fine label. Its probabilities are
appended to the features of the second forest, which learns from the other samples.

The paper grows both once. Here both are updated: the first takes new samples without a fine label,
the second all others, each by the strategy of the request. Rows that the second forest stores keep
the probabilities that the first one gave when they came, so its trees stay valid.

The second forest is grown again from its samples, with the probabilities that the first one gives
now, when a coarse class is new or removed, which makes a feature more or less, and when the first
forest has learnt from half as many samples again since the second was grown: its probabilities are
other ones then. In a stream of samples this happens ever more rarely.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest import UpdateReport
from evergrow.estimators.forest.change import removal
from evergrow.estimators.forest.change.addition import add_samples
from evergrow.estimators.forest.change.growth import (
    NO_IDS,
    check_growable,
    grow_forest,
    stored_batch,
)
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.forest.value.weights import later_weights
from evergrow.estimators.subcategory.fitted import FittedSubcategories, Stack
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import SubcategoryRequest
from evergrow.estimators.subcategory.samples import NewSamples
from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.shards import join_rows

Ids = npt.NDArray[np.int64]

# The second forest is grown again when the first has learnt from so many times more samples.
_REGROW_FACTOR = 1.5


def first_request(request: SubcategoryRequest, *trees: LabelTree) -> ForestRequest:
    """The parameters of the first forest, for the coarse classes of each of these trees."""
    return request.forest_request(*(tree.coarse_level() for tree in trees))


def second_request(request: SubcategoryRequest, *trees: LabelTree) -> ForestRequest:
    """The parameters of the second forest, for the classes of each of these trees."""
    # The features are standardised already; see Stack.
    return replace(request.forest_request(*trees), standardize="none")


def grow_stack(
    new: NewSamples, tree: LabelTree, seed: int, request: SubcategoryRequest, scale: float
) -> Stack:
    """Grow the first forest, from the samples without a fine label or, without any, from all."""
    bare = tree.is_coarse[new.known]
    learns_all = not bare.any()
    chosen = ~bare if learns_all else bare
    forest_request = first_request(request, tree)
    batch = new.batch(chosen, _coarse_codes(new, tree), np.arange(len(new), dtype=np.int64))
    limited = forest_request.limited_to(len(batch))
    labels = tree.coarse_level().core_labels
    first, _ = grow_forest(labels, batch, seed, limited, len(new))
    features = _feature_scale(first, new.X, forest_request)
    n = len(batch)
    return Stack(first, features, scale, learns_all, n_learnt=n, n_grown=n)


def check_stack(known: FittedSubcategories, tree: LabelTree, request: SubcategoryRequest) -> None:
    """Raise a ``ValueError`` if the first of two stacked forests cannot be updated."""
    if known.stack is None:
        return
    if len(tree.coarse_ids) != len(known.tree.coarse_ids) and not known.forest.has_training_rows:
        raise InvalidInputError(
            "the model was saved with inference_only=True: without training samples, stacked "
            "forests cannot learn a new coarse class"
        )
    check_growable(known.stack.first, first_request(request, tree))


def extend_stack(
    stack: Stack,
    known: FittedSubcategories,
    new: NewSamples,
    used: npt.NDArray[np.bool_],
    codes: npt.NDArray[np.int32],
    tree: LabelTree,
    request: SubcategoryRequest,
    expendable: Ids,
) -> tuple[Stack, FittedForest, UpdateReport]:
    """Both forests with new samples; ``codes`` are their classes in the second forest.

    ``used`` are the samples that the second forest learns from.
    """
    n_seen = known.forest.history.n_seen + len(new)
    ids = np.arange(n_seen - len(new), n_seen, dtype=np.int64)
    later, earlier = _extend_first(stack, new, ids, tree, request)
    forest_request = second_request(request, tree)
    batch = new.batch(used, codes, ids)
    if len(known.forest.history.early):
        everything = join_rows(_plain_rows(stack, known.forest), new.X)
        features = _feature_scale(later.first, everything, first_request(request, tree))
        later = replace(later, features=features)
    elif len(tree.coarse_ids) == len(known.tree.coarse_ids) and not _is_outdated(
        later, known.forest
    ):
        forest, report = known.forest, UpdateReport(request.forest.strategy._name, 0)
        if len(batch):
            batch = replace(batch, X=later.rows(batch.X, forest_request.n_threads))
            forest, report = add_samples(
                forest, tree.core_labels, batch, forest_request, expendable=expendable
            )
        return later, forest, _after(report, earlier)
    later = replace(later, n_grown=later.n_learnt)
    weights = later_weights(batch.weights, known.forest.history.weight_unit)
    batch = _second_samples(stack, known.forest).with_batch(replace(batch, weights=weights))
    forest, report = _regrow_second(
        known.forest, later, batch, tree, forest_request, n_seen, expendable
    )
    return later, forest, _after(report, earlier)


def forget_from_stack(
    stack: Stack,
    known: FittedSubcategories,
    gone: list[int],
    ids: Ids,
    tree: LabelTree,
    place: list[int],
    request: SubcategoryRequest,
) -> tuple[Stack, FittedForest, UpdateReport]:
    """Both forests without some classes and samples.

    ``tree`` has the classes that are left, and ``place`` the new number of each old class.
    """
    first, earlier = stack.first, None
    removal.check_stored(ids, known.stored_ids, "forget")
    coarse_gone = np.flatnonzero(np.isin(known.tree.coarse_ids, gone)).tolist()
    own = ids[np.isin(ids, first.stored_ids)]
    if coarse_gone or len(own):
        own_request = first_request(request, known.tree, tree)
        first, earlier = removal.forget(first, coarse_gone, own, own_request)
    later = replace(stack, first=replace(first, labels=tree.coarse_level().core_labels))
    own = ids[np.isin(ids, known.forest.stored_ids)]
    if coarse_gone:
        batch = _second_samples(stack, known.forest)
        left = ~(np.isin(batch.ids, own) | np.isin(batch.codes, gone))
        if not left.any():
            raise InvalidInputError("forget would leave no samples: train a new forest instead")
        codes = np.array(place, dtype=np.int32)[batch.codes[left]]
        weights = None if batch.weights is None else batch.weights[left]
        batch = ForestBatch(batch.X[left], codes, batch.ids[left], weights)
        later = replace(later, n_grown=later.n_learnt)
        forest, report = _regrow_second(
            known.forest, later, batch, tree, second_request(request, tree)
        )
        report = replace(report, strategy="forget", n_samples=int((~left).sum()))
    elif gone or len(own):
        forest_request = second_request(request, known.tree, tree)
        forest, report = removal.forget(known.forest, gone, own, forest_request)
    else:
        forest, report = known.forest, UpdateReport("forget", 0)
    return later, replace(forest, labels=tree.core_labels), _after(report, earlier)


def _extend_first(
    stack: Stack, new: NewSamples, ids: Ids, tree: LabelTree, request: SubcategoryRequest
) -> tuple[Stack, UpdateReport | None]:
    """The first forest with the new samples that it learns from."""
    bare = tree.is_coarse[new.known]
    learns_all = stack.learns_all and not bare.any()
    chosen = np.ones(len(new), dtype=bool) if learns_all else bare
    labels, first, report = tree.coarse_level().core_labels, stack.first, None
    if chosen.any():
        batch = new.batch(chosen, _coarse_codes(new, tree), ids)
        first, report = add_samples(first, labels, batch, first_request(request, tree))
    history = replace(first.history, n_seen=int(ids[-1]) + 1)
    first = replace(first, labels=labels, history=history)
    n_learnt = stack.n_learnt + int(chosen.sum())
    return replace(stack, first=first, learns_all=learns_all, n_learnt=n_learnt), report


def _is_outdated(stack: Stack, second: FittedForest) -> bool:
    """Whether the second forest should be grown again for new probabilities of the first."""
    # A first forest with early samples is itself grown again by each update.
    is_early = len(stack.first.history.early) > 0 and stack.n_learnt > stack.n_grown
    return second.has_training_rows and (
        is_early or stack.n_learnt >= _REGROW_FACTOR * stack.n_grown
    )


def _regrow_second(
    known: FittedForest,
    stack: Stack,
    batch: ForestBatch,
    tree: LabelTree,
    forest_request: ForestRequest,
    n_seen: int | None = None,
    expendable: Ids = NO_IDS,
) -> tuple[FittedForest, UpdateReport]:
    """Grow the second forest again from samples with plain features."""
    history = known.history
    batch = replace(batch, X=stack.rows(batch.X, forest_request.n_threads))
    forest, report = grow_forest(
        tree.core_labels,
        batch,
        history.seed,
        replace(forest_request, n_estimators=len(known.forest)).limited_to(len(batch)),
        history.n_seen if n_seen is None else n_seen,
        expendable=expendable,
        weight_unit=history.weight_unit,
    )
    grown = replace(forest.history, n_updates=history.n_updates + 1)
    return replace(forest, history=grown), replace(report, n_refreshed=len(forest.forest))


def _second_samples(stack: Stack, second: FittedForest) -> ForestBatch:
    """The samples of the second forest, without the probabilities of the first."""
    stored = stored_batch(second)
    X = stack.plain_features(stored.X)
    return ForestBatch(X, stored.codes, stored.ids, stored.weights)


def _plain_rows(stack: Stack, second: FittedForest) -> npt.NDArray[np.float64]:
    """The features of all samples that either forest stores."""
    own, others = _second_samples(stack, second), stored_batch(stack.first)
    return np.concatenate([own.X, others.X[~np.isin(others.ids, own.ids)]])


def _feature_scale(
    first: FittedForest, X: npt.NDArray[Any], forest_request: ForestRequest
) -> Standardization:
    """The transform of the features for the second forest: that of each feature, or none."""
    as_given = forest_request.standardize == "none" or (
        forest_request.standardize == "auto" and first.standardization.kind == "none"
    )
    return Standardization.identity(X.shape[1]) if as_given else Standardization.of_each(X)


def _coarse_codes(new: NewSamples, tree: LabelTree) -> npt.NDArray[np.int32]:
    return np.searchsorted(tree.coarse_ids, tree.tops[new.known]).astype(np.int32)


def _after(report: UpdateReport, earlier: UpdateReport | None) -> UpdateReport:
    return report if earlier is None else report.after(earlier)
