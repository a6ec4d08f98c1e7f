"""Codebooks and descriptors that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees

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
