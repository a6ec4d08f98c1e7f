"""Fisher vectors of small images, computed within a run."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import lru_cache
from math import isqrt

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research.datasets import Dataset

# Patches of 8 x 8 pixels, one every 2 pixels: 121 of an image of 28 x 28.
_SIDE, _STEP = 8, 2
_COMPONENTS, _GAUSSIANS = 24, 16
_TRAINING_PATCHES = 50_000
_EPOCHS = 30


@lru_cache(maxsize=1)
def fisher_vectors(data: Dataset) -> Dataset:
    """The same images as Fisher vectors; the mixture is learnt on training images without labels.

    The hash stays that of the images.
    """
    from sklearn.exceptions import ConvergenceWarning

    from evergrow.vision import FisherVectors

    largest = float(data.X_train.max()) or 1.0
    train, test = (_patches(X / largest) for X in (data.X_train, data.X_test))
    # Small images, such as digits of 8 x 8 pixels, have small vectors.
    is_small = train[0].shape[1] < _SIDE * _SIDE
    vectors = FisherVectors(
        _GAUSSIANS // (4 if is_small else 1),
        n_pca=_COMPONENTS // (4 if is_small else 1),
        n_training_descriptors=_TRAINING_PATCHES,
        max_iter=_EPOCHS,
        random_state=0,
    )
    with warnings.catch_warnings():
        # 30 epochs are enough for a vocabulary.
        warnings.simplefilter("ignore", ConvergenceWarning)
        vectors.fit(train)
    return replace(data, X_train=vectors.transform(train), X_test=vectors.transform(test))


def _patches(X: Array) -> list[Array]:
    """The patches of each square image as rows of pixels, without those of a single value."""
    width = isqrt(X.shape[1])
    images = X.reshape(len(X), width, width)
    side, step = (_SIDE, _STEP) if width > 2 * _SIDE else (width // 2, 1)
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
    rows = windows[:, ::step, ::step].reshape(len(X), -1, side * side)
    varied = rows.max(axis=2) > rows.min(axis=2)
    return [mine[shown] for mine, shown in zip(rows, varied, strict=True)]
