"""Images and embeddings, in all forms that people have them, as what is sent."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["EmbeddingItem", "ImageItem", "Item", "items_of", "one_item"]

# Colour types of PNG by the number of values per pixel.
_PNG_COLOURS = {1: 0, 3: 2, 4: 6}
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Fast rather than small: the picture travels once.
_PNG_COMPRESSION = 1
_ALLOWED = (
    "give a path, the bytes of an image file, an open file, a Pillow image, an array of 8-bit "
    "pixels, or an embedding as a vector of floats"
)


@dataclass(frozen=True)
class ImageItem:
    """The bytes of one image file."""

    content: bytes

    @property
    def n_bytes(self) -> int:
        """How much of a request it takes."""
        return len(self.content)


@dataclass(frozen=True)
class EmbeddingItem:
    """The numbers of one embedding."""

    values: list[float]

    @property
    def n_bytes(self) -> int:
        """How much of a request it takes, at most, as text."""
        return 25 * len(self.values)


Item = ImageItem | EmbeddingItem


def one_item(source: Any) -> Item:
    """What is sent for one image or embedding."""
    if isinstance(source, (str, os.PathLike)):
        return ImageItem(Path(source).read_bytes())
    if isinstance(source, (bytes, bytearray, memoryview)):
        return ImageItem(bytes(source))
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        return _of_array(source)
    if hasattr(source, "save") and hasattr(source, "mode"):
        return ImageItem(_file_of_pillow(source))
    if hasattr(source, "read"):
        return ImageItem(_read_file(source))
    if _is_numbers(source):
        return EmbeddingItem([float(one) for one in source])
    raise TypeError(f"cannot send a {type(source).__name__}: {_ALLOWED}")


def items_of(sources: Any) -> tuple[list[Item], bool]:
    """What is sent for one or many, and whether it was one."""
    if _is_one(sources):
        return [one_item(sources)], True
    if not isinstance(sources, Iterable):
        raise TypeError(f"cannot send a {type(sources).__name__}: {_ALLOWED}, or many of them")
    return [one_item(one) for one in sources], False


def _is_one(source: Any) -> bool:
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        return True
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        # Of floats a row is an embedding, of pixels a whole picture is an image.
        many = 2 if source.dtype.kind == "f" else 4
        return len(source.shape) < many
    if hasattr(source, "read") or (hasattr(source, "save") and hasattr(source, "mode")):
        return True
    return _is_numbers(source)


def _is_numbers(source: Any) -> bool:
    if not isinstance(source, (list, tuple)) or not source:
        return False
    # NumPy's numbers are no int or float of Python's, but know how to become one.
    return all(hasattr(one, "__float__") and not hasattr(one, "__len__") for one in source)


def _of_array(array: Any) -> Item:
    if array.dtype.kind == "f" and len(array.shape) == 1:
        return EmbeddingItem([float(one) for one in array.tolist()])
    pixels = array.dtype.kind == "u" and array.dtype.itemsize == 1
    channels = {2: 1, 3: array.shape[-1]}.get(len(array.shape)) if pixels else None
    if channels not in _PNG_COLOURS or 0 in array.shape:
        raise TypeError(
            f"cannot send an array of {array.dtype} and shape {tuple(array.shape)}: an image has "
            "8-bit pixels (uint8) and shape (height, width), (height, width, 3) or "
            "(height, width, 4), an embedding is a vector of floats"
        )
    height, width = array.shape[:2]
    return ImageItem(_png(array.tobytes(), width, height, channels))


def _png(pixels: bytes, width: int, height: int, channels: int) -> bytes:
    stride = width * channels
    # Every row of a PNG begins with how it is filtered: not at all.
    rows = b"".join(
        b"\0" + pixels[first : first + stride] for first in range(0, len(pixels), stride)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOURS[channels], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, _PNG_COMPRESSION)), (b"IEND", b"")]
    return _PNG_SIGNATURE + b"".join(_png_part(name, content) for name, content in parts)


def _png_part(name: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + check


def _file_of_pillow(image: Any) -> bytes:
    from PIL import ImageOps

    written = io.BytesIO()
    # How the camera was held is no part of the pixels.
    upright = ImageOps.exif_transpose(image)
    # What PNG has no form for, such as CMYK, becomes colours first.
    kept = upright if upright.mode in _PNG_MODES else upright.convert("RGB")
    kept.save(written, format="PNG", compress_level=_PNG_COMPRESSION)
    return written.getvalue()


def _read_file(source: Any) -> bytes:
    content = source.read()
    if not isinstance(content, bytes):
        raise TypeError(f"{_name(source)} was opened as text: open it with mode 'rb'")
    return content


def _name(source: Any) -> str:
    return repr(getattr(source, "name", type(source).__name__))
