"""What the service and its decoder processes exchange: frames, prepared images and refusals.

A frame is a JSON header and binary blobs, each preceded by its length. Nothing is pickled: an
attacker who takes over a decoder can send wrong numbers, but no code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

_LENGTH = struct.Struct(">I")
_MAX_HEADER_BYTES = 16_384
# Buffers are sent without copying: copying whole images would cost more than sending them.
Blob = bytes | bytearray | memoryview
Frame = tuple[dict[str, Any], list[bytearray]]

STATUS_OF_REFUSAL = {
    # Not an image, or not in a supported format.
    "format": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    # Too many pixels, too long for its width, or more memory than one image may use.
    "size": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    # Truncated or damaged.
    "damaged": HTTPStatus.UNPROCESSABLE_ENTITY,
    # An image and something else at once.
    "hidden": HTTPStatus.UNPROCESSABLE_ENTITY,
    # Decoding timed out or crashed the decoder.
    "decoder": HTTPStatus.UNPROCESSABLE_ENTITY,
}


class RefusedImageError(ValueError):
    """An image was refused; ``kind`` is a key of ``STATUS_OF_REFUSAL``.

    >>> str(RefusedImageError("damaged", "the file is truncated"))
    'the image was refused: the file is truncated'
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason

    def __str__(self) -> str:
        return f"the image was refused: {self.reason}"


class DecoderError(RuntimeError):
    """No decoder can be started, whatever the image."""


class FrameError(ValueError):
    """The data is not a valid frame, or the other process has ended."""


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """Pixels at the input size of the network, and facts about the image file."""

    pixels: npt.NDArray[np.uint8]
    media_type: str
    width: int
    height: int
    thumbnail: bytes | None


def write_frame(stream: BinaryIO, header: dict[str, Any], blobs: Sequence[Blob] = ()) -> None:
    """Write one frame."""
    sizes = [memoryview(blob).nbytes for blob in blobs]
    text = json.dumps({**header, "blobs": sizes}).encode()
    _write(stream, _LENGTH.pack(len(text)) + text)
    for blob in blobs:
        _write(stream, blob)


def read_frame(stream: BinaryIO, *, max_bytes: int) -> Frame | None:
    """Read one frame from an unbuffered pipe; None if the other process closed it.

    The total size of the blobs is checked before they are read.
    """
    prefix = _read(stream, _LENGTH.size, may_end=True)
    if prefix is None:
        return None
    (length,) = _LENGTH.unpack(prefix)
    if length > _MAX_HEADER_BYTES:
        raise FrameError(f"the header has {length} bytes, more than {_MAX_HEADER_BYTES}")
    header = _parse_header(_read(stream, length))
    sizes = header.pop("blobs", None)
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise FrameError("the header has no valid list of blob sizes")
    if sum(sizes) > max_bytes:
        raise FrameError(f"the blobs have {sum(sizes)} bytes, more than {max_bytes}")
    return header, [_read(stream, size) or bytearray() for size in sizes]


def _parse_header(text: bytearray | None) -> dict[str, Any]:
    try:
        header = json.loads(text or b"")
    except (ValueError, RecursionError) as error:
        raise FrameError("the header is not JSON") from error
    if not isinstance(header, dict):
        raise FrameError("the header is not a JSON object")
    return header


def _write(stream: BinaryIO, data: Blob) -> None:
    rest = memoryview(data).cast("B")
    # A pipe may accept only part of the data.
    while rest.nbytes:
        rest = rest[stream.write(rest) :]


def _read(stream: Any, size: int, *, may_end: bool = False) -> bytearray | None:
    data = bytearray(size)
    rest = memoryview(data)
    while rest.nbytes:
        n_read = stream.readinto(rest)
        if not n_read:
            if may_end and rest.nbytes == size:
                return None
            raise FrameError("the other process ended in the middle of a frame")
        rest = rest[n_read:]
    return data
