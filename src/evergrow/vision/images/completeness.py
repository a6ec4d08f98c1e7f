"""Find images whose last rows are missing although their file has a proper end.

Pillow reports files that end too early. It accepts PNG and JPEG files whose compressed data end too
early, and fills the missing rows with black or grey.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError

if TYPE_CHECKING:
    from PIL.Image import Image

_PNG_HEADER = struct.Struct(">IIBBBBB")
_PNG_SIGNATURE_BYTES = 8
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# First column, first row, step of columns and step of rows of the passes of an interlaced PNG.
_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
_ONE_PASS = ((0, 0, 1, 1),)
_BLOCK_BYTES = 1 << 18
# The most that the compression of PNG can do.
_MAX_DEFLATE_RATIO = 1032
_PNG_TRUNCATED = "the PNG file is truncated: its last rows are missing"

# Pillow's number of the nearest pixel.
_NEAREST = 0

# A marker within the compressed data of a JPEG: not a stuffed byte, restart marker or padding.
_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
# Pixels at the end of the last row that are looked at.
_N_LAST = 16
# Added in case an image has no data to repeat. Alternating bits are not zero in any code table.
_ANY_DATA = b"\x55\x2a" * 64


def check_png_length(content: bytes) -> None:
    """Raise an ``InvalidInputError`` if a PNG file is too short for the rows that it claims."""
    if _n_bytes_of_rows(content) > _MAX_DEFLATE_RATIO * len(content):
        raise InvalidInputError(_PNG_TRUNCATED)


def check_png_rows(content: bytes, image: Image) -> None:
    """Raise an ``InvalidInputError`` if the data of a PNG file end before its last row.

    Rows that are missing are zero, so the data are counted only if one of the last two rows is
    zero: the last one of an interlaced image may be part of an early pass.
    """
    if not all(row.any() for row in _last_rows(image, min(2, image.height))):
        _count_png_data(content)


def _count_png_data(content: bytes) -> None:
    missing = _n_bytes_of_rows(content)
    inflater = zlib.decompressobj()
    try:
        for kind, data in _png_chunks(content):
            if kind == b"IDAT":
                missing -= _inflated_bytes(inflater, data, missing)
    except zlib.error as error:
        raise InvalidInputError(f"the PNG file is damaged: {error}") from error
    if missing > 0:
        raise InvalidInputError(_PNG_TRUNCATED)


def _n_bytes_of_rows(content: bytes) -> int:
    kind, header = next(_png_chunks(content), (b"", b""))
    if kind != b"IHDR" or len(header) < _PNG_HEADER.size:
        raise InvalidInputError("the PNG file is damaged: it does not begin with its header")
    width, height, depth, colour, _, _, interlaced = _PNG_HEADER.unpack_from(header)
    bits = depth * _CHANNELS.get(colour, 1)
    total = 0
    for left, top, step_x, step_y in _PASSES if interlaced else _ONE_PASS:
        columns, rows = -((left - width) // step_x), -((top - height) // step_y)
        if columns > 0 and rows > 0:
            # Each row begins with the number of its filter.
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, memoryview | bytes]]:
    view = memoryview(content)
    place = _PNG_SIGNATURE_BYTES
    while place + 8 <= len(content):
        size = int.from_bytes(view[place : place + 4], "big")
        yield bytes(view[place + 4 : place + 8]), view[place + 8 : place + 8 + size]
        place += 12 + size


def _inflated_bytes(inflater: Any, data: memoryview | bytes, enough: int) -> int:
    """Count decompressed bytes up to a limit; nothing is kept in memory."""
    n_bytes = 0
    rest: memoryview | bytes = data
    while rest and n_bytes < enough:
        n_bytes += len(inflater.decompress(rest, _BLOCK_BYTES))
        rest = inflater.unconsumed_tail
    return n_bytes


def check_jpeg_rows(content: bytes, image: Image, decode: Callable[[bytes], Image]) -> None:
    """Raise an ``InvalidInputError`` if the data of a JPEG file end before its last row.

    Blocks that are missing have one colour, so only an image whose last pixels are equal is looked
    at. It is decoded again with more data at the end of each scan, which changes an image whose
    blocks are missing and no other. Up to 16 blocks may be missing at the end, and all data after a
    restart marker.
    """
    last_pixels = _last_rows(image, 1)[0, -_N_LAST:]
    if (last_pixels != last_pixels[:1]).any():
        return
    longer = _with_more_data(content)
    if not np.array_equal(np.asarray(image), np.asarray(decode(longer))):
        raise InvalidInputError("the JPEG file is truncated: its last rows are missing")


def _with_more_data(content: bytes) -> bytes:
    """Repeat the compressed data at the end of each scan of the first image."""
    pieces, kept, place = list[bytes](), 0, 2
    while (marker := _JPEG_MARKER.search(content, place)) is not None:
        kind = content[marker.end() - 1]
        if kind == _JPEG_END:
            break
        place = marker.end() + int.from_bytes(content[marker.end() : marker.end() + 2], "big")
        if kind == _JPEG_SCAN:
            end = _end_of_scan(content, place)
            pieces += [content[kept:end], content[place:end], _ANY_DATA]
            kept = place = end
    return b"".join([*pieces, content[kept:]])


def _end_of_scan(content: bytes, place: int) -> int:
    """Where the data of a scan end; restart markers at their end do not count."""
    marker = _JPEG_MARKER.search(content, place)
    end = len(content) if marker is None else marker.start()
    while end - 2 >= place and content[end - 2] == 0xFF and 0xD0 <= content[end - 1] <= 0xD7:
        end -= 2
    return end


def _last_rows(image: Image, n_rows: int) -> npt.NDArray[Any]:
    # Not cropped: that warns about many pixels by a limit that the whole process shares.
    box = (0, image.height - n_rows, *image.size)
    return np.asarray(image.resize((image.width, n_rows), _NEAREST, box=box))
