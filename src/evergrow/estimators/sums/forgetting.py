"""Taking examples and classes out of sums, and what is said where that cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.moments import ForgetError, Moments
from evergrow.foundation.labels import ClassList

__all__ = ["check_forget_arguments", "check_something_left", "without_classes", "without_examples"]


def check_forget_arguments(X: object, y: object, classes: object, sample_weight: object) -> None:
    """Raise a ``ValueError`` if it is not clear what to forget."""
    if (X is None) != (y is None):
        raise ValueError("forget needs both X and y, or neither")
    if X is None and classes is None:
        raise ValueError("forget needs examples (X and y), classes, or both")
    if X is None and sample_weight is not None:
        raise ValueError("forget needs X and y where it is given sample_weight")


def without_examples(labels: ClassList, moments: Moments, batches: Iterable[Batch]) -> Moments:
    """Sums without some examples; a ``ValueError`` that names the class if they were not learnt."""
    try:
        return moments.subtract(batches)
    except ForgetError as error:
        label = labels.classes.tolist()[error.column]
        raise ValueError(f"cannot forget examples of class {label!r}: {error}") from error


def check_something_left(moments: Moments, gone: Sequence[int] = ()) -> None:
    """Raise a ``ValueError`` if nothing is left without some columns."""
    if not np.delete(moments.class_examples, gone).any():
        raise ValueError("forget would leave no examples: train a new model instead")


def without_classes(
    labels: ClassList, moments: Moments, gone: Sequence[int]
) -> tuple[ClassList, list[int], Moments]:
    """Classes and sums without some columns, and the new column of each old one, -1 if it is gone.

    A ``ValueError`` where the examples of a class cannot be told from those of others.
    """
    held = [k for k in gone if moments.class_examples[k]]
    if held and moments.settled is not None and moments.class_settled is None:
        raise ValueError(
            f"cannot forget the classes {labels.classes[held].tolist()} without their examples: "
            "forget those first with forget(X, y), or train with keep_class_statistics=True"
        )
    left, columns = labels.without(gone)
    return left, columns, moments.relabel(columns, len(left))
