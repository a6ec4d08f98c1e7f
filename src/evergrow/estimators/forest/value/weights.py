"""Weights of samples and of classes: how many copies of a sample a tree draws on average.

A tree draws as many copies as the whole part of a weight, and one more with the probability of its
fraction (``repeat_rows`` in ``cpp/samples/row_sampling.cpp``). So everything that counts samples
takes weights into account: class means, gains, leaves and votes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.request import ClassWeight
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList

Weights: TypeAlias = npt.NDArray[np.float32]

# Largest weight of a class, and of a sample in an update, in units of the mean weight of the first
# samples.
_LARGEST = 1000.0


def class_weights(
    wanted: ClassWeight,
    labels: ClassList,
    totals: npt.NDArray[Any],
) -> list[float]:
    """The weight of each class, or none if all are 1; with them samples weigh as much as without.

    ``"balanced"`` gives all classes the same total weight. No class weighs more than 1000.
    ``totals`` are the weights of the samples of each class, added up.

    >>> labels = ClassList(np.array(["cat", "dog"]))
    >>> class_weights("balanced", labels, np.array([4, 2]))
    [0.75, 1.5]
    >>> class_weights({"dog": 3}, labels, np.array([1, 1]))
    [0.5, 1.5]
    """
    if wanted is None:
        return []
    sizes = totals.astype(np.float64)
    if isinstance(wanted, str):
        found = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    else:
        _check_names(wanted, labels)
        found = np.array([float(wanted.get(name, 1.0)) for name in labels.classes.tolist()])
    # First, because products of large weights would overflow.
    found /= max(found.max(), np.finfo(np.float64).tiny)
    total = float(found @ sizes)
    if total == 0:
        raise InvalidInputError("class_weight must not be 0 for all samples")
    return [float(weight) for weight in np.minimum(found * (sizes.sum() / total), _LARGEST)]


def _check_names(wanted: Mapping[Any, float], labels: ClassList) -> None:
    """Raise a ``ValueError`` for names that no class can have; a class may come later."""
    is_text = labels.classes.dtype.kind in "UO"
    strange = [name for name in wanted if isinstance(name, str) != is_text]
    if strange:
        kind = "strings" if is_text else "numbers"
        raise InvalidInputError(f"classes are {kind}, but class_weight names {strange[0]!r}")


def in_unit(
    weights: npt.NDArray[np.float64] | None, unit: float, most: float = math.inf
) -> Weights | None:
    """Weights in units of the mean weight of the first samples, as the core stores them."""
    if weights is None:
        return None
    found = weights / unit
    largest = float(found.max())
    if largest > most:
        raise InvalidInputError(
            f"a sample must weigh at most {most:g} times as much as the first samples did on "
            f"average, got {largest:g} times"
        )
    return found.astype(np.float32)


def later_weights(weights: npt.NDArray[np.float64] | None, unit: float) -> Weights | None:
    """The same for samples of an update, whose weights are limited: a tree holds all copies."""
    return in_unit(weights, unit, _LARGEST)
