"""Decoded images with what is known about their files, and thumbnails of them."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.vision.images.decoding import decode_with_size, header_of
from evergrow.vision.images.extras import vision_module
from evergrow.vision.images.reading import read_image
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits

# Sharp enough for a gallery on screens with two pixels per point.
THUMBNAIL_SIDE = 160
_QUALITY = 80


@dataclass(frozen=True, eq=False)
class InspectedImage:
    """The pixels of an image file, its media type and its size in pixels."""

    pixels: npt.NDArray[np.uint8]
    media_type: str
    width: int
    height: int


def inspect_image(
    content: bytes, limits: ReadLimits = DEFAULT_LIMITS, max_side: int = THUMBNAIL_SIDE
) -> InspectedImage:
    """Decode an image file and read its media type and size.

    Parameters
    ----------
    content : bytes
        The image file.
    limits : ReadLimits
        How large it may be.
    max_side : int
        Side that is needed: the pixels may be decoded smaller than the image, down to this size.
        Width and height are those of the image.

    Raises
    ------
    ValueError
        If it cannot be decoded, with the reason.
    """
    media_type = header_of(content).media_type
    pixels, (width, height) = decode_with_size(content, limits, max_side)
    return InspectedImage(pixels, media_type, width, height)


def encode_thumbnail(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A JPEG of at most ``THUMBNAIL_SIDE`` pixels per side, from decoded pixels."""
    image = vision_module("PIL.Image").fromarray(pixels)
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    file = io.BytesIO()
    # Where only the formats that are read are registered, the one that is written must be too.
    vision_module("PIL.JpegImagePlugin")
    image.save(file, format="JPEG", quality=_QUALITY)
    return file.getvalue()


def make_thumbnail(content: bytes) -> bytes:
    """A JPEG of at most ``THUMBNAIL_SIDE`` pixels per side, from an image file."""
    return encode_thumbnail(read_image(content, max_side=THUMBNAIL_SIDE))
