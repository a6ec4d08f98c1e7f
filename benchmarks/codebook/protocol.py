"""The task of the codebook paper: one class of photographs against background.

Even images train and odd ones test, as in Moosmann et al. (NIPS 2006), sec. 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.svm import LinearSVC

from benchmarks.measure import THREADS
from evergrow.codebook.evaluation import equal_error_rate
from evergrow.codebook.pooling import POOLINGS, mutual_information_thresholds
from evergrow.features import LocalFeatures, RandomPatches, find_labelled, read_images

__all__ = [
    "BACKGROUND",
    "Coding",
    "Photographs",
    "drawn_pictures",
    "equal_error_score",
    "every_other",
    "histograms",
    "photographs",
    "training_descriptors",
]

BACKGROUND = "background"
N_TRAINING = 20_000
RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Photographs:
    """Images, the class of each, and which of them train."""

    name: str
    images: list[RGB]
    classes: npt.NDArray[Any]
    trains: Mask

    @property
    def objects(self) -> list[str]:
        """The classes that are told from background."""
        return [str(name) for name in np.unique(self.classes) if name != BACKGROUND]

    def against_background(self, name: str) -> Photographs:
        """Images of one class and of background."""
        return self.where((self.classes == name) | (self.classes == BACKGROUND))

    def where(self, wanted: Mask) -> Photographs:
        """Some of the images."""
        images = [self.images[i] for i in np.flatnonzero(wanted)]
        return replace(
            self, images=images, classes=self.classes[wanted], trains=self.trains[wanted]
        )


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


def every_other(classes: npt.NDArray[Any]) -> Mask:
    """The even images of each class."""
    even: Mask = _number(classes) % 2 == 0
    return even


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


def _features(descriptor: str, n_patches: int, seed: int) -> LocalFeatures:
    return LocalFeatures(descriptor, patches=RandomPatches(n_patches), random_state=seed)


def training_descriptors(
    data: Photographs, descriptor: str, seed: int, n_descriptors: int = N_TRAINING
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """About as many descriptors of each training image, and the image each is of."""
    chosen = [image for image, trains in zip(data.images, data.trains, strict=True) if trains]
    n_each = -(-n_descriptors // len(chosen))
    # Other patches than those that are coded afterwards.
    local = _features(descriptor, n_each, seed + 1000)
    parts = Parallel(THREADS, prefer="threads")(delayed(local.describe)(i) for i in chosen)
    rows = np.concatenate([described for described, _ in parts])
    return rows, np.repeat(np.arange(len(chosen)), [len(described) for described, _ in parts])


@dataclass(frozen=True)
class Coding:
    """A codebook, and how many patches of each image it codes."""

    codebook: Any
    n_patches: int


def histograms(
    data: Photographs, descriptor: str, codings: Mapping[str, Coding], seed: int
) -> dict[str, sparse.csr_array]:
    """Counts of words per image for each coding; the patches of all are the same."""
    most = max(coding.n_patches for coding in codings.values())
    local = _features(descriptor, most, seed)

    def counts(image: RGB) -> list[Any]:
        rows, _ = local.describe(image)
        return [c.codebook.encode([rows[: c.n_patches]]) for c in codings.values()]

    parts = Parallel(THREADS, prefer="threads")(delayed(counts)(image) for image in data.images)
    columns = zip(*parts, strict=True)
    return {
        name: sparse.csr_array(sparse.vstack(column))
        for name, column in zip(codings, columns, strict=True)
    }


def equal_error_score(
    data: Photographs, name: str, counts: sparse.csr_array, pooling: str = "binary"
) -> float:
    """Rate at equal error, in percent, of a linear SVM that tells a class from background."""
    wanted = (data.classes == name) | (data.classes == BACKGROUND)
    positive, trains = data.classes[wanted] == name, data.trains[wanted]
    pooled = pool(counts[np.flatnonzero(wanted)], pooling, trains, positive)
    svm = LinearSVC(random_state=0).fit(pooled[trains], positive[trains])
    return 100 * equal_error_rate(svm.decision_function(pooled[~trains]), positive[~trains])


def pool(counts: sparse.csr_array, pooling: str, trains: Mask, positive: Mask) -> Any:
    """Pool, with thresholds learnt from the training images where there are any."""
    chosen, thresholds = POOLINGS[pooling], None
    if chosen.learns:
        codes = positive[trains].astype(np.int32)
        thresholds = mutual_information_thresholds(counts[np.flatnonzero(trains)], codes)
    return chosen.pool(counts, thresholds)
