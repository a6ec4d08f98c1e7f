"""Photographs to measure on: those of EVERGROW_DATA, or drawn ones."""

from __future__ import annotations

import io
import os
import struct
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from evergrow.vision import read_image

RGB = npt.NDArray[np.uint8]


@cache
def photographs(quick: bool) -> tuple[str, list[RGB], npt.NDArray[np.str_]]:
    """The folder ``caltech_images``, or drawn images of nine classes: name, images, classes."""
    folder = Path(os.environ.get("EVERGROW_DATA") or "missing", "caltech_images")
    if quick or not folder.is_dir():
        n = 10 if quick else 200
        images = [drawn(100 * k + i, 300, 200) for k in range(9) for i in range(n)]
        return "drawn images", images, np.repeat([f"class {k}" for k in range(9)], n)
    paths = sorted(folder.glob("*/*.jpg"))
    classes = np.array([path.parent.name for path in paths])
    return "Caltech-101 photographs", [read_image(path) for path in paths], classes


def drawn(seed: int, width: int = 640, height: int = 480) -> RGB:
    """An image with smooth and detailed regions."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width, 3))
    for side, weight in ((4, 0.6), (24, 0.3), (160, 0.1)):
        coarse = Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
        image += weight * np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    return image.clip(0, 255).astype(np.uint8)


def as_jpeg(image: RGB) -> bytes:
    """An image as a file."""
    content = io.BytesIO()
    Image.fromarray(image).save(content, "JPEG", quality=90)
    return content.getvalue()


def different(jpeg: bytes, number: int) -> bytes:
    """The same picture in a different file: a comment holds the number, so it is not cached."""
    text = f"number {number}".encode()
    return jpeg[:2] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + jpeg[2:]
