"""What a decoder makes of the bytes of one image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.service.decoding.hidden import check_nothing_hidden
from evergrow.service.decoding.refusals import RefusedImageError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.decoder import (
    DecodedImage,
    UnknownFormatError,
    decode_image,
    read_header,
)
from evergrow.vision.images.sources import ReadLimits
from evergrow.vision.images.thumbnails import THUMBNAIL_SIDE, make_thumbnail

__all__ = ["Examined", "examine"]

# A line of pixels shows nothing, and what is made of it costs as much as of a picture.
_MAX_PROPORTION = 100


@dataclass(frozen=True, eq=False)
class Examined:
    """The pixels that the network takes, and what there is to know about an image."""

    pixels: npt.NDArray[np.uint8]
    media_type: str
    width: int
    height: int
    thumbnail: bytes | None


def examine(
    content: bytes, preprocessing: Preprocessing, limits: ReadLimits, *, thumbnail: bool
) -> Examined:
    """Check, decode and fit one image as an ``Embedder`` does it.

    Parameters
    ----------
    content : bytes
        The file.
    preprocessing : Preprocessing
        What the network wants.
    limits : ReadLimits
        How large it may be.
    thumbnail : bool
        Whether a small JPEG is made too.

    Raises
    ------
    RefusedImageError
        If it is not taken; it says why.
    """
    try:
        limits.check_bytes(len(content))
        header = read_header(content)
    except UnknownFormatError as error:
        raise RefusedImageError("format", str(error)) from error
    except ValueError as error:
        raise RefusedImageError("damaged", str(error)) from error
    _check_size(header.width, header.height, limits)
    try:
        check_nothing_hidden(content, header.format)
    except ValueError as error:
        raise RefusedImageError("hidden", str(error)) from error
    image = _decoded(content, limits, preprocessing.min_side)
    return Examined(
        pixels=preprocessing.fit_to_input(image.pixels),
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        thumbnail=_thumbnail(content, image.pixels, limits) if thumbnail else None,
    )


def _decoded(content: bytes, limits: ReadLimits, max_side: int) -> DecodedImage:
    try:
        return decode_image(content, limits, max_side)
    except ValueError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        raise RefusedImageError("damaged", str(error)) from error


def _check_size(width: int, height: int, limits: ReadLimits) -> None:
    try:
        limits.check_size(width, height)
    except ValueError as error:
        raise RefusedImageError("size", str(error)) from error
    longer, shorter = max(width, height), min(width, height)
    if longer > _MAX_PROPORTION * shorter:
        raise RefusedImageError(
            "size",
            f"it has {width} x {height} pixels: one side may be at most {_MAX_PROPORTION} times "
            "as long as the other",
        )


def _thumbnail(content: bytes, pixels: npt.NDArray[np.uint8], limits: ReadLimits) -> bytes:
    if max(pixels.shape) < THUMBNAIL_SIDE:
        # The network wants less than people do.
        pixels = _decoded(content, limits, THUMBNAIL_SIDE).pixels
    return make_thumbnail(pixels)
