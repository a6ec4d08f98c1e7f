"""Weights of samples and of classes: how many copies of a sample a tree draws on average.

A tree draws as many copies as the whole part of a weight, and one more with the probability of its
fraction (``repeat_rows`` in ``cpp/samples/row_sampling.cpp``). So everything that counts samples
takes weights into account: class means, gains, leaves and votes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.request import ClassWeight
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList

Weights: TypeAlias = npt.NDArray[np.float32]

# Largest weight of a sample in an update, in units of the mean weight of the first samples.
_LARGEST = 1000.0


def class_weights(
    wanted: ClassWeight, labels: ClassList, codes: npt.NDArray[np.int32]
) -> list[float]:
    """The weight of each class, or none if all are 1; their mean over the samples is 1.

    ``"balanced"`` gives all classes of the samples the same total weight. A negative code marks a
    removed sample.

    >>> labels = ClassList(np.array(["cat", "dog"]))
    >>> class_weights("balanced", labels, np.array([0, 0, 0, 1], dtype=np.int32))
    [0.6666666666666666, 2.0]
    >>> class_weights({"dog": 5}, labels, np.array([0, 1], dtype=np.int32))
    [0.3333333333333333, 1.6666666666666667]
    """
    if wanted is None:
        return []
    sizes = np.bincount(codes[codes >= 0], minlength=len(labels)).astype(np.float64)
    if isinstance(wanted, str):
        weights = np.divide(1.0, sizes, out=np.ones(len(sizes)), where=sizes > 0)
    else:
        weights = np.array([float(wanted.get(name, 1.0)) for name in labels.classes.tolist()])
    total = float(weights @ sizes)
    if total == 0:
        raise InvalidInputError("class_weight must not be 0 for all samples")
    return [float(weight) for weight in weights * (sizes.sum() / total)]


def check_later_weights(
    weights: Weights | None, codes: npt.NDArray[np.int32], of_classes: list[float]
) -> None:
    """Raise a ``ValueError`` for weights that an update cannot take: a tree holds all copies."""
    if weights is None and not of_classes:
        return
    own = np.ones(len(codes)) if weights is None else weights.astype(np.float64)
    largest = float((own * np.array(of_classes)[codes] if of_classes else own).max())
    if largest > _LARGEST:
        raise InvalidInputError(
            f"a sample, with the weight of its class, must weigh at most {_LARGEST:g} times as "
            f"much as the first samples did on average, got {largest:g} times"
        )
