"""Which descriptors a codebook is learnt from: about as many of each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.ragged import RaggedArray

__all__ = ["draw_patches", "draw_rows", "even_quotas"]

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


def draw_rows(
    images: Sequence[npt.NDArray[Any]], total: int, random: np.random.RandomState
) -> tuple[RaggedArray, Ints]:
    """About ``total`` descriptors, evenly over the images; and the place of each image."""
    lengths = np.array([len(image) for image in images], dtype=np.int64)
    drawn = [
        image[np.sort(random.permutation(len(image))[:quota])]
        for image, quota in zip(images, even_quotas(lengths, total, random), strict=True)
    ]
    return RaggedArray.of(drawn), np.arange(len(images))


def draw_patches(
    features: Any,
    images: Sequence[Any],
    total: int,
    random: np.random.RandomState,
    *,
    masks: Sequence[Any] | None = None,
) -> tuple[RaggedArray, Ints]:
    """About ``total`` descriptors of patches, evenly over the images; the place of each image.

    No more patches are described than are wanted. If there are more images than that, a random
    choice of them gives one each.
    """
    places = np.arange(len(images))
    if len(images) > total:
        places = np.sort(random.permutation(len(images))[:total])
    options: dict[str, Any] = {"n_patches": -(-total // len(places))}
    if masks is not None:
        options["masks"] = [masks[i] for i in places]
    found = features.iterate([images[i] for i in places], on_error="raise", **options)
    drawn = [descriptors for _, descriptors in found]
    return draw_rows(drawn, total, random)[0], places
