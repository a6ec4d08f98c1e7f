"""From what least squares knows and more examples, or fewer, to what it knows then.

Functions of values: whoever fails or is interrupted has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.batches import Batch
from evergrow.blocks import float_blocks
from evergrow.examples import check_size
from evergrow.forgetting import check_something_left, without_classes, without_examples
from evergrow.labels import ClassList
from evergrow.linear.fitted import FittedRLS
from evergrow.linear.ridge import Ridge
from evergrow.linear.selection import Wish
from evergrow.moments import FEW, Moments
from evergrow.progress import progress_bar

__all__ = [
    "Recipe",
    "differences",
    "extend",
    "forget",
    "forget_classes",
    "merge",
    "rename",
]

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

# Bytes of features computed at once.
_BLOCK_BYTES = 64 << 20


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
    check_size(new.rows)
    moments = known.moments.with_classes(len(labels))
    if len(new.rows) < FEW:
        for few in _features_of(known, new):
            moments = moments.add(few)
    else:
        with progress_bar("adding examples", len(new.rows), recipe.verbose) as progress:
            moments = moments.add_all(_features_of(known, new, progress))
    moments.check_finite()
    held_out = known.held_out.with_classes(len(labels))
    if recipe.wish.holds_out:
        held_out, _ = held_out.add(
            new,
            labels.classes.tolist(),
            every=recipe.validation_every,
            max_held_out=recipe.max_held_out,
        )
    return _chosen(replace(known, labels=labels, moments=moments, held_out=held_out), recipe)


def forget(known: FittedRLS, gone: Batch, recipe: Recipe) -> FittedRLS:
    """Take examples out; a ``ValueError`` if they cannot have been learnt."""
    check_size(gone.rows)
    moments = without_examples(known.labels, known.moments, _features_of(known, gone))
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


def _features_of(
    known: FittedRLS, examples: Batch, progress: Callable[[int], None] | None = None
) -> Iterator[Batch]:
    """Examples by their features instead of their inputs, a block of rows at a time."""
    width = known.features.n_features + known.intercept
    max_rows = max(256, _BLOCK_BYTES // (8 * width))
    for rows, block in float_blocks(examples.rows, max_rows):
        features = known.features.features(block, constant=known.intercept)
        yield Batch(features, examples.codes[rows], examples.weights[rows])
        if progress is not None:
            progress(rows.stop)
