"""Leaving one example out by learning from all the others, once for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.least_squares import cosine_scores, weights

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


def left_out_cosines(
    X: Array,
    codes: Array,
    groups: Array,
    n_classes: int,
    penalty: float,
    sample_weight: Array,
    *,
    intercept: bool = True,
    by_means: bool = True,
) -> Array:
    """Cosines of each example by all examples of other groups; 0 for a class that has no others."""
    scores = np.zeros((len(X), n_classes))
    for i in range(len(X)):
        others = groups != groups[i]
        known = np.unique(codes[others])
        scores[i, known] = cosine_scores(
            X[others],
            np.searchsorted(known, codes[others]),
            len(known),
            penalty,
            0.0,
            intercept=intercept,
            query=X[i : i + 1],
            sample_weight=sample_weight[others],
            by_means=by_means,
        )[0]
    return scores
