"""From what least squares knows and more examples, or fewer, to what it knows then.

Functions of values: whoever fails or is interrupted has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evergrow.estimators.linear.feature_map import FeatureMapping
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.ridge import Ridge
from evergrow.estimators.linear.selection import Wish
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples import add_picking, mapped_batches
from evergrow.estimators.sums.forgetting import (
    check_something_left,
    without_classes,
    without_examples,
)
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.labels import ClassList

__all__ = [
    "Recipe",
    "differences",
    "extend",
    "forget",
    "forget_classes",
    "merge",
    "rename",
]


@dataclass(frozen=True)
class Recipe:
    """What an estimator's parameters ask for."""

    wish: Wish
    ridge: Callable[[float], Ridge]
    validation_every: int
    max_held_out: int
    verbose: int


def extend(known: FittedRLS, labels: ClassList, new: Batch, recipe: Recipe) -> FittedRLS:
    """Add examples, inputs of any type; ``labels`` are the classes known afterwards."""
    moments = known.moments.with_classes(len(labels))
    held_out = known.held_out.with_classes(len(labels))
    mapping, verbose = _mapping(known), recipe.verbose
    if not recipe.wish.holds_out:
        moments, _ = add_picking(moments, new, mapping, verbose=verbose)
    else:
        choice = held_out.choose(
            new.codes,
            labels.classes.tolist(),
            every=recipe.validation_every,
            max_held_out=recipe.max_held_out,
        )
        places = choice.places
        moments, rows = add_picking(moments, new, mapping, places=places, verbose=verbose)
        held_out = held_out.with_chosen(choice, rows, new.weights[places])
    moments.check_finite()
    return _chosen(replace(known, labels=labels, moments=moments, held_out=held_out), recipe)


def forget(known: FittedRLS, gone: Batch, recipe: Recipe) -> FittedRLS:
    """Take examples out; a ``ValueError`` if they cannot have been learnt."""
    features = mapped_batches(gone, _mapping(known))
    moments = without_examples(known.labels, known.moments, features)
    check_something_left(moments)
    held_out, _ = known.held_out.find(gone)
    return _chosen(replace(known, moments=moments, held_out=held_out), recipe)


def forget_classes(known: FittedRLS, gone: list[int], recipe: Recipe) -> FittedRLS:
    """Take whole classes out, and their columns."""
    check_something_left(known.moments, gone)
    labels, columns, moments = without_classes(known.labels, known.moments, gone)
    return _relabelled(known, labels, columns, moments, recipe)


def rename(known: FittedRLS, names: Mapping[Any, Any], recipe: Recipe) -> FittedRLS:
    """Give classes other names; classes given one name become one."""
    labels, columns = known.labels.renamed(names)
    if len(labels) == len(known.labels):
        return replace(known, labels=labels)
    moments = known.moments.relabel(columns, len(labels))
    return _relabelled(known, labels, columns, moments, recipe)


def merge(known: FittedRLS, other: FittedRLS, recipe: Recipe) -> FittedRLS:
    """What one model would know that had seen the examples of both."""
    labels, codes = known.labels.extend(other.labels.classes)
    columns, n_classes = codes.tolist(), len(labels)
    moments = known.moments.merged(other.moments, columns, n_classes)
    held_out = known.held_out.merged(other.held_out, columns, n_classes, recipe.max_held_out)
    joint = replace(known, labels=labels, moments=moments, held_out=held_out)
    return _chosen(joint, recipe, again=True)


def differences(known: FittedRLS, other: FittedRLS) -> list[str]:
    """In what two models differ that must not, to be merged."""
    mine, theirs = known.features, other.features
    pairs = {
        "the number of features": (mine.n_inputs, theirs.n_inputs),
        "fit_intercept": (known.intercept, other.intercept),
        "n_random_features": (mine.n_random, theirs.n_random),
        "feature_map": (mine.kind, theirs.kind),
        "the seed of the random features": (mine.seed, theirs.seed),
        "gamma of the random features": (mine.gamma, theirs.gamma),
        "keep_class_statistics": (
            known.moments.class_settled is not None,
            other.moments.class_settled is not None,
        ),
    }
    return [f"{name} ({a} and {b})" for name, (a, b) in pairs.items() if a != b]


def _relabelled(
    known: FittedRLS, labels: ClassList, columns: list[int], moments: Moments, recipe: Recipe
) -> FittedRLS:
    """With other classes, whose sums are given; class ``k`` became class ``columns[k]``."""
    held_out = known.held_out.relabel(columns, len(labels))
    selection = known.selection
    if selection is not None:
        selection = replace(selection, class_examples=moments.class_examples)
    changed = replace(known, labels=labels, moments=moments, held_out=held_out, selection=selection)
    return _chosen(changed, recipe, again=True)


def _chosen(known: FittedRLS, recipe: Recipe, *, again: bool = False) -> FittedRLS:
    return known.choose(recipe.ridge, recipe.wish, again=again) if recipe.wish.holds_out else known


def _mapping(known: FittedRLS) -> FeatureMapping:
    return FeatureMapping(known.features, known.intercept)
