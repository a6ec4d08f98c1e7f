"""Small drawn images, encoded and damaged."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def quarters(side: int = 32) -> np.ndarray[Any, Any]:
    """Red, green, blue and white quarters: every turn and mirror image looks different."""
    half = side // 2
    image = np.zeros((side, side, 3), dtype=np.uint8)
    image[:half, :half], image[:half, half:] = RED, GREEN
    image[half:, :half], image[half:, half:] = BLUE, WHITE
    return image


def noise(height: int = 40, width: int = 60, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def encoded(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    """A Pillow image or an array as a file of some format."""
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    file = io.BytesIO()
    picture.save(file, format=kind, **options)
    return file.getvalue()


def huge_png(side: int, n_rows: int) -> bytes:
    """A white 1-bit PNG that claims side x side pixels and holds n_rows of them."""
    row = b"\0" + b"\xff" * ((side + 7) // 8)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * n_rows, 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
