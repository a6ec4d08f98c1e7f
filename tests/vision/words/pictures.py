"""Small images of two kinds: stripes on noise, and noise alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.vision import LocalFeatures, RandomPatches

Image = np.ndarray[Any, Any]


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
