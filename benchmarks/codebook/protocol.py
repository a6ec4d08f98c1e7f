"""Photographs to measure on; the task is that of ``evergrow.experiments.nips2006``."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import THREADS
from evergrow.experiments.nips2006.coding import (
    Coding,
    equal_error_score,
    histograms,
    pool,
    training_descriptors,
)
from evergrow.experiments.nips2006.photographs import BACKGROUND, Photographs, every_other
from evergrow.features import find_labelled, read_images

__all__ = [
    "BACKGROUND",
    "Coding",
    "Photographs",
    "drawn_pictures",
    "equal_error_score",
    "every_other",
    "histograms",
    "photographs",
    "pool",
    "training_descriptors",
]

RGB = npt.NDArray[np.uint8]


@cache
def photographs(quick: bool) -> Photographs:
    """The folder ``caltech_images`` of EVERGROW_DATA, or pictures drawn here; a few if quick."""
    folder = Path(os.environ.get("EVERGROW_DATA") or "") / "caltech_images"
    if os.environ.get("EVERGROW_DATA") and folder.is_dir():
        found = find_labelled(folder)
        images = read_images(found.paths, n_jobs=THREADS).images
        name, classes = "Caltech photographs", np.array(found.labels)
    else:
        name, images, classes = "drawn pictures", *drawn_pictures(60)
    everything = Photographs(name, list(images), classes, every_other(classes))
    return everything.where(_number(classes) < 20) if quick else everything


def _number(classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The number of each image within its class; those of a class lie together."""
    return np.concatenate([np.arange(np.sum(classes == c)) for c in dict.fromkeys(classes)])


def drawn_pictures(n_each: int) -> tuple[list[RGB], npt.NDArray[Any]]:
    """Rings, crosses and stripes on noise, and noise alone."""
    random = np.random.default_rng(0)
    down, right = np.mgrid[:120, :160]
    shapes: dict[str, Callable[[int, int], Any]] = {
        "ring": lambda y, x: abs(np.hypot(down - y, right - x) - 25) < 6,
        "cross": lambda y, x: (abs(down - y) < 5) | (abs(right - x) < 5),
        "stripes": lambda y, x: (down + right + y + x) % 24 < 8,
    }
    shapes[BACKGROUND] = lambda *_: np.zeros(down.shape, dtype=bool)
    images, classes = [], []
    for name, shape in shapes.items():
        for _ in range(n_each):
            image = random.normal(128, 40, (120, 160, 3))
            place = shape(int(random.integers(30, 90)), int(random.integers(40, 120)))
            image[place] = random.uniform(0, 255, 3)
            images.append(np.clip(image, 0, 255).astype(np.uint8))
            classes.append(name)
    return images, np.array(classes)
