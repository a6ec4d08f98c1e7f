"""Thumbnails: small JPEG files for galleries."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from evergrow.vision.images.sources import import_extra

# Sharp enough for a gallery on screens with two pixels per point.
THUMBNAIL_SIDE = 160
_QUALITY = 80


def make_thumbnail(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Make a JPEG with sides of at most ``THUMBNAIL_SIDE`` pixels of a decoded image."""
    small = import_extra("PIL.Image").fromarray(pixels)
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    # Pillow's formats are registered one by one, so that only known decoders are reachable.
    import_extra("PIL.JpegImagePlugin")
    file = io.BytesIO()
    small.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()
