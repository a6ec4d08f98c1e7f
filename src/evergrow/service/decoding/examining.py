"""What a decoder makes of the bytes of one image."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.service.decoding.hidden import check_nothing_hidden
from evergrow.service.decoding.refusals import RefusedImageError
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.images.decoding import UnknownFormatError, decode_with_size, header_of
from evergrow.vision.images.extras import vision_module
from evergrow.vision.images.sources import ReadLimits

__all__ = ["THUMBNAIL_SIDE", "Examined", "examine"]

THUMBNAIL_SIDE = 160
_THUMBNAIL_QUALITY = 80
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
        header = header_of(content)
    except UnknownFormatError as error:
        raise RefusedImageError("format", str(error)) from error
    except ValueError as error:
        raise RefusedImageError("damaged", str(error)) from error
    _check_size(header.width, header.height, limits)
    try:
        check_nothing_hidden(content, header.format)
    except ValueError as error:
        raise RefusedImageError("hidden", str(error)) from error
    pixels, (width, height) = _decoded(content, limits, preprocessing.needed_side)
    return Examined(
        pixels=preprocessing.fitted(pixels),
        media_type=header.media_type,
        width=width,
        height=height,
        thumbnail=_thumbnail(content, pixels, limits) if thumbnail else None,
    )


def _decoded(
    content: bytes, limits: ReadLimits, max_side: int
) -> tuple[npt.NDArray[np.uint8], tuple[int, int]]:
    try:
        return decode_with_size(content, limits, max_side)
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
        pixels, _ = _decoded(content, limits, THUMBNAIL_SIDE)
    image = vision_module("PIL.Image").fromarray(pixels)
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    file = io.BytesIO()
    # The formats that are read are registered one by one, and so is the one that is written.
    vision_module("PIL.JpegImagePlugin")
    image.save(file, "JPEG", quality=_THUMBNAIL_QUALITY)
    return file.getvalue()
