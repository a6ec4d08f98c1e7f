"""From one image to the descriptors of its patches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError
from evergrow.vision.descriptors.kinds import Descriptor
from evergrow.vision.descriptors.patches import Patches, checked_mask
from evergrow.vision.images.extras import vision_module
from evergrow.vision.images.reading import read_image
from evergrow.vision.images.sources import name_of

__all__ = ["Describing", "MaskError", "pairs", "seed_of"]

RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.float32]


class MaskError(ImageError):
    """A mask does not fit its image, or is empty."""

    def __str__(self) -> str:
        return f"cannot use the mask of {self.source}: {self.reason}"


@dataclass(frozen=True)
class Describing:
    """How images are described; it never changes, so that threads share it."""

    descriptor: Descriptor
    patches: Patches
    max_side: int | None
    seed: int

    def describe(
        self, source: Any, mask: npt.ArrayLike | None = None, index: int | None = None
    ) -> tuple[Rows, Rows]:
        """Descriptors and boxes, the latter in pixels of the image as it came."""
        image = read_image(source)
        small = smaller_image(image, self.max_side)
        fitting = None
        if mask is not None:
            name = name_of(source) if index is None else f"image {index}, {name_of(source)}"
            try:
                fitting = smaller_mask(checked_mask(mask, image.shape[:2]), small.shape[:2])
            except ValueError as error:
                raise MaskError(name, str(error)) from error
        boxes = self.patches.boxes(small.shape[:2], [self.seed, *_fingerprint(small)], fitting)
        return self.descriptor.describe(small, boxes), _enlarged(boxes, small, image)


def pairs(
    images: Iterable[Any], masks: Iterable[npt.ArrayLike | None] | None
) -> Iterator[tuple[Any, npt.ArrayLike | None]]:
    """Each image with its mask; a ``ValueError`` if there are more of one than of the other."""
    if masks is None:
        return ((image, None) for image in images)
    if isinstance(images, Sized) and isinstance(masks, Sized) and len(images) != len(masks):
        raise ValueError(f"there must be a mask per image, {len(images)}, got {len(masks)}")
    return zip(images, masks, strict=True)


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """One seed for all images of a call."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


def _fingerprint(image: RGB) -> list[int]:
    """Numbers that tell images apart by their pixels."""
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    return [int(word) for word in np.frombuffer(digest.digest(), "<u4")]


def smaller_image(image: RGB, max_side: int | None) -> RGB:
    """The image, made smaller if a side is longer than allowed."""
    height, width = image.shape[:2]
    if max_side is None or max(height, width) <= max_side:
        return image
    scale = max_side / max(height, width)
    size = tuple(max(1, round(side * scale)) for side in (width, height))
    pillow = vision_module("PIL.Image")
    # Pillow's bilinear filter grows with the step, so that nothing is skipped.
    resized = pillow.fromarray(image).resize(size, pillow.Resampling.BILINEAR)
    return np.asarray(resized)


def smaller_mask(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The mask at another size, True wherever part of it falls: a thin one does not vanish."""
    if mask.shape == shape:
        return mask
    ys, xs = np.nonzero(mask)
    smaller = np.zeros(shape, dtype=np.bool_)
    smaller[ys * shape[0] // mask.shape[0], xs * shape[1] // mask.shape[1]] = True
    return smaller


def _enlarged(boxes: npt.NDArray[np.int32], small: RGB, image: RGB) -> Rows:
    down, across = (image.shape[axis] / small.shape[axis] for axis in (0, 1))
    # Rounding makes the two differ by a trifle; patches stay squares inside the image.
    factors = np.array([across, down, min(across, down)])
    enlarged: Rows = (boxes * factors).astype(np.float32)
    return enlarged
