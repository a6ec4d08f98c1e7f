"""From one value with sums over examples to the next: more examples, fewer, other classes.

Sums cannot tell which examples they are made of. They do show when more is subtracted than was ever
added, which is then refused. Nothing here changes its arguments, so that a failure or an interrupt
leaves a model as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.accumulation import IDENTITY, RowMap, add_examples, iter_batches
from evergrow.estimators.sums.gram import add_class_products, copy_columns
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import format_count, format_size
from evergrow.foundation.labels import ClassList

# Rounding error that forgotten examples may leave, relative to the sums just before, and to the
# largest sums there ever were.
_ROUNDING = 1e-9
_RESIDUE = 1e-14


@dataclass(frozen=True, eq=False)
class FittedSums:
    """What a model has learnt: its classes, and the sums over their examples.

    ``request`` are the parameters of a call, for subclasses that keep more than sums.
    """

    labels: ClassList
    moments: Moments

    @property
    def n_features(self) -> int:
        """Number of features of the input."""
        return self.moments.n_features

    @property
    def row_map(self) -> RowMap:
        """From inputs to the features that are added up."""
        return IDENTITY

    def extend(self, labels: ClassList, new: Batch, request: Any) -> Self:  # noqa: ARG002
        """Add examples, inputs of any type; ``labels`` are the classes known afterwards."""
        moments = self.moments.with_classes(len(labels))
        moments, _ = add_examples(moments, new, self.row_map)
        return replace(self, labels=labels, moments=moments)

    def forget(self, gone: Batch, request: Any) -> Self:  # noqa: ARG002
        """Remove examples; a ``ValueError`` if they cannot have been learnt."""
        rows = iter_batches(gone, self.row_map)
        moments = subtract_examples(self.labels, self.moments, rows)
        check_examples_left(moments)
        return replace(self, moments=moments)

    def forget_classes(self, removed: Sequence[int], request: Any) -> Self:
        """Remove classes and their columns.

        A ``ValueError`` if the sums of a class cannot be told from those of the others.
        """
        labels, moments = self.labels, self.moments
        check_examples_left(moments, removed)
        learnt = [k for k in removed if moments.class_examples[k]]
        if learnt and moments.settled is not None and moments.class_settled is None:
            price = format_size(8 * moments.n_features**2)
            raise InvalidInputError(
                f"cannot forget the classes {labels.classes[learnt].tolist()} without their "
                "examples: forget those first with forget(X, y), or train with "
                f"keep_class_statistics=True ({price} per class with "
                f"{format_count(self.n_features, 'feature')})"
            )
        return self.relabel(*labels.without(removed), request)

    def rename(self, names: Mapping[Any, Any], request: Any) -> Self:
        """Give classes other names; classes with the same new name become one."""
        labels, columns = self.labels.renamed(names)
        if len(labels) == len(self.labels):
            return replace(self, labels=labels)
        return self.relabel(labels, columns, request)

    def relabel(self, labels: ClassList, columns: list[int], request: Any) -> Self:  # noqa: ARG002
        """Replace the classes: class ``k`` becomes class ``columns[k]``, -1 if it is removed."""
        return replace(self, labels=labels, moments=self.moments.relabel(columns, len(labels)))

    def merge(self, other: Self, request: Any) -> Self:  # noqa: ARG002
        """Return what one model would have learnt from the examples of both."""
        labels, columns = self.labels.extend(other.labels.classes)
        moments = self.moments.merged(other.moments, columns.tolist(), len(labels))
        return replace(self, labels=labels, moments=moments)


class ForgetError(ValueError):
    """Examples of a class cannot be taken out; the caller knows the name of the class."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column


def subtract(moments: Moments, batches: Iterable[Batch]) -> Moments:
    """Subtract examples; a ``ForgetError`` if they cannot have been learnt."""
    left, columns = moments, set[int]()
    for batch in batches:
        _check_learnt(left, batch)
        left = left.add(batch.negated())
        columns.update(np.unique(batch.codes).tolist())
    _check_plausible(left, moments, sorted(columns))
    return _clear_residue(left)


def move(moments: Moments, batch: Batch, codes: npt.NDArray[np.int32]) -> Moments:
    """Move examples to other classes; the Gram matrix over all classes stays the same."""
    _check_learnt(moments, batch)
    batch = moments.shifted(batch)
    arriving, leaving = Batch(batch.rows, codes, batch.weights), batch.negated()
    changed = moments.with_new_tokens().with_sums([leaving, arriving])
    _check_plausible(changed, moments, sorted(np.unique(batch.codes).tolist()))
    if changed.class_settled is not None:
        columns = {*batch.codes.tolist(), *codes.tolist()}
        grams = copy_columns(changed.class_settled, columns) or ()
        add_class_products(grams, leaving)
        add_class_products(grams, arriving)
        changed = replace(changed, class_settled=grams)
    return _clear_residue(replace(changed, peak=moments.peak))


def subtract_examples(labels: ClassList, moments: Moments, batches: Iterable[Batch]) -> Moments:
    """Subtract examples; a ``ValueError`` that names the class if they were not learnt."""
    try:
        return subtract(moments, batches)
    except ForgetError as error:
        label = labels.classes.tolist()[error.column]
        raise InvalidInputError(f"cannot forget examples of class {label!r}: {error}") from error


def check_examples_left(moments: Moments, removed: Sequence[int] = ()) -> None:
    """Raise a ``ValueError`` if there are no examples outside of the removed columns."""
    if not np.delete(moments.class_examples, removed).any():
        raise InvalidInputError("forget would leave no examples: train a new model instead")


def check_forget_arguments(
    labels: ClassList, X: object, y: object, classes: object, sample_weight: object
) -> None:
    """Raise a ``ValueError`` if it is not clear what to forget."""
    if (X is None) != (y is None):
        named = _named_classes(labels, X) if classes is None else []
        hint = f": did you mean classes={named!r}?" if named else ""
        raise InvalidInputError(f"forget needs both X and y, or neither{hint}")
    if X is None and classes is None:
        raise InvalidInputError("forget needs examples (X and y), classes, or both")
    if X is None and sample_weight is not None:
        raise InvalidInputError("forget needs X and y if sample_weight is given")


def _named_classes(labels: ClassList, X: object) -> list[Any]:
    """Return a flat list of classes in place of examples; empty if it is something else."""
    flat = np.atleast_1d(X) if isinstance(X, (str, int, np.ndarray)) else X
    found = list(flat) if isinstance(flat, (list, tuple, np.ndarray)) else []
    if not all(isinstance(each, (str, int, np.integer)) for each in found):
        return []
    named = np.array(found).tolist()
    return named if {*named} <= {*labels.classes.tolist()} else []


def _check_learnt(moments: Moments, batch: Batch) -> None:
    """Raise a ``ForgetError`` for more examples, or more weight, of a class than was learnt."""
    n_gone = np.bincount(batch.codes, minlength=moments.n_classes)
    weight_gone = np.bincount(batch.codes, batch.weights, minlength=moments.n_classes)
    too_many = np.flatnonzero(n_gone > moments.class_examples)
    if len(too_many):
        c = int(too_many[0])
        raise ForgetError(
            c, f"{moments.class_examples[c]} examples were learnt, {n_gone[c]} are to be forgotten"
        )
    too_heavy = np.flatnonzero(weight_gone > moments.class_weights * (1 + _ROUNDING))
    if len(too_heavy):
        c = int(too_heavy[0])
        raise ForgetError(
            c,
            f"examples with a total weight of {moments.class_weights[c]:g} were learnt, "
            f"but a weight of {weight_gone[c]:g} is to be forgotten",
        )


def _check_plausible(left: Moments, before: Moments, columns: Sequence[int]) -> None:
    """Raise a ``ForgetError`` unless what is left of these classes can be sums of examples."""
    reason = "these are not the examples that were learnt"
    for c in columns:
        scale = max(_ROUNDING * before.class_squares[c], _RESIDUE * before.peak)
        # Sums over no examples are zero; over any, sum w x.x >= |sum w x|^2 / sum w.
        total, weight = left.class_sums[c], left.class_weights[c]
        if left.class_examples[c] and not weight > 0:
            raise ForgetError(c, "what is left weighs no more than rounding errors")
        least = float(total @ total) / weight if left.class_examples[c] else 0.0
        none_left = not left.class_examples[c] and abs(left.class_squares[c]) > scale
        if none_left or left.class_squares[c] < least - scale:
            raise ForgetError(c, reason)
    if left.settled is not None:
        allowed = max(_ROUNDING * before.diagonal.max(), _RESIDUE * before.peak)
        if left.diagonal.min() < -allowed:
            raise ForgetError(columns[0], reason)


def _clear_residue(moments: Moments) -> Moments:
    """Set the sums of classes without examples to zero: rounding leaves tiny values there."""
    empty = moments.class_examples == 0
    if not empty.any():
        return replace(moments, class_squares=np.maximum(moments.class_squares, 0.0))
    sums = zip(moments.class_sums, empty.tolist(), strict=True)
    return replace(
        moments,
        class_sums=tuple(np.zeros_like(total) if none else total for total, none in sums),
        class_weights=np.where(empty, 0.0, moments.class_weights),
        class_squares=np.where(empty, 0.0, np.maximum(moments.class_squares, 0.0)),
    )
