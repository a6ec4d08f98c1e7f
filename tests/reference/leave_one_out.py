"""Leaving one example out by learning from all the others, once for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.least_squares import weights

Array = npt.NDArray[Any]


def left_out_scores(
    X: Array,
    codes: Array,
    n_classes: int,
    penalty: float,
    sample_weight: Array,
    *,
    intercept: bool = True,
) -> Array:
    """Scores of each example by the weights of all others, before recoding."""
    scores = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        W = weights(
            X[others],
            codes[others],
            n_classes,
            penalty,
            sample_weight[others],
            intercept=intercept,
        )
        scores.append(X[i] @ W)
    return np.array(scores)


def left_out_recoding(codes: Array, n_classes: int, sample_weight: Array, alpha: float) -> Array:
    """Factors of each example's scores, (total / count)^alpha [Camoriano2017 Sec. V-B]."""
    factors = []
    for i in range(len(codes)):
        others = np.arange(len(codes)) != i
        counts = np.bincount(codes[others], sample_weight[others], minlength=n_classes)
        total = counts.sum()
        factors.append([(total / count) ** alpha if count else 0.0 for count in counts])
    return np.array(factors)
