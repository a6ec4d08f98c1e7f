"""What a codebook is learnt from: checked images and labels, about as many patches of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import check_targets
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, Shards, StoredRows
from evergrow.vision.descriptors.describer import patches_per_image
from evergrow.vision.images.many import check_listed, check_sources

__all__ = [
    "check_images",
    "class_codes",
    "draw_descriptors",
    "even_quotas",
    "image_labels",
    "listed",
]

Ints = npt.NDArray[np.int64]


def even_quotas(lengths: Ints, total: int, random: np.random.RandomState) -> Ints:
    """How many rows to take of each image so that they are as equal as the images allow.

    Examples
    --------
    >>> import numpy as np
    >>> even_quotas(np.array([9, 1, 9]), 7, np.random.RandomState(0)).tolist()
    [3, 1, 3]
    """
    if total >= lengths.sum():
        return lengths.copy()
    # Up to which level all images can be filled: short ones leave more to the others.
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
    """About ``total`` descriptors, evenly over the images; and the place of each image.

    ``features`` describes images; without it they are descriptors already.
    """
    _check_masks(images, masks, features)
    if features is None:
        drawn, places = _drawn(images, total, random), np.arange(len(images))
    else:
        drawn, places = _patches(features, images, total, random, masks)
    if not len(drawn.values):
        raise ValueError("there must be at least one descriptor, but no image has any")
    return drawn, places


def _rows(
    images: Sequence[npt.NDArray[Any]], total: int, random: np.random.RandomState
) -> RaggedArray:
    lengths = np.array([len(image) for image in images], dtype=np.int64)
    quotas = even_quotas(lengths, total, random)
    return RaggedArray.of(
        image[np.sort(random.permutation(len(image))[:quota])]
        for image, quota in zip(images, quotas, strict=True)
    )


def _drawn(images: Sequence[Any], total: int, random: np.random.RandomState) -> RaggedArray:
    if not isinstance(images, (RaggedArray, ShardImages)):
        return _rows(_matrices(images), total, random)
    quotas = even_quotas(images.lengths, total, random)
    # Which rows is known before any is read: no others need to be in memory.
    chosen = [
        first + np.sort(random.permutation(length)[:quota])
        for first, length, quota in zip(images.offsets, images.lengths, quotas, strict=False)
    ]
    return RaggedArray(images.values[np.concatenate(chosen)], np.cumsum([0, *quotas]))


def _patches(
    features: Any,
    images: Sequence[Any],
    total: int,
    random: np.random.RandomState,
    masks: Sequence[Any] | None,
) -> tuple[RaggedArray, Ints]:
    """No more patches are described than are wanted or than describe an image later.

    Of too many images a choice gives one each.
    """
    places = np.arange(len(images))
    if len(images) > total:
        places = np.sort(random.permutation(len(images))[:total])
    chosen = places.tolist()
    options: dict[str, Any] = {"n_patches": patches_per_image(features, total, len(chosen))}
    if masks is not None:
        options["masks"] = [masks[i] for i in chosen]
    found = features.iterate([images[i] for i in chosen], on_error="raise", **options)
    return _rows([descriptors for _, descriptors in found], total, random), places


def listed(images: Iterable[Any], features: Any) -> Sequence[Any]:
    """The images, of which there must be one; without features they are descriptors."""
    check_images(images, features)
    every: Any = images
    if isinstance(images, Shards):
        every = images.images
    elif not isinstance(images, (RaggedArray, ShardImages)):
        every = list(images)
    if not every:
        raise ValueError("there must be at least one image")
    return every  # type: ignore[no-any-return]


def check_images(images: Iterable[Any], features: Any) -> None:
    """Raise a ``TypeError`` for one image where several are expected."""
    if features is not None and isinstance(images, (StoredRows, ShardImages)):
        raise TypeError(
            "shards hold descriptors: with features the images themselves are wanted, set "
            "features=None"
        )
    # A stack of matrices of three descriptors in bytes looks like one image.
    (check_listed if features is None else check_sources)(images)


def image_labels(images: Sequence[Any], y: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
    """The class of each image, if they have any."""
    if y is None:
        return None
    check_label_types(y)
    labels = np.asarray(y)
    if labels.shape != (len(images),):
        raise ValueError(
            f"y must have one class per image, {len(images)}, got the shape {labels.shape}"
        )
    check_targets(labels)
    return labels


def class_codes(labels: npt.NDArray[Any] | None) -> npt.NDArray[np.int32]:
    """A number per image for its class, where thresholds are learnt from classes."""
    if labels is None:
        raise ValueError('pooling="mutual_information" needs the class of each image, y')
    classes, codes = ClassList.of(labels)
    if len(classes) < 2:
        raise ValueError('pooling="mutual_information" needs at least two classes, got one')
    return codes


def _matrices(images: Sequence[Any]) -> list[npt.NDArray[Any]]:
    matrices = [np.asarray(image) for image in images]
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise ValueError(
                "without features every image must be a matrix of descriptors, "
                f"number {i} has the shape {matrix.shape}"
            )
    return matrices


def _check_masks(images: Sequence[Any], masks: Sequence[Any] | None, features: Any) -> None:
    if masks is None:
        return
    if features is None:
        raise ValueError("masks choose patches of images: they need features")
    if len(masks) != len(images):
        raise ValueError(f"there must be a mask per image, {len(images)}, got {len(masks)}")
