"""Images of several descriptors each, cut into parts that tasks read where they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, Shards
from evergrow.storage.shards.row_parts import RowPart, row_parts

__all__ = ["ImagePart", "image_parts", "images_to_cut"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ImagePart:
    """Neighbouring images.

    Attributes
    ----------
    rows : RowPart
        Where their descriptors lie.
    offsets : ndarray of shape (n_images + 1,)
        Where each one's begin, counted from the first.
    """

    rows: RowPart
    offsets: Ints

    def read(self, matrix: npt.NDArray[Any] | None) -> RaggedArray:
        """The images; ``matrix`` is what tasks share of their rows."""
        return RaggedArray(self.rows.read(matrix), self.offsets)


def images_to_cut(images: Iterable[Any]) -> RaggedArray | ShardImages | None:
    """Images whose descriptors are all there already; None where they may be made on the way."""
    if isinstance(images, (RaggedArray, ShardImages)):
        return images
    if not isinstance(images, (list, tuple)) or not images:
        return None
    widths = {np.shape(image)[1:] for image in images}
    # What does not fit together is for the one who looks at each to name.
    return RaggedArray.of(images) if len(widths) == 1 and len(widths.pop()) == 1 else None


def image_parts(images: RaggedArray | ShardImages) -> list[ImagePart]:
    """Cut images into parts: by shards, or else about as large as those of rows.

    >>> ragged = RaggedArray(np.zeros((5, 2)), [0, 2, 2, 5])
    >>> [part.offsets.tolist() for part in image_parts(ragged)]
    [[0, 2, 2, 5]]
    """
    values, offsets = images.values, images.offsets
    if not len(values):
        return [ImagePart(RowPart(0, 0), offsets)]
    parts = row_parts(values)
    # An image belongs where its rows begin: shards hold whole images, other cuts give way to them.
    firsts = np.searchsorted(offsets[:-1], [part.first for part in parts])
    cuts = [0, *firsts[1:].tolist(), len(images)]
    found = []
    for part, first, last in zip(parts, cuts[:-1], cuts[1:], strict=True):
        if first == last:
            continue
        begin, end = int(offsets[first]), int(offsets[last])
        shard = part.shard if isinstance(values, Shards) else None
        found.append(ImagePart(RowPart(begin, end, shard), offsets[first : last + 1] - begin))
    return found
