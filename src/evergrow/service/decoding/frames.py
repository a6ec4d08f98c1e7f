"""Messages between the service and its decoders: a JSON header and bytes, each with its length.

No pickle: whoever takes over a decoder can send wrong numbers, but no code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

__all__ = ["FrameError", "read_frame", "write_frame"]

_LENGTH = struct.Struct(">I")
_MAX_HEADER_BYTES = 16_384
# Bytes as they lie in memory: copies of whole images would cost more than sending them.
Blob = bytes | bytearray | memoryview
Frame = tuple[dict[str, Any], list[bytearray]]


class FrameError(ValueError):
    """What came is no message, or the other side is gone."""


def write_frame(stream: BinaryIO, header: dict[str, Any], blobs: Sequence[Blob] = ()) -> None:
    """Send one message."""
    sizes = [memoryview(blob).nbytes for blob in blobs]
    text = json.dumps({**header, "blobs": sizes}).encode()
    _write(stream, _LENGTH.pack(len(text)) + text)
    for blob in blobs:
        _write(stream, blob)


def read_frame(stream: BinaryIO, *, max_bytes: int) -> Frame | None:
    """Take one message; None if the other side has ended.

    Parameters
    ----------
    stream : binary file
        A pipe, not buffered.
    max_bytes : int
        Most bytes beside the header, checked before they are read.
    """
    prefix = _read(stream, _LENGTH.size, may_end=True)
    if prefix is None:
        return None
    (length,) = _LENGTH.unpack(prefix)
    if length > _MAX_HEADER_BYTES:
        raise FrameError(f"a header of {length} bytes")
    header = _parsed(_read(stream, length))
    sizes = header.pop("blobs", None)
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise FrameError("a header without sizes")
    if sum(sizes) > max_bytes:
        raise FrameError(f"{sum(sizes)} bytes, more than {max_bytes}")
    return header, [_read(stream, size) or bytearray() for size in sizes]


def _parsed(text: bytearray | None) -> dict[str, Any]:
    try:
        header = json.loads(text or b"")
    except (ValueError, RecursionError) as error:
        raise FrameError("a header that is no JSON") from error
    if not isinstance(header, dict):
        raise FrameError("a header that is no object")
    return header


def _write(stream: BinaryIO, data: Blob) -> None:
    rest = memoryview(data).cast("B")
    # A pipe takes as much as there is room for.
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
            raise FrameError("the other side ended in the middle of a message")
        rest = rest[n_read:]
    return data
