"""Detect polyglot files: files that are an image and something else at once.

Such a file is harmless here, where images are only decoded. It is refused because the folder of a
workspace is copied, served and opened by other programs, which may see the other half. What phones
append to their pictures (more images, a short video, data of the manufacturer) is allowed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

# What makes a browser, an interpreter or a viewer treat a file as a document.
from evergrow.foundation.errors import InvalidInputError

_MARKUP = re.compile(rb"<(?:script|html|svg|iframe|!doctype)[\s>/]|<\?php", re.IGNORECASE)
_PDF_START = b"%PDF-"
# PDF viewers look for the start within this many bytes.
_PDF_REACH = 1024
_ZIP_END = b"PK\x05\x06"
_ZIP_END_BYTES = 22
_ZIP_MAX_COMMENT = 65_535

# A JPEG marker within compressed data: not a stuffed byte, a restart marker or padding.
_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
# What may follow an image: another JPEG (burst, depth map), the video of a motion photo, data of
# the manufacturer, or padding.
_ALLOWED_TRAILERS = (
    re.compile(rb"\x00*\xff\xd8\xff"),
    re.compile(rb"\x00*.{4}ftyp", re.DOTALL),
    re.compile(rb".*SEFT\Z", re.DOTALL),
    re.compile(rb"[\x00\s]*\Z"),
)


def check_not_polyglot(content: bytes, image_format: str) -> None:
    """Raise a ``ValueError`` if a file is also something else, or if foreign data follows it.

    >>> check_not_polyglot(b"GIF89a" + bytes(7) + b"; <script>alert(1)</script>", "GIF")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: it is an image and markup at once: ...
    """
    markup = _MARKUP.search(content)
    if markup is not None:
        found = markup.group().decode()
        raise InvalidInputError(f"it is an image and markup at once: it contains {found!r}")
    if _PDF_START in content[:_PDF_REACH]:
        raise InvalidInputError("it is an image and a PDF document at once")
    if _is_zip(content):
        raise InvalidInputError("it is an image and a ZIP archive at once")
    find_end = _ENDS.get(image_format)
    if find_end is None:
        return
    end = find_end(content)
    rest = content[end:]
    if rest and not any(trailer.match(rest) for trailer in _ALLOWED_TRAILERS):
        raise InvalidInputError(
            f"{len(rest)} bytes that are not an image follow the end of the image"
        )


def _is_zip(content: bytes) -> bool:
    # Like ZIP readers: search for the end of the archive from the end of the file.
    start = max(0, len(content) - _ZIP_END_BYTES - _ZIP_MAX_COMMENT)
    found = content.rfind(_ZIP_END, start)
    while found >= 0:
        if found + _ZIP_END_BYTES <= len(content):
            (comment,) = struct.unpack_from("<H", content, found + _ZIP_END_BYTES - 2)
            if found + _ZIP_END_BYTES + comment <= len(content):
                return True
        found = content.rfind(_ZIP_END, start, found)
    return False


def _end_of_jpeg(content: bytes) -> int:
    place = 2
    while True:
        marker = _JPEG_MARKER.search(content, place)
        if marker is None:
            raise InvalidInputError("the JPEG file is truncated: it has no end marker")
        kind, place = content[marker.end() - 1], marker.end()
        if kind == _JPEG_END:
            return place
        if kind == 0x01 or place + 2 > len(content):
            continue
        place += int.from_bytes(content[place : place + 2], "big")


def _end_of_png(content: bytes) -> int:
    place = 8
    while place + 12 <= len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        kind = content[place + 4 : place + 8]
        place += 12 + size
        if kind == b"IEND":
            return place
    raise InvalidInputError("the PNG file is truncated: it has no end chunk")


def _end_of_gif(content: bytes) -> int:
    place = 13 + _palette_bytes(content[10])
    while place < len(content):
        kind = content[place]
        if kind == 0x3B:
            return place + 1
        if kind == 0x2C and place + 10 <= len(content):
            place += 10 + _palette_bytes(content[place + 9]) + 1
        elif kind == 0x21:
            place += 2
        else:
            raise InvalidInputError("the GIF file is damaged: it has an unknown block")
        place = _end_of_blocks(content, place)
    raise InvalidInputError("the GIF file is truncated: it has no trailer")


def _palette_bytes(packed: int) -> int:
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _end_of_blocks(content: bytes, place: int) -> int:
    while place < len(content) and content[place]:
        place += 1 + content[place]
    return place + 1


def _end_of_webp(content: bytes) -> int:
    size = int.from_bytes(content[4:8], "little") + 8
    # Chunks are padded to even lengths.
    return size + size % 2


def _end_of_bmp(content: bytes) -> int:
    stated = int.from_bytes(content[2:6], "little")
    # Some programs leave this field empty.
    return stated or len(content)


_ENDS: dict[str, Callable[[bytes], int]] = {
    "JPEG": _end_of_jpeg,
    "MPO": _end_of_jpeg,
    "PNG": _end_of_png,
    "GIF": _end_of_gif,
    "WEBP": _end_of_webp,
    "BMP": _end_of_bmp,
}
