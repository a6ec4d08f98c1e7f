"""What an image may come from, and its content: encoded bytes or pixels, never beyond a limit."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError
from evergrow.foundation.naming import name_of, printable

__all__ = ["DEFAULT_LIMITS", "ReadLimits", "content_of", "name_of", "printable"]

_MILLION = 1_000_000


@dataclass(frozen=True)
class ReadLimits:
    """How much of the computer one image may take; what is larger is refused before decoding.

    Parameters
    ----------
    max_pixels : int, default=100_000_000
        Most pixels, width times height. A file of a few kB can claim billions. Raise it for
        scanners and satellites: an image takes 3 bytes per pixel, and up to four times as much
        while it is converted.
    max_bytes : int, default=100_000_000
        Most bytes of an encoded image. Files are not read beyond it.

    Examples
    --------
    >>> from evergrow.vision import ReadLimits
    >>> ReadLimits(max_pixels=1_000_000)
    ReadLimits(max_pixels=1000000, max_bytes=100000000)
    """

    max_pixels: int = 100 * _MILLION
    max_bytes: int = 100 * _MILLION

    def __post_init__(self) -> None:
        for name in ("max_pixels", "max_bytes"):
            value = getattr(self, name)
            integral = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not integral or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")

    def check_size(self, width: int, height: int) -> None:
        """Raise a ``ValueError`` for an image without pixels or with too many."""
        if width < 1 or height < 1:
            raise ValueError(f"it has no pixels: {width} x {height}")
        if width * height > self.max_pixels:
            raise ValueError(
                f"it has {width} x {height} pixels, more than the limit of {self.max_pixels}"
            )

    def check_bytes(self, n_bytes: int) -> None:
        """Raise a ``ValueError`` for a file without content or with too much."""
        if n_bytes < 1:
            raise ValueError("it is empty")
        if n_bytes > self.max_bytes:
            raise ValueError(f"it is larger than the limit of {self.max_bytes} bytes")


DEFAULT_LIMITS = ReadLimits()


def content_of(source: object, limits: ReadLimits) -> bytes | npt.NDArray[Any] | Any:
    """Encoded bytes, pixels as an array, or a Pillow image; ``ImageError`` where there is none.

    Nothing is decoded yet: the bytes can be hashed, and cost no more than they take on disk.
    """
    try:
        if isinstance(source, (str, os.PathLike)):
            return _file_bytes(source, limits)
        if isinstance(source, (bytes, bytearray, memoryview)):
            limits.check_bytes(memoryview(source).nbytes)
            return bytes(source)
        if isinstance(source, np.ndarray) or _is_pillow(source):
            return source
        if callable(getattr(source, "read", None)):
            return _stream_bytes(source, limits)
        if hasattr(source, "__array__"):
            return np.asarray(source)
    except OSError as error:
        raise ImageError(name_of(source), _reason(error)) from error
    except ImageError:
        # A source that knows its own name and reason.
        raise
    except ValueError as error:
        raise ImageError(name_of(source), str(error)) from error
    raise ImageError(
        name_of(source),
        "an image must be a path, bytes, a binary file, a Pillow image or an array, "
        f"got {type(source).__name__}",
    )


def _is_pillow(source: object) -> bool:
    # Whoever made a Pillow image has imported Pillow.
    image_module = sys.modules.get("PIL.Image")
    return image_module is not None and isinstance(source, image_module.Image)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _file_bytes(path: str | os.PathLike[str], limits: ReadLimits) -> bytes:
    # Opening a pipe would wait for a writer that may never come.
    waiting_not = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    # Windows gives no descriptor of a folder, so it must be asked before.
    if os.path.isdir(path):
        raise ValueError("it is a directory, name a file")
    descriptor = os.open(path, os.O_RDONLY | waiting_not | getattr(os, "O_CLOEXEC", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        limits.check_bytes(found.st_size)
        # Usually all there is; asking for as much as is allowed would reserve as much.
        content = file.read(found.st_size + 1)
        if len(content) <= found.st_size:
            return content
        # It grew meanwhile.
        file.seek(0)
        return _stream_bytes(file, limits)


def _stream_bytes(stream: Any, limits: ReadLimits) -> bytes:
    parts, n_bytes = [], 0
    # One read may give less than is there; one byte beyond the limit tells that there is more.
    while n_bytes <= limits.max_bytes:
        part = stream.read(limits.max_bytes + 1 - n_bytes)
        if not isinstance(part, bytes):
            raise ValueError("the file must be open in binary mode")  # noqa: TRY004
        if not part:
            break
        parts.append(part)
        n_bytes += len(part)
    limits.check_bytes(n_bytes)
    return b"".join(parts)
