"""The task of the paper: images of one object told from images without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.datasets import Dataset
from evergrow.research.experiments.experiment import Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.papers.nips2006 import drawings
from evergrow.vision.descriptors.describer import shrink_image
from evergrow.vision.images.reader import read_images

__all__ = [
    "BACKGROUND",
    "PHOTOGRAPHS",
    "SOURCES",
    "SOURCES_WITH_OUTLINES",
    "Photographs",
    "even_and_odd",
    "every_other",
    "names_with_outlines",
    "outlines_of",
    "photographs",
]

BACKGROUND = drawings.BACKGROUND
# The objects to look at, where the data have them: the paper's bikes, then its cars.
_OBJECTS = ("motorbikes", drawings.BICYCLE, "car_side", drawings.CAR)
# As many images of each class as the paper took, one half to train.
_N_EACH = 150
# Photographs from a camera are made smaller, so that hundreds of them fit into memory.
_LARGEST_SIDE = 640

RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Photographs:
    """Images, the class of each, and which of them train."""

    name: str
    images: list[RGB]
    classes: Array
    trains: Mask

    @property
    def objects(self) -> list[str]:
        """The classes that are told from background, those that the paper looks at first."""
        found = [str(name) for name in np.unique(self.classes) if name != BACKGROUND]
        return [*(n for n in _OBJECTS if n in found), *(n for n in found if n not in _OBJECTS)]

    def against_background(self, name: str) -> Photographs:
        """Images of one class and of background."""
        return self.where((self.classes == name) | (self.classes == BACKGROUND))

    def where(self, wanted: Mask) -> Photographs:
        """Some of the images."""
        images = [self.images[i] for i in np.flatnonzero(wanted)]
        return replace(
            self, images=images, classes=self.classes[wanted], trains=self.trains[wanted]
        )


def every_other(classes: Array) -> Mask:
    """The even images of each class, in the order in which they come."""
    even = np.zeros(len(classes), dtype=np.bool_)
    for name in np.unique(classes):
        even[np.flatnonzero(classes == name)[::2]] = True
    return even


def even_and_odd(data: Dataset) -> Dataset:
    """Even images train and odd ones test, unless the folder itself divides them.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import Dataset
    >>> paths = np.array([f"bikes/{k}.jpg" for k in range(6)])
    >>> given = Dataset("bikes", paths[2:], ["b"] * 4, paths[:2], ["b"] * 2, sha256="0")
    >>> even_and_odd(given).X_train.tolist()
    ['bikes/0.jpg', 'bikes/2.jpg', 'bikes/4.jpg']
    """
    _check_images(data)
    if data.X_train.ndim > 1 or not _folders(data.X_train) & _folders(data.X_test):
        return data
    from evergrow.vision.images.walk import natural_key

    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    order = np.array(sorted(range(len(X)), key=lambda k: natural_key(str(X[k]))), dtype=np.int64)
    X, y = X[order], y[order]
    trains = every_other(y)
    return replace(data, X_train=X[trains], y_train=y[trains], X_test=X[~trains], y_test=y[~trains])


def _folders(paths: Array) -> set[str]:
    return {str(path).replace("\\", "/").rpartition("/")[0] for path in paths}


def _check_images(data: Dataset) -> None:
    if data.X_train.ndim not in (1, 4):
        raise ValueError(
            "visual words are made of patches of images: give a folder with one folder of images "
            f"per class, {data.name!r} is a matrix of shape {data.X_train.shape}"
        )


PHOTOGRAPHS = Source("caltech_images", drawings.drawn_scenes, even_and_odd)

SOURCES = {"photographs": PHOTOGRAPHS}

# Photographs come without outlines of the object; where they matter, drawn scenes are added.
_DRAWINGS = "drawings"
SOURCES_WITH_OUTLINES = {**SOURCES, _DRAWINGS: Source(None, drawings.drawn_scenes)}


def names_with_outlines(lab: Lab) -> list[str]:
    """The sources to measure on: drawn scenes once, also where they stand for photographs."""
    return [n for n in lab.names if n != _DRAWINGS or not lab.is_built_in("photographs")]


def outlines_of(lab: Lab, source: str, classes: Array, name: str) -> list[Mask | None]:
    """Where the object is in each test image, as far as it is known."""
    found: list[Mask | None] = [None] * len(classes)
    if lab.is_built_in(source):
        mine = np.flatnonzero(classes == name)
        for i, outline in zip(mine, drawings.outlines(name, len(mine)), strict=True):
            found[i] = outline
    return found


def photographs(lab: Lab, name: str, n_objects: int = 1, n_each: int | None = None) -> Photographs:
    """Images of the first objects and of background, as many of each for training and testing.

    Where no class is called "background", all other classes are it.

    Parameters
    ----------
    lab : Lab
        Where the data set comes from.
    name : str
        Name of the source.
    n_objects : int, default=1
        How many objects to look at.
    n_each : int, default=None
        Most images of each class for training, and as many for testing; None for the paper's 150,
        in a quick run 60.
    """
    n = lab.scaled(_N_EACH, 60) if n_each is None else n_each
    return _chosen(lab.dataset(name), n_objects, n, lab.n_jobs)


@lru_cache(maxsize=2)
def _chosen(data: Dataset, n_objects: int, n_each: int, n_jobs: int) -> Photographs:
    _check_images(data)
    classes = [str(name) for name in data.classes]
    if len(classes) < 2:
        raise ValueError(f"{data.name!r} has one class, an object needs others to be told from")
    objects = [name for name in (*_OBJECTS, *classes) if name in classes and name != BACKGROUND]
    others = {BACKGROUND} & {*classes}
    # One class at least is left for background.
    kept = [*dict.fromkeys(objects)][: n_objects if others else min(n_objects, len(classes) - 1)]
    images: list[RGB] = []
    labels: list[str] = []
    trains: list[bool] = []
    for X, y, training in (
        (data.X_train, data.y_train, True),
        (data.X_test, data.y_test, False),
    ):
        names = y.astype(str)
        for name in (*kept, BACKGROUND):
            own = name in classes
            rows = np.flatnonzero(names == name if own else ~np.isin(names, kept))
            found = _read([*X[rows[:n_each] if own else _spread(rows, n_each)]], n_jobs)
            if not found:
                part = "training" if training else "testing"
                raise ValueError(f"{data.name!r} has no images of {name!r} for {part}")
            images += found
            labels += [name] * len(found)
            trains += [training] * len(found)
    return Photographs(data.name, images, np.array(labels), np.array(trains))


def _spread(rows: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """So many of the rows, from beginning to end: they are of several classes."""
    return rows if len(rows) <= n else rows[np.arange(n) * len(rows) // n]


def _read(sources: Sequence[Any], n_jobs: int) -> list[RGB]:
    return [shrink_image(i, _LARGEST_SIDE) for i in read_images(sources, n_jobs=n_jobs).images]
