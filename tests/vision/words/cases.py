"""Codebooks, descriptors and small images that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evergrow.vision import (
    HierarchicalKMeans,
    KMeansCodebook,
    LocalFeatures,
    RandomKDTrees,
    RandomPatches,
)

Image = np.ndarray[Any, Any]

# To add a codebook: write a subclass of ``Codebook`` with ``_rules``, ``_learn`` and ``_read``, as
# ``RandomKDTrees`` does, and add a line here. One that learns from classes is a ``Vocabulary``.
CODEBOOKS: dict[str, Callable[..., Any]] = {
    "k-means": lambda n_words=12, **options: KMeansCodebook(n_words, random_state=0, **options),
    "hierarchical": lambda n_words=12, **options: HierarchicalKMeans(
        n_words, branching=3, random_state=0, **options
    ),
    "kd-trees": lambda n_words=12, **options: RandomKDTrees(
        3, n_words=n_words, random_state=0, **options
    ),
}


def descriptors(n: int = 300, n_features: int = 6, seed: int = 0) -> np.ndarray[Any, Any]:
    """Descriptors without much structure."""
    return np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)


def two_kinds(n_images: int = 20) -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Images of two classes that share most of their descriptors, and their classes."""
    random = np.random.default_rng(1)
    y = np.arange(n_images) % 2
    images = []
    for label in y:
        image = random.normal(size=(int(random.integers(20, 40)), 6))
        image[: 8 * label] += 4.0
        images.append(image.astype(np.float32))
    return images, np.array(["cat", "dog"])[y]


def features(**options: Any) -> LocalFeatures:
    """Few patches of small images."""
    return LocalFeatures("hsl", patches=RandomPatches(40, min_size=8), **options)


def striped(n_images: int = 12, seed: int = 0) -> tuple[list[Image], Image, list[Image]]:
    """Images, their classes, and where in each the stripes are, everywhere if there are none."""
    random = np.random.default_rng(seed)
    images, masks = [], []
    for i in range(n_images):
        image = random.integers(100, 156, (40, 50, 3), dtype=np.uint8)
        mask = np.ones((40, 50), dtype=bool)
        if i % 2:
            image[:, 20:] = np.where(np.arange(30)[:, None] // 4 % 2, 255, 0)
            mask[:, :20] = False
        images.append(image)
        masks.append(mask)
    return images, np.array(["plain", "striped"])[np.arange(n_images) % 2], masks
