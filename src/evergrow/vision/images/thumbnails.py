"""Thumbnails: small JPEG files for galleries."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from evergrow.vision.images.reader import read_image
from evergrow.vision.images.sources import import_extra

# Sharp enough for a gallery on screens with two pixels per point.
THUMBNAIL_SIDE = 160
_QUALITY = 80


def make_thumbnail(image: bytes | npt.NDArray[np.uint8]) -> bytes:
    """Make a JPEG with sides of at most ``THUMBNAIL_SIDE`` pixels.

    Parameters
    ----------
    image : bytes or ndarray of shape (height, width, 3)
        An image file, or the pixels of one that was decoded.
    """
    pixels = read_image(image, max_side=THUMBNAIL_SIDE) if isinstance(image, bytes) else image
    small = import_extra("PIL.Image").fromarray(pixels)
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    # Pillow's formats are registered one by one, so that only known decoders are reachable.
    import_extra("PIL.JpegImagePlugin")
    file = io.BytesIO()
    small.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()
