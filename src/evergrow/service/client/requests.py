"""Request bodies: images and embeddings in any form, encoded as JSON or as a form."""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError

# Overhead of a request for each image.
_OVERHEAD_BYTES = 300
# PNG colour types by number of channels.
_PNG_COLOURS = {1: 0, 3: 2, 4: 6}
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Fast rather than small: the picture is sent once.
_PNG_COMPRESSION = 1
_ALLOWED = (
    "pass a path, the bytes of an image file, an open file, a Pillow image, an array of 8-bit "
    "pixels, or an embedding as a vector of floats"
)


@dataclass(frozen=True)
class ImageItem:
    """The bytes of one image file."""

    content: bytes

    @property
    def n_bytes(self) -> int:
        """Its size in a request."""
        return len(self.content)


@dataclass(frozen=True)
class EmbeddingItem:
    """The values of one embedding."""

    values: list[float]

    @property
    def n_bytes(self) -> int:
        """Upper bound of its size in a request, as text."""
        return 25 * len(self.values)


Item = ImageItem | EmbeddingItem


@dataclass(frozen=True)
class Body:
    """The body of a request."""

    content: bytes
    media_type: str


def json_body(value: Any) -> Body:
    """Encode a JSON value."""
    return Body(json.dumps(value, allow_nan=False).encode(), "application/json")


def teach_body(item: Item, label: str, fine: str | None, *, move: bool = False) -> Body:
    """Encode one example to teach."""
    names = {"label": label} if fine is None else {"label": label, "fine": fine}
    for name, value in names.items():
        if not isinstance(value, str):
            raise InvalidTypeError(f"{name} must be a str, got {type(value).__name__}")
    if isinstance(item, EmbeddingItem):
        if move:
            raise InvalidInputError("move needs an image: embeddings are not compared")
        return json_body({"embedding": _check_finite(item), **names})
    return _form_body([item], {**names, "move": "true"} if move else names)


def predict_body(items: Sequence[Item]) -> Body:
    """Encode images, or embeddings, to predict."""
    embeddings = [_check_finite(one) for one in items if isinstance(one, EmbeddingItem)]
    if embeddings:
        return json_body({"embeddings": embeddings})
    return _form_body([one for one in items if isinstance(one, ImageItem)], {})


def split_into_batches(
    items: Sequence[Item], *, max_items: int, max_bytes: int
) -> Iterator[Sequence[Item]]:
    """Split items into batches of one kind that fit into one request each.

    Examples
    --------
    >>> from evergrow.service.client.requests import ImageItem, split_into_batches
    >>> items = [ImageItem(bytes(n)) for n in (500, 400, 300, 20, 10)]
    >>> [len(batch) for batch in split_into_batches(items, max_items=2, max_bytes=2000)]
    [2, 2, 1]
    """
    first, n_bytes = 0, 0
    for place, item in enumerate(items):
        size = item.n_bytes + _OVERHEAD_BYTES
        is_full = place - first == max_items or n_bytes + size > max_bytes
        if place > first and (is_full or type(item) is not type(items[first])):
            yield items[first:place]
            first, n_bytes = place, 0
        n_bytes += size
    if items:
        yield items[first:]


def _check_finite(item: EmbeddingItem) -> list[float]:
    for place, value in enumerate(item.values):
        # False for NaN and for infinities.
        if value - value != 0:
            raise InvalidInputError(
                f"an embedding must have finite values, got {value} at index {place}"
            )
    return item.values


def _form_body(images: Sequence[ImageItem], texts: dict[str, str]) -> Body:
    # Random, so that no image contains it.
    boundary = secrets.token_hex(24)
    parts = []
    for name, text in texts.items():
        parts += [_part_header(boundary, f'name="{name}"', "text/plain; charset=utf-8")]
        parts += [text.encode(), b"\r\n"]
    for image in images:
        disposition = 'name="image"; filename="image"'
        parts += [_part_header(boundary, disposition, "application/octet-stream")]
        parts += [image.content, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return Body(b"".join(parts), f"multipart/form-data; boundary={boundary}")


def _part_header(boundary: str, disposition: str, media_type: str) -> bytes:
    return (
        f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n"
        f"Content-Type: {media_type}\r\n\r\n"
    ).encode()


def to_item(source: Any) -> Item:
    """Convert one image or embedding."""
    if isinstance(source, (str, os.PathLike)):
        return ImageItem(Path(source).read_bytes())
    if isinstance(source, (bytes, bytearray, memoryview)):
        return ImageItem(bytes(source))
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        return _from_array(source)
    if hasattr(source, "save") and hasattr(source, "mode"):
        return ImageItem(_encode_pillow(source))
    if hasattr(source, "read"):
        return ImageItem(_read_file(source))
    if _is_numbers(source):
        return EmbeddingItem([float(one) for one in source])
    raise InvalidTypeError(f"cannot send a {type(source).__name__}: {_ALLOWED}")


def to_items(sources: Any) -> tuple[list[Item], bool]:
    """Convert one or many images or embeddings; also tell whether it was a single one."""
    if _is_single(sources):
        return [to_item(sources)], True
    if not isinstance(sources, Iterable):
        raise InvalidTypeError(
            f"cannot send a {type(sources).__name__}: {_ALLOWED}, or many of them"
        )
    return [to_item(one) for one in sources], False


def _is_single(source: Any) -> bool:
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        return True
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        # A matrix of floats is many embeddings; an array of pixels with 4 axes is many images.
        n_axes_of_many = 2 if source.dtype.kind == "f" else 4
        return len(source.shape) < n_axes_of_many
    if hasattr(source, "read") or (hasattr(source, "save") and hasattr(source, "mode")):
        return True
    return _is_numbers(source)


def _is_numbers(source: Any) -> bool:
    if not isinstance(source, (list, tuple)) or not source:
        return False
    # NumPy's numbers are not instances of int or float, but can be converted.
    return all(hasattr(one, "__float__") and not hasattr(one, "__len__") for one in source)


def _from_array(array: Any) -> Item:
    if array.dtype.kind == "f" and len(array.shape) == 1:
        return EmbeddingItem([float(one) for one in array.tolist()])
    is_pixels = array.dtype.kind == "u" and array.dtype.itemsize == 1
    channels = {2: 1, 3: array.shape[-1]}.get(len(array.shape)) if is_pixels else None
    if channels not in _PNG_COLOURS or 0 in array.shape:
        raise InvalidTypeError(
            f"cannot send an array of {array.dtype} and shape {tuple(array.shape)}: an image has "
            "8-bit pixels (uint8) and shape (height, width), (height, width, 3) or "
            "(height, width, 4), an embedding is a vector of floats"
        )
    height, width = array.shape[:2]
    return ImageItem(_encode_png(array.tobytes(), width, height, channels))


def _encode_png(pixels: bytes, width: int, height: int, channels: int) -> bytes:
    stride = width * channels
    # Every row of a PNG starts with its filter type: 0 is none.
    rows = b"".join(
        b"\0" + pixels[first : first + stride] for first in range(0, len(pixels), stride)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOURS[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, _PNG_COMPRESSION)), (b"IEND", b"")]
    return _PNG_SIGNATURE + b"".join(_png_chunk(name, content) for name, content in chunks)


def _png_chunk(name: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + check


def _encode_pillow(image: Any) -> bytes:
    from PIL import ImageOps

    file = io.BytesIO()
    # The orientation of the camera is stored next to the pixels, not in them.
    upright = ImageOps.exif_transpose(image)
    # PNG has no CMYK, for example.
    supported = upright if upright.mode in _PNG_MODES else upright.convert("RGB")
    supported.save(file, format="PNG", compress_level=_PNG_COMPRESSION)
    return file.getvalue()


def _read_file(source: Any) -> bytes:
    content = source.read()
    if not isinstance(content, bytes):
        name = getattr(source, "name", type(source).__name__)
        raise InvalidTypeError(f"{name!r} was opened as text: open it with mode 'rb'")
    return content
