"""The training set of a codebook: checked images and labels, and a sample of descriptors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import check_targets
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, Shards, StoredRows
from evergrow.vision.descriptors.patches import patches_per_image
from evergrow.vision.images.reader import check_is_list, check_sources

Ints = npt.NDArray[np.int64]


def even_quotas(lengths: Ints, total: int, random: np.random.RandomState) -> Ints:
    """Number of rows to draw from each image, as equal as the images allow.

    Examples
    --------
    >>> import numpy as np
    >>> even_quotas(np.array([9, 1, 9]), 7, np.random.RandomState(0)).tolist()
    [3, 1, 3]
    """
    if total >= lengths.sum():
        return lengths.copy()
    # The largest quota that all longer images can have; shorter images contribute all rows.
    ordered = np.sort(lengths)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    n_longer = len(lengths) - np.arange(len(lengths))
    needed = before + ordered * n_longer
    at = int(np.searchsorted(needed, total, side="right"))
    level = (total - before[at]) // n_longer[at]
    quotas: Ints = np.minimum(lengths, level)
    longer = np.flatnonzero(lengths > level)
    quotas[random.permutation(longer)[: total - int(quotas.sum())]] += 1
    return quotas


def draw_descriptors(
    features: Any,
    images: Sequence[Any],
    total: int,
    random: np.random.RandomState,
    *,
    masks: Sequence[Any] | None = None,
) -> tuple[RaggedArray, Ints]:
    """Draw about ``total`` descriptors evenly from the images; also return the image indices.

    ``features`` describes the images; without it, the input is descriptors.
    """
    _check_masks(images, masks, features)
    if features is None:
        drawn, places = _draw_stored(images, total, random), np.arange(len(images))
    else:
        drawn, places = _draw_patches(features, images, total, random, masks)
    if not len(drawn.values):
        raise InvalidInputError("there must be at least one descriptor, but no image has any")
    return drawn, places


def _draw_rows(
    images: Sequence[npt.NDArray[Any]], total: int, random: np.random.RandomState
) -> RaggedArray:
    lengths = np.array([len(image) for image in images], dtype=np.int64)
    quotas = even_quotas(lengths, total, random)
    return RaggedArray.of(
        image[np.sort(random.permutation(len(image))[:quota])]
        for image, quota in zip(images, quotas, strict=True)
    )


def _draw_stored(images: Sequence[Any], total: int, random: np.random.RandomState) -> RaggedArray:
    if not isinstance(images, (RaggedArray, ShardImages)):
        return _draw_rows(_check_matrices(images), total, random)
    quotas = even_quotas(images.lengths, total, random)
    # The rows are chosen before any is read, so that no others need to be in memory.
    chosen = [
        first + np.sort(random.permutation(length)[:quota])
        for first, length, quota in zip(images.offsets, images.lengths, quotas, strict=False)
    ]
    return RaggedArray(images.values[np.concatenate(chosen)], np.cumsum([0, *quotas]))


def _draw_patches(
    features: Any,
    images: Sequence[Any],
    total: int,
    random: np.random.RandomState,
    masks: Sequence[Any] | None,
) -> tuple[RaggedArray, Ints]:
    """Describe only as many patches as needed, at most those that describe an image later.

    If there are more images than ``total``, a sample of them contributes one patch each.
    """
    places = np.arange(len(images))
    if len(images) > total:
        places = np.sort(random.permutation(len(images))[:total])
    chosen = places.tolist()
    options: dict[str, Any] = {"n_patches": patches_per_image(features.patches, total, len(chosen))}
    if masks is not None:
        options["masks"] = [masks[i] for i in chosen]
    found = features.iterate([images[i] for i in chosen], on_error="raise", **options)
    return _draw_rows([descriptors for _, descriptors in found], total, random), places


def list_images(images: Iterable[Any], features: Any) -> Sequence[Any]:
    """The images as a sequence of at least one; without features, the input is descriptors."""
    check_images(images, features)
    every: Any = images
    if isinstance(images, Shards):
        every = images.images
    elif not isinstance(images, (RaggedArray, ShardImages)):
        every = list(images)
    if not every:
        raise InvalidInputError("there must be at least one image")
    return every  # type: ignore[no-any-return]


def check_images(images: Iterable[Any], features: Any) -> None:
    """Raise a ``TypeError`` for a single image instead of a list of images."""
    if features is not None and isinstance(images, (StoredRows, ShardImages)):
        raise InvalidTypeError(
            "shards contain descriptors, but with features the input must be images: set "
            "features=None"
        )
    # An array of descriptor matrices can look like one image, so it is only checked for images.
    (check_is_list if features is None else check_sources)(images)


def image_labels(images: Sequence[Any], y: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
    """Check the class of each image; None without classes."""
    if y is None:
        return None
    check_label_types(y)
    labels = np.asarray(y)
    if labels.shape != (len(images),):
        raise InvalidInputError(
            f"y must have one class per image, {len(images)}, got the shape {labels.shape}"
        )
    check_targets(labels)
    return labels


def class_codes(labels: npt.NDArray[Any] | None) -> npt.NDArray[np.int32]:
    """The class column of each image, for thresholds that are learnt from classes."""
    if labels is None:
        raise InvalidInputError('pooling="mutual_information" needs the class of each image, y')
    classes, codes = ClassList.of(labels)
    if len(classes) < 2:
        raise InvalidInputError('pooling="mutual_information" needs at least two classes, got one')
    return codes


def _check_matrices(images: Sequence[Any]) -> list[npt.NDArray[Any]]:
    matrices = [np.asarray(image) for image in images]
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise InvalidInputError(
                "without features every image must be a matrix of descriptors, "
                f"image {i} has the shape {matrix.shape}"
            )
    return matrices


def _check_masks(images: Sequence[Any], masks: Sequence[Any] | None, features: Any) -> None:
    if masks is not None and features is None:
        raise InvalidInputError("masks select patches of images and need features")
    if masks is not None and len(masks) != len(images):
        raise InvalidInputError(
            f"there must be one mask per image, {len(images)}, got {len(masks)}"
        )
