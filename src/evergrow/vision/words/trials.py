"""How many random tests a node of an ERC forest tries, chosen on descriptors held out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.labels import ClassList
from evergrow.vision.words.erc_fitted import Batch, FittedERC, Growth

__all__ = ["choose_max_trials", "square_root"]

_FACTORS = (0.25, 0.5, 1, 2, 4)
_HELD_OUT = 0.25


def square_root(n_features: int) -> int:
    """The number of trials that descriptors of this length ask for."""
    return math.ceil(math.sqrt(n_features))


def choose_max_trials(
    labels: ClassList,
    batch: Batch,
    images: npt.NDArray[np.int64],
    growth: Growth,
    *,
    n_trees: int,
    seed: int,
) -> int:
    """The candidate whose trees vote best on a quarter of the images, the smallest of equals.

    ``images`` tells which image each descriptor is of: those of one image are held out together,
    since they resemble each other more than those of another image of the class. Where no class
    has two images there is nothing to choose by, and the square root stands.
    """
    n_features = batch.rows.shape[1]
    root = square_root(n_features)
    held_out = _held_out_rows(batch.codes, images, seed)
    if not held_out.any():
        return root
    candidates = {min(n_features, max(1, round(factor * root))) for factor in _FACTORS}
    learn = Batch(batch.rows[~held_out], batch.codes[~held_out])
    losses: dict[int, float] = {}
    for n_trials in sorted(candidates | {1}):
        trial = replace(growth, max_trials=n_trials)
        forest = FittedERC.of(labels, learn, trial, n_trees=n_trees, seed=seed, keep=False)
        votes = forest.probabilities(batch.rows[held_out], growth.n_threads)
        losses[n_trials] = _loss(votes, batch.codes[held_out], images[held_out])
    return min(losses, key=lambda n_trials: losses[n_trials])


def _held_out_rows(
    codes: npt.NDArray[np.int32], images: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.bool_]:
    random = np.random.default_rng(seed)
    chosen: list[Any] = []
    for code in np.unique(codes):
        own = np.unique(images[codes == code])
        n_held_out = min(len(own) - 1, max(1, round(_HELD_OUT * len(own))))
        chosen.extend(random.permutation(own)[:n_held_out])
    return np.isin(images, chosen)


def _loss(
    votes: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    images: npt.NDArray[np.int64],
) -> float:
    """Squared distance of the images' votes from the truth, every class counting the same."""
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
