"""The number of random tests per node, chosen on a holdout [Moosmann2006 Sec. 3]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.labels import ClassList
from evergrow.vision.words.erc.fitted import DescriptorBatch, ERCRequest, FittedERC

_FACTORS = (0.25, 0.5, 1, 2, 4)
_HOLDOUT_SHARE = 0.25


def square_root(n_features: int) -> int:
    """The default number of trials for descriptors of this length."""
    return math.ceil(math.sqrt(n_features))


def choose_max_trials(
    labels: ClassList,
    batch: DescriptorBatch,
    images: npt.NDArray[np.int64],
    request: ERCRequest,
    *,
    n_trees: int,
    seed: int,
) -> int:
    """The number of trials with the smallest loss on a quarter of the images; ties go to the least.

    ``images`` is the image of each descriptor. The descriptors of one image are held out together,
    because they are more similar to each other than to those of other images of the class. If no
    class has two images, the result is the square root.
    """
    n_features = batch.rows.shape[1]
    root = square_root(n_features)
    holdout = _draw_holdout(batch.codes, images, seed)
    if not holdout.any():
        return root
    candidates = {min(n_features, max(1, round(factor * root))) for factor in _FACTORS}
    training = DescriptorBatch(batch.rows[~holdout], batch.codes[~holdout])
    losses: dict[int, float] = {}
    for n_trials in sorted(candidates | {1}):
        trial = replace(request, max_trials=n_trials)
        forest = FittedERC.grow(
            labels, training, trial, n_trees=n_trees, seed=seed, keep_descriptors=False
        )
        votes = forest.probabilities(batch.rows[holdout], request.n_threads)
        losses[n_trials] = _loss(votes, batch.codes[holdout], images[holdout])
    return min(losses, key=lambda n_trials: losses[n_trials])


def _draw_holdout(
    codes: npt.NDArray[np.int32], images: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.bool_]:
    random = np.random.default_rng(seed)
    chosen: list[Any] = []
    for code in np.unique(codes):
        own = np.unique(images[codes == code])
        n_holdout = min(len(own) - 1, max(1, round(_HOLDOUT_SHARE * len(own))))
        chosen.extend(random.permutation(own)[:n_holdout])
    return np.isin(images, chosen)


def _loss(
    votes: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    images: npt.NDArray[np.int64],
) -> float:
    """Brier score of the mean votes of the images, with equal weight for every class."""
    _, first, inverse, sizes = np.unique(
        images, return_index=True, return_inverse=True, return_counts=True
    )
    mean = np.zeros((len(first), votes.shape[1]))
    np.add.at(mean, inverse, votes)
    mean /= sizes[:, None]
    truth = codes[first]
    mean[np.arange(len(first)), truth] -= 1
    distances = (mean**2).sum(axis=1)
    return float(np.mean([distances[truth == code].mean() for code in np.unique(truth)]))
