"""Synthetic pictures: any number of different files, made from a few drawn ones."""

from __future__ import annotations

import io
import struct

import numpy as np

_START_OF_IMAGE = b"\xff\xd8"
_COMMENT = b"\xff\xfe"


def photograph(seed: int, *, width: int = 640, height: int = 480) -> bytes:
    """A JPEG with smooth and detailed regions, about as large as a camera's of this size."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    size = (width, height)
    picture = np.zeros((height, width, 3))
    for side, weight in ((4, 0.6), (24, 0.3), (160, 0.1)):
        coarse = Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
        picture += weight * np.asarray(coarse.resize(size, Image.Resampling.BICUBIC))
    file = io.BytesIO()
    Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=88)
    return file.getvalue()


def different(jpeg: bytes, number: int) -> bytes:
    """The same picture in a different file: a comment holds the number, so it is not cached."""
    text = f"number {number}".encode()
    comment = _COMMENT + struct.pack(">H", len(text) + 2) + text
    return _START_OF_IMAGE + comment + jpeg[len(_START_OF_IMAGE) :]


def picture(
    kind: str = "JPEG", size: tuple[int, int] = (64, 48), seed: int = 0, **options: object
) -> bytes:
    """An image file of coloured patches."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(patches).resize(size, Image.Resampling.NEAREST)
    if kind == "HEIF":
        import pillow_heif

        pillow_heif.from_pillow(image).save(file, **options)
    else:
        image.save(file, kind, **options)
    return file.getvalue()
