"""Maps of a class over an image, and the patches of a word."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.extras import install_command
from evergrow.foundation.files import atomic_write
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Integer, check_parameters
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES
from evergrow.vision.images.reader import check_sources, read_image
from evergrow.vision.images.sources import import_extra
from evergrow.vision.words.bag.bag_of_words import BagOfWords
from evergrow.vision.words.bag.fitted import IS_CODEBOOK

RGB = npt.NDArray[np.uint8]

_FORMATS = (".pdf", ".png", ".svg")
# Side of a patch in the figure of patches, in pixels.
_SIDE = 48


def word_map(
    image: Any,
    codebook: Any,
    features: Any,
    class_: Any,
    path: str | os.PathLike[str] | None = None,
) -> npt.NDArray[np.float64]:
    """Compute where in an image the visual words indicate a class.

    The value of a patch is the share of the class in its leaf, averaged over the trees. The value
    of a pixel is the mean over the patches whose middle half covers it. Near the edge of the image,
    it is the mean over all patches that cover it. [Moosmann2006 Fig. 3] marks the centres of the
    patches instead.

    Parameters
    ----------
    image : path, bytes, binary file, Pillow image or ndarray
        The image, as in :func:`evergrow.vision.read_image`.
    codebook : ERCForest, or BagOfWords with one
        A codebook that was fitted with classes.
    features : LocalFeatures or None
        The local features; None for those of the bag.
    class_ : int or str
        The class to map.
    path : path, default=None
        A figure to write, with image and map side by side: .png, .svg or .pdf.

    Returns
    -------
    posterior : ndarray of shape (height, width)
        From 0 to 1; NaN where there is no patch.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import BagOfWords, ERCForest, LocalFeatures, word_map
    >>> dark, light = np.zeros((30, 30, 3), np.uint8), np.full((30, 30, 3), 255, np.uint8)
    >>> bag = BagOfWords(ERCForest(2), features=LocalFeatures("hsl"), random_state=0)
    >>> bag = bag.fit([dark, light], ["night", "day"])
    >>> float(np.nanmin(word_map(light, bag, None, "day")))
    1.0
    """
    words, describer = _components(codebook, features)
    pixels = read_image(image)
    column = _column(words, class_)
    descriptors, boxes = describer.describe(pixels)
    posterior = words.predict_proba(descriptors)[:, column] if len(descriptors) else np.zeros(0)
    shape = (pixels.shape[0], pixels.shape[1])
    found = _mean_over_boxes(posterior, _middle_halves(boxes), shape)
    found = np.where(np.isnan(found), _mean_over_boxes(posterior, boxes, shape), found)
    if path is not None:
        _draw_map(pixels, found, f"posterior of {class_}", path)
    return found


def leaf_patches(
    images: Iterable[Any],
    codebook: Any,
    features: Any,
    tree: int,
    word: int,
    path: str | os.PathLike[str] | None = None,
    *,
    n: int = 36,
    n_per_image: int = 4,
) -> tuple[RGB, npt.NDArray[np.int64]]:
    """Find patches that a tree assigns to the same visual word.

    [Moosmann2006 Fig. 2] shows such patches.

    Parameters
    ----------
    images : iterable
        Images as in :func:`evergrow.vision.read_image`, read one at a time until there are enough
        patches.
    codebook : codebook or BagOfWords
        A fitted codebook.
    features : LocalFeatures or None
        The local features; None for those of the bag.
    tree : int
        Index of the tree.
    word : int
        Index of the word in the tree.
    path : path, default=None
        A figure of all patches to write: .png, .svg or .pdf.
    n : int, default=36
        Maximum number of patches.
    n_per_image : int, default=4
        Maximum number of patches of one image, so that several images are shown.

    Returns
    -------
    patches : ndarray of shape (n_patches, 48, 48, 3), uint8
        The patches, resized to equal size.
    places : ndarray of shape (n_patches,)
        The index of the image of each patch.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import BagOfWords, LocalFeatures, RandomKDTrees, leaf_patches
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    >>> bag = BagOfWords(RandomKDTrees(1, n_words=5), features=LocalFeatures(), random_state=0)
    >>> patches, places = leaf_patches(images, bag.fit(images), None, 0, 3, n=6)
    >>> patches.shape, places.tolist()
    ((6, 48, 48, 3), [0, 0, 0, 0, 1, 1])
    """
    words, describer = _components(codebook, features)
    per_tree = words.words_per_tree_
    _check_numbers(n=(n, 1, None), n_per_image=(n_per_image, 1, None))
    _check_numbers(tree=(tree, 0, len(per_tree) - 1))
    _check_numbers(word=(word, 0, int(per_tree[tree]) - 1))
    check_sources(images)
    patches: list[RGB] = []
    places: list[int] = []
    for i, image in enumerate(images):
        pixels = read_image(image)
        descriptors, boxes = describer.describe(pixels)
        matches = np.zeros(0, dtype=bool)
        if len(descriptors):
            matches = np.asarray(words.transform(descriptors))[:, tree] == word
        wanted = min(n_per_image, n - len(patches))
        patches += [_crop(pixels, box) for box in boxes[np.flatnonzero(matches)[:wanted]]]
        places += [i] * (len(patches) - len(places))
        if len(patches) == n:
            break
    if path is not None:
        _draw_sheet(patches, f"patches of word {word} of tree {tree}", path)
    sheet = np.stack(patches) if patches else np.zeros((0, _SIDE, _SIDE, 3), np.uint8)
    return sheet, np.array(places, dtype=np.int64)


def _components(codebook: Any, features: Any) -> tuple[Any, Any]:
    """The codebook and the local features, from a bag or as given."""
    is_bag = isinstance(codebook, BagOfWords)
    if not is_bag and not IS_CODEBOOK.admits(codebook):
        raise InvalidTypeError(f"codebook must be {IS_CODEBOOK}, or a BagOfWords, got {codebook!r}")
    check_is_fitted(codebook)
    describer = codebook.features_ if is_bag and features is None else features
    if describer is None:
        raise InvalidInputError("features must be given, because the codebook has none")
    check_parameters({"features": describer}, {"features": [IS_LOCAL_FEATURES]})
    return codebook.codebook_ if is_bag else codebook, describer


def _column(codebook: Any, class_: Any) -> int:
    if not hasattr(codebook, "predict_proba") or not hasattr(codebook, "classes_"):
        raise InvalidTypeError(
            f"{type(codebook).__name__} has no classes: use an ERCForest fitted with labels"
        )
    return ClassList(np.array(codebook.classes_)).columns_of([class_])[0]


def _check_numbers(**numbers: tuple[Any, int, int | None]) -> None:
    values = {name: value for name, (value, _, _) in numbers.items()}
    check_parameters(
        values, {name: [Integer(low, high)] for name, (_, low, high) in numbers.items()}
    )


def _middle_halves(boxes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The middle half of each box."""
    corner, side = boxes[:, :2].astype(np.float64), boxes[:, 2:].astype(np.float64)
    return np.hstack([corner + side / 4, side / 2])


def _mean_over_boxes(
    values: npt.NDArray[np.float64], boxes: npt.NDArray[Any], shape: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Mean of the values of all boxes that cover each pixel; NaN if there are none."""
    height, width = shape
    corner, side = np.asarray(boxes[:, :2], dtype=np.float64), boxes[:, 2:].astype(np.float64)
    limits = np.array([width, height])
    low = np.clip(np.rint(corner), 0, limits).astype(np.int64)
    high = np.clip(np.rint(corner + side), 0, limits).astype(np.int64)
    sums, numbers = np.zeros((height + 1, width + 1)), np.zeros((height + 1, width + 1), np.int64)
    # Differences at the corners: their cumulative sums along both axes fill the boxes.
    for (x, y), sign in (
        ((low[:, 0], low[:, 1]), 1),
        ((high[:, 0], low[:, 1]), -1),
        ((low[:, 0], high[:, 1]), -1),
        ((high[:, 0], high[:, 1]), 1),
    ):
        np.add.at(sums, (y, x), sign * values)
        np.add.at(numbers, (y, x), sign)
    sums = sums.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    numbers = numbers.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    means = np.full(shape, np.nan)
    covered = numbers > 0
    # Rounding of the cumulative sums may exceed the range.
    means[covered] = np.clip(sums[covered] / numbers[covered], 0.0, 1.0)
    return means


def _crop(pixels: RGB, box: npt.NDArray[Any]) -> RGB:
    image = import_extra("PIL.Image")
    x, y, side = (float(number) for number in box)
    height, width = pixels.shape[:2]
    edges = (max(0.0, x), max(0.0, y), min(float(width), x + side), min(float(height), y + side))
    found = image.fromarray(pixels).resize((_SIDE, _SIDE), image.Resampling.BICUBIC, box=edges)
    return np.asarray(found)


def _draw_map(
    pixels: RGB,
    found: npt.NDArray[np.float64],
    title: str,
    path: str | os.PathLike[str],
) -> None:
    height, width = found.shape
    figure = _figure(path, width=9.0, height=min(9.0, max(2.5, 4.2 * height / width + 0.6)))
    left, right = figure.subplots(1, 2)
    left.imshow(pixels)
    left.set_title("image")
    right.set_facecolor("0.85")  # where there is no patch
    # The scale ends at the largest value, because with many classes it may be far below 1.
    largest = float(np.nanmax(found)) if not np.isnan(found).all() else 1.0
    shown = right.imshow(found, cmap="viridis", vmin=0.0, vmax=largest or 1.0)
    right.set_title(title)
    for axes in (left, right):
        axes.set(xticks=[], yticks=[])
    figure.colorbar(shown, ax=[left, right], label="mean over the patches of a pixel", shrink=0.9)
    _write(figure, path)


def _draw_sheet(patches: list[RGB], title: str, path: str | os.PathLike[str]) -> None:
    columns = max(1, math.ceil(math.sqrt(len(patches))))
    rows = max(1, math.ceil(len(patches) / columns))
    sheet = np.full((rows, _SIDE, columns, _SIDE, 3), 255, dtype=np.uint8)
    for k, patch in enumerate(patches):
        sheet[k // columns, :, k % columns] = patch
    figure = _figure(path, width=max(3.5, 0.7 * columns), height=0.7 * rows + 0.6)
    axes = figure.add_subplot()
    axes.imshow(sheet.reshape(rows * _SIDE, columns * _SIDE, 3))
    for k in range(1, columns):
        axes.axvline(k * _SIDE - 0.5, color="white", linewidth=2)
    for k in range(1, rows):
        axes.axhline(k * _SIDE - 0.5, color="white", linewidth=2)
    axes.set(xticks=[], yticks=[], title=f"{len(patches)} {title}")
    _write(figure, path)


def _figure(path: str | os.PathLike[str], *, width: float, height: float) -> Any:
    """A new figure, independent of the global state of matplotlib."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise InvalidInputError(
            f"the file name must end in one of {list(_FORMATS)}, got {str(path)!r}"
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {install_command('plot')}") from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _write(figure: Any, path: str | os.PathLike[str]) -> None:
    kind = Path(path).suffix.lower()[1:]
    # Without dates, the same figure gives the same file.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with atomic_write(path) as file:
        figure.savefig(file, format=kind, metadata=undated.get(kind))
