"""The task of the paper: images of an object against images without it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset
from evergrow.research.papers.nips2006 import scenes
from evergrow.vision.descriptors.describer import shrink_image
from evergrow.vision.images.reader import read_images

BACKGROUND = scenes.BACKGROUND
# Preferred objects: the paper's bikes, then its cars, then one that is harder.
_OBJECTS = ("motorbikes", scenes.BICYCLE, "car_side", scenes.CAR, "watch")
_PHOTOGRAPHED = ("motorbikes", "car_side", "watch", BACKGROUND)
# Training images of each class, and as many test images, as in the paper.
_N_EACH = 150
# Large photographs are shrunk, so that hundreds of them fit into memory.
_LARGEST_SIDE = 640

RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Photographs:
    """Images with their classes; ``trains`` marks the training images."""

    name: str
    images: list[RGB]
    classes: Array
    trains: Mask

    @property
    def objects(self) -> list[str]:
        """The classes other than background, preferred ones first."""
        found = [str(name) for name in np.unique(self.classes) if name != BACKGROUND]
        return [*(n for n in _OBJECTS if n in found), *(n for n in found if n not in _OBJECTS)]

    def against_background(self, name: str) -> Photographs:
        """Images of one class and of background."""
        return self.where((self.classes == name) | (self.classes == BACKGROUND))

    def where(self, wanted: Mask) -> Photographs:
        """The images of a mask."""
        images = [self.images[i] for i in np.flatnonzero(wanted)]
        return replace(
            self, images=images, classes=self.classes[wanted], trains=self.trains[wanted]
        )


def every_other(classes: Array) -> Mask:
    """A mask of every other image of each class, starting with the first."""
    even = np.zeros(len(classes), dtype=np.bool_)
    for name in np.unique(classes):
        even[np.flatnonzero(classes == name)[::2]] = True
    return even


def split_even_odd(data: Dataset) -> Dataset:
    """Train on even images and test on odd ones, unless the folder is already divided.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import Dataset
    >>> paths = np.array([f"bikes/{k}.jpg" for k in range(6)])
    >>> given = Dataset("bikes", paths[2:], ["b"] * 4, paths[:2], ["b"] * 2, sha256="0")
    >>> split_even_odd(given).X_train.tolist()
    ['bikes/0.jpg', 'bikes/2.jpg', 'bikes/4.jpg']
    """
    _check_images(data)
    if data.X_train.ndim > 1 or not _folders(data.X_train) & _folders(data.X_test):
        return data
    from evergrow.foundation.formatting import natural_order

    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    order = np.array(sorted(range(len(X)), key=lambda k: natural_order(str(X[k]))), dtype=np.int64)
    X, y = X[order], y[order]
    trains = every_other(y)
    return replace(data, X_train=X[trains], y_train=y[trains], X_test=X[~trains], y_test=y[~trains])


def keep_used(data: Dataset) -> Dataset:
    """Only the classes that the experiments read, if all are there.

    The hash is that of their files, so that it does not depend on folders next to them.
    """
    if data.X_train.ndim > 1 or not {*_PHOTOGRAPHED} <= {str(name) for name in data.classes}:
        return data
    kept = data.of_classes(_PHOTOGRAPHED)
    digest = hashlib.sha256()
    for path in sorted(map(Path, [*kept.X_train.tolist(), *kept.X_test.tolist()])):
        digest.update(f"{path.parent.name}/{path.name}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return replace(kept, sha256=digest.hexdigest())


def _prepare(data: Dataset) -> Dataset:
    return keep_used(split_even_odd(data))


def _folders(paths: Array) -> set[str]:
    return {str(path).replace("\\", "/").rpartition("/")[0] for path in paths}


def _check_images(data: Dataset) -> None:
    if data.X_train.ndim not in (1, 4):
        raise InvalidInputError(
            "visual words need images: give a folder with one folder of images per class; "
            f"{data.name!r} is a matrix of shape {data.X_train.shape}"
        )


# All classes of the folder; the experiments of the paper read a few of them.
PHOTOGRAPHS = ex.Source("caltech_images", scenes.scene_dataset, split_even_odd)

SOURCES = {"photographs": replace(PHOTOGRAPHS, prepare=_prepare)}

# Photographs have no outlines of the object; where these matter, generated scenes are added.
DRAWINGS = "drawings"
SOURCES_WITH_OUTLINES = {
    **SOURCES,
    DRAWINGS: ex.Source(None, partial(scenes.scene_dataset, 2 * _N_EACH)),
}


def names_with_outlines(context: ex.ExperimentContext) -> list[str]:
    """The sources to measure; generated scenes once, even if they replace photographs."""
    return [n for n in context.names if n != DRAWINGS or not context.is_built_in("photographs")]


def outlines_of(
    context: ex.ExperimentContext, source: str, images: Photographs, name: str
) -> list[Mask | None]:
    """A mask of the object in each image, or None where it is unknown."""
    found: list[Mask | None] = [None] * len(images.classes)
    if context.is_built_in(source):
        for trains in (False, True):
            mine = np.flatnonzero((images.classes == name) & (images.trains == trains))
            drawn = scenes.outlines(name, len(mine), trains=trains)
            for i, outline in zip(mine, drawn, strict=True):
                found[i] = outline
    return found


def load(
    context: ex.ExperimentContext, name: str, n_objects: int = 1, n_each: int | None = None
) -> Photographs:
    """Load images of the first objects and of background, for training and for testing.

    If no class is called "background", all other classes together are background. Each class has
    up to ``n_each`` training and test images: 150 as in the paper, or 60 in a quick run.
    """
    n = context.scaled(_N_EACH, 60) if n_each is None else n_each
    return _chosen(context.dataset(name), n_objects, n, context.n_jobs)


@lru_cache(maxsize=2)
def _chosen(data: Dataset, n_objects: int, n_each: int, n_jobs: int) -> Photographs:
    _check_images(data)
    classes = [str(name) for name in data.classes]
    if len(classes) < 2:
        raise InvalidInputError(
            f"{data.name!r} has one class; an object needs other classes as background"
        )
    objects = [name for name in (*_OBJECTS, *classes) if name in classes and name != BACKGROUND]
    others = {BACKGROUND} & {*classes}
    # At least one class is left for background.
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
            # Rows of several classes are taken at even distances.
            n = min(n_each, len(rows))
            chosen = rows[:n] if own else rows[np.arange(n) * len(rows) // max(n, 1)]
            read = read_images([*X[chosen]], n_jobs=n_jobs).images
            found = [shrink_image(image, _LARGEST_SIDE) for image in read]
            if not found:
                part = "training" if training else "testing"
                raise InvalidInputError(f"{data.name!r} has no images of {name!r} for {part}")
            images += found
            labels += [name] * len(found)
            trains += [training] * len(found)
    return Photographs(data.name, images, np.array(labels), np.array(trains))
